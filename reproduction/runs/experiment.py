"""Interface of an experiment, used by the runner, the store and the progress report."""

import importlib.metadata
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace

from threadpoolctl import threadpool_limits

LIBRARIES = ("cafelearn", "numpy", "scipy", "scikit-learn", "numba", "umap-learn")


class Experiment(ABC):
    """Base class of experiments: samples, methods to run on them, and records of the runs.

    A sample is a NamedTuple whose first field is the name of a data set. A record is a
    NamedTuple with the fields of the sample, then `method`, `status` ("done" or "failed") and
    fields with default values, among them `seconds`, `traceback` and `libraries`.

    Subclasses are frozen dataclasses without fields, so all instances of a class are equal.
    """

    file: str  # name of the file of records
    record: type
    quick: object  # settings of the short runs that compile a method's kernels

    @classmethod
    def key(cls):
        """Return the fields that identify a run: those of the sample, and the method."""
        fields = cls.record._fields
        return fields[: fields.index("status")]

    @abstractmethod
    def load(self, sample):
        """Make the data of a sample."""

    def shares(self, sample, method):
        """Check whether a method uses the result that `share` computes."""
        return False

    def share(self, sample, settings, data):
        """Compute the result that several methods use, such as a clustering."""
        raise NotImplementedError

    @abstractmethod
    def measure(self, sample, method, settings, data, shared):
        """Run a method and return the fields of the record after its status."""

    @abstractmethod
    def trial(self, sample):
        """Return a small sample of the same kind, for short runs that compile kernels."""

    def similar(self, sample):
        """Return a key that is equal for samples with about the same run time."""
        return sample.dataset

    @abstractmethod
    def foresee(self, sample, method):
        """Predict the run time, up to a constant factor."""

    def own_seconds(self, record):
        """Return the run time, without the shared result if another record includes it."""
        return record.seconds

    def try_share(self, sample, settings, data=None):
        """Compute the shared result, or return the traceback of its failure."""
        try:
            return self.share(sample, settings, self.load(sample) if data is None else data)
        except Exception:
            return traceback.format_exc()

    def run(self, sample, method, settings, shared=None, data=None):
        """Run one method on one sample; an exception becomes a failed record.

        `shared` is the result of `try_share` and `data` that of `load`; each is computed here
        if it is needed and not given.
        """
        if self.shares(sample, method) and shared is None:
            shared = self.try_share(sample, settings, data)
        if self.shares(sample, method) and isinstance(shared, str):
            return self.fail(sample, method, shared)
        try:
            data = self.load(sample) if data is None else data
            found = self.measure(sample, method, settings, data, shared)
        except Exception:
            return self.fail(sample, method, traceback.format_exc())
        return self.record(*sample, method, "done", **found, libraries=libraries())

    def fail(self, sample, method, reason):
        """Make the record of a failed run."""
        return self.record(*sample, method, "failed", traceback=reason, libraries=libraries())

    def run_sample(self, sample, methods, settings, emit):
        """Run several methods on one sample and emit each record when it is complete."""
        try:
            data = self.load(sample)
        except Exception:
            data = None  # each run below tries again, and records a failure
        shared = None
        for method in methods:
            if self.shares(sample, method) and shared is None:
                shared = self.try_share(sample, settings, data)
            emit(self.run(sample, method, settings, shared, data))


@contextmanager
def measuring():
    """Run the body on one thread, and record its `seconds` and its `warnings`."""
    measured = SimpleNamespace(seconds=None, warnings="")
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield measured
    measured.seconds = time.perf_counter() - start
    lines = (f"{w.category.__name__}: {' '.join(str(w.message).split())}" for w in caught)
    measured.warnings = "\n".join(dict.fromkeys(lines))


@lru_cache(maxsize=1)
def libraries():
    """Return the versions of the libraries that affect the results."""
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return " ".join(versions)
