"""Convert scikit-learn's `random_state` to a SeedSequence, and a SeedSequence to an integer."""

from numbers import Integral

import numpy as np


def seed_sequence(random_state):
    """Make a SeedSequence from a scikit-learn `random_state`."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, Integral):
        return np.random.SeedSequence(int(random_state))
    return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())


def seed_integer(seed):
    """Derive an integer seed from a SeedSequence."""
    return int(seed.generate_state(1)[0] >> 1)
