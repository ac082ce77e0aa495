"""SeedSequences and what scikit-learn takes for randomness."""

from numbers import Integral

import numpy as np


def seed_sequence(random_state):
    """The SeedSequence of a scikit-learn style `random_state`."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, Integral):
        return np.random.SeedSequence(int(random_state))
    return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())


def seed_integer(seed):
    """An integer that stands for a SeedSequence where only integers are taken."""
    return int(seed.generate_state(1)[0] >> 1)
