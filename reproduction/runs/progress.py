"""Progress and remaining time of an experiment."""

import time
from collections import Counter, defaultdict
from typing import NamedTuple


class Progress(NamedTuple):
    """The state of an experiment: numbers of runs, and times in seconds."""

    done: int  # including failed runs
    total: int
    failed: int  # since the Clock was made; earlier failures are not counted
    elapsed: float
    remaining: float | None  # None until a run has succeeded


class Clock:
    """Estimate the remaining time: expected cost of the remaining runs divided by the speed.

    The cost of a run is its time on one core. The expected cost is the mean over the successful
    runs of the same method on similar samples. If there are none, it is the prediction of
    `Experiment.foresee`, scaled so that the predictions for all successful runs add up to their
    cost.

    The speed is the completed cost per second, so it depends on the number of workers. It is
    measured from the first call of `count` on, because workers take time to start.
    """

    def __init__(self, todo, total, experiment, now=time.monotonic):
        self._now, self._start = now, now()
        self._total, self._experiment = total, experiment
        self._left = {
            (*sample, method): (experiment.similar(sample), method)
            for sample, methods in todo
            for method in methods
        }
        # One sample represents all samples similar to it.
        self._examples = {experiment.similar(sample): sample for sample, _ in todo}
        self._seen = defaultdict(lambda: [0, 0.0])
        self._failed, self._first = 0, None

    def count(self, records):
        """Count the runs of new records, ignoring repeated ones, and return the progress."""
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
        """Return the progress so far."""
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
        """Return the completed cost per second."""
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
