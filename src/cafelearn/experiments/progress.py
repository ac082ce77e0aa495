"""How much of a grid is done, and how long the rest will take."""

import time
from collections import Counter, defaultdict
from typing import NamedTuple

from cafelearn.datasets import load
from cafelearn.experiments.plan import Sample

# Seconds for a million entries of data, on one core: only their ratios matter, and only
# until runs of the same data set and method have been seen.
PRIOR = {
    "autoencoder": 90.0,
    "umap": 80.0,
    "ica": 110.0,
    "cafe+ica": 80.0,
    "nmf": 10.0,
    "cafe+nmf": 10.0,
    "mwk-means": 25.0,
}
LITTLE = 2.0


class Progress(NamedTuple):
    """The state of a grid."""

    done: int
    total: int
    failed: int
    elapsed: float
    remaining: float | None  # seconds; None until something has ended


class Clock:
    """Estimates the time to finish from the cost of the runs that have ended.

    The cost of a run to come is the mean of those of the same data set and method, or, as
    long as there are none, a prior that is calibrated by all runs so far. The speed at which
    cost is worked off is measured, so that the number of workers need not be known; it is
    measured from the first report on, since workers take their time to start.
    """

    def __init__(self, todo, total, now=time.monotonic):
        self._now, self._start = now, now()
        self._total, self._sizes = total, {}
        self._left = {(sample, method) for sample, methods in todo for method in methods}
        self._seen = defaultdict(lambda: [0, 0.0])
        self._failed, self._first = 0, None

    def count(self, records):
        """Take note of runs that have ended; those known already do no harm."""
        for record in records:
            run = Sample(*record[:4]), record.method
            if run not in self._left:
                continue
            self._left.remove(run)
            if record.status == "failed":
                self._failed += 1
                continue
            # The sweep is shared; its cost is counted once, with the labels it gives.
            own = record.seconds
            own -= 0 if record.method == "mwk-means" else record.sweep_seconds
            self._seen[record.dataset, record.method][0] += 1
            self._seen[record.dataset, record.method][1] += own
        state = self.state()
        if self._first is None:
            self._first = state.elapsed, self._spent()
        return state

    def state(self):
        """The progress so far."""
        elapsed = self._now() - self._start
        remaining = None
        if self._spent() > 0:
            left = Counter((sample.dataset, method) for sample, method in self._left)
            expected = sum(number * self._cost(key) for key, number in left.items())
            remaining = expected / self._speed(elapsed)
        done = self._total - len(self._left)
        return Progress(done, self._total, self._failed, elapsed, remaining)

    def _spent(self):
        return sum(seconds for _, seconds in self._seen.values())

    def _speed(self, elapsed):
        """Cost worked off in a second."""
        since, spent_before = self._first or (0.0, 0.0)
        if elapsed > since and self._spent() > spent_before:
            return (self._spent() - spent_before) / (elapsed - since)
        return self._spent() / max(elapsed, 1e-9)

    def _cost(self, key):
        number, seconds = self._seen.get(key, (0, 0.0))
        if number:
            return seconds / number
        foreseen = sum(n * self._prior(k) for k, (n, _) in self._seen.items())
        return self._spent() / foreseen * self._prior(key)

    def _prior(self, key):
        dataset, method = key
        if dataset not in self._sizes:
            self._sizes[dataset] = load(dataset).data.size / 1e6
        return PRIOR.get(method, LITTLE) * self._sizes[dataset]
