"""How much of an experiment is done, and how long the rest will take."""

import time
from collections import Counter, defaultdict
from typing import NamedTuple

from cafelearn.experiments.run import GRID


class Progress(NamedTuple):
    """The state of an experiment."""

    done: int
    total: int
    failed: int
    elapsed: float
    remaining: float | None  # seconds; None until something has ended


class Clock:
    """Estimates the time to finish from the cost of the runs that have ended.

    The cost of a run to come is the mean of those of similar samples and its method, or, as
    long as there are none, a prior that is calibrated by all runs so far. The speed at which
    cost is worked off is measured, so that the number of workers need not be known; it is
    measured from the first report on, since workers take their time to start.
    """

    def __init__(self, todo, total, now=time.monotonic, experiment=GRID):
        self._now, self._start = now, now()
        self._total, self._experiment = total, experiment
        self._left = {
            (*sample, method): (experiment.similar(sample), method)
            for sample, methods in todo
            for method in methods
        }
        # One sample stands for those that are similar to it.
        self._examples = {experiment.similar(sample): sample for sample, _ in todo}
        self._seen = defaultdict(lambda: [0, 0.0])
        self._failed, self._first = 0, None

    def count(self, records):
        """Take note of runs that have ended; those known already do no harm."""
        for record in records:
            kind = self._left.pop(record[: len(self._experiment.key())], None)
            if kind is None:
                continue
            if record.status == "failed":
                self._failed += 1
                continue
            self._seen[kind][0] += 1
            self._seen[kind][1] += self._experiment.own_seconds(record)
        state = self.state()
        if self._first is None:
            self._first = state.elapsed, self._spent()
        return state

    def state(self):
        """The progress so far."""
        elapsed = self._now() - self._start
        remaining = None
        if self._spent() > 0:
            left = Counter(self._left.values())
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

    def _cost(self, kind):
        number, seconds = self._seen.get(kind, (0, 0.0))
        if number:
            return seconds / number
        foreseen = sum(n * self._foresee(k) for k, (n, _) in self._seen.items())
        return self._spent() / foreseen * self._foresee(kind)

    def _foresee(self, kind):
        similar, method = kind
        return self._experiment.foresee(self._examples[similar], method)
