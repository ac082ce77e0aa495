"""How clearly rows belong to their cluster."""

import numpy as np


def margins(distances):
    """1 minus the ratio of the distances to the nearest and the second nearest centre."""
    if distances.shape[1] == 1:
        return np.ones(len(distances), dtype=distances.dtype)
    two = np.partition(distances, 1, axis=1)
    second = np.where(two[:, 1] > 0, two[:, 1], 1)
    return 1 - np.where(two[:, 1] > 0, two[:, 0], 1) / second
