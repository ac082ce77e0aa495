"""The units in which mwk-means computes."""

from typing import NamedTuple

import numpy as np


class Units(NamedTuple):
    """Powers of two that bring extreme data and weights into an ordinary range."""

    data: float = 1.0  # the rows were multiplied by this
    weight_exponent: int = 0  # the weights were multiplied by 2 to this power

    def log_dispersion(self, p):
        """Return the contribution of both units to the logarithm of a dispersion."""
        if self == NO_UNITS:
            return 0.0
        return p * np.log(self.data) + self.weight_exponent * np.log(2.0)


NO_UNITS = Units()
