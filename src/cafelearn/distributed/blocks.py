"""A Dask collection as numbered blocks of rows, and the passes over them.

A pass runs one task for each block. The results are combined on the workers, so that the client
receives a single result.
"""

from collections.abc import Callable
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import numpy as np
from dask.base import get_scheduler
from dask.highlevelgraph import HighLevelGraph
from sklearn.utils import check_array
from sklearn.utils.validation import check_non_negative

from cafelearn.data.gaps import is_sound, refuse_infinite_columns
from cafelearn.data.source import Part
from cafelearn.data.validation import ordinary_weights
from cafelearn.distributed.cache import forget
from cafelearn.distributed.sources import Sealed, find_sources, read
from cafelearn.kmeans.kernels.geometry import chunk_rows

# Largest number of results that one task combines.
FAN_IN = 16


class Reading(NamedTuple):
    """Settings of the conversion of a raw block to a Part."""

    n_features: int
    dtype: np.dtype
    owner: str  # name of the estimator, for messages
    names: np.ndarray | None = None  # of the features, for messages
    weight_exponent: int = 0  # weights are multiplied by 2 to this power
    heaviest: float = 0.0  # the largest weight; 0 if unknown
    change: Callable | None = None  # rows -> rows
    place: Callable | None = None  # rows -> labels

    def __call__(self, X, weights, number, first_chunk, check=False):
        if check:
            X = self._checked_rows(X, number)
            weights = _checked_weights(weights, len(X))
        if self.change is not None:
            X = self.change(np.ascontiguousarray(X, dtype=self.dtype))
        # Kernels take only writable arrays; arrays from other processes are read-only.
        X = np.require(X, self.dtype if self.change is None else X.dtype, "CW")
        weights = np.ones(len(X)) if weights is None else np.require(weights, np.float64, "CW")
        if self.heaviest > 0:
            weights = ordinary_weights(weights, self.weight_exponent, self.heaviest, self.dtype)
        labels = None if self.place is None else self.place(X)
        return Part(X, weights, number, first_chunk, labels)

    def _checked_rows(self, X, number):
        X = check_array(
            X,
            dtype=self.dtype,
            order="C",
            ensure_min_samples=0,
            ensure_all_finite=False,
            estimator=self.owner,
            input_name="X",
        )
        if not is_sound(X):
            refuse_infinite_columns(X, self.owner, self.names)
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"{self.owner} needs the same {self.n_features} features in every block, "
                f"but block {number} has {X.shape[1]}."
            )
        return X


def _checked_weights(weights, n_rows):
    """Check the weights of one block; a block without positive weights is allowed."""
    if weights is None:
        return None
    weights = check_array(
        weights,
        dtype=np.float64,
        ensure_2d=False,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    if len(weights) != n_rows:
        raise ValueError(
            f"Found a block of {n_rows} rows with {len(weights)} sample weights; "
            "X and sample_weight must be divided into blocks of the same lengths."
        )
    check_non_negative(weights, "`sample_weight`")
    return weights


class Order(NamedTuple):
    """Functions and arguments of the tasks of one pass."""

    run: Callable  # (rows, request) -> result
    combine: Callable  # (list of results in the order of the blocks) -> result
    request: Any
    reading: Reading
    check: bool


def _run(order, rows, weights, number, first_chunk):
    """Run the task of one block."""
    run, _, request, reading, check = order.value
    return run(reading(read(rows), read(weights), number, first_chunk, check), request)


def _combine(order, parts):
    """Run a task that combines the results of consecutive blocks."""
    return order.value.combine(parts)


class Blocks:
    """The blocks of a Dask array with one chunk of columns, and the weights of the rows.

    Parameters
    ----------
    array : dask.array.Array of shape (n_samples, n_features)
        The rows. The lengths of the blocks may be unknown.
    weights : dask.array.Array of shape (n_samples,) or None
        Weights of the rows, in blocks of the same lengths.
    dtype : dtype
        float32 or float64.
    owner : str
        Name of the estimator.
    names : ndarray or None
        Names of the features.
    """

    def __init__(self, array, weights, dtype, owner, names=None):
        self.array, self.weights, self.lengths = array, weights, None
        self.fit = uuid4().hex  # first part of the keys in the workers' caches
        self._reading = Reading(array.shape[1], np.dtype(dtype), owner, names)
        self._sources, self._graph = find_sources(array, weights, _scheduler(array)[1])
        self._first_chunks = [0] * len(self._sources)
        self._held = None  # the futures of the last pass

    def with_weights(self, exponent, heaviest):
        """Return the same blocks with weights times 2^exponent; `heaviest` is the largest."""
        other = copy(self)
        other._reading = self._reading._replace(weight_exponent=exponent, heaviest=heaviest)
        return other

    @property
    def names(self):
        return self._reading.names

    @property
    def dtype(self):
        return self._reading.dtype

    def __len__(self):
        return int(sum(self.lengths))

    @property
    def shape(self):
        return len(self), self.array.shape[1]

    @property
    def n_blocks(self):
        return len(self._sources)

    def set_lengths(self, lengths):
        """Set the number of rows of each block, and number the chunks accordingly."""
        self.lengths = np.asarray(lengths, dtype=np.int64)
        n_chunks = -(-self.lengths // chunk_rows(self.array.shape[1]))
        self._first_chunks = np.concatenate([[0], np.cumsum(n_chunks)[:-1]]).tolist()

    def known_array(self):
        """Return the Dask array of the rows, with the lengths of its blocks."""
        array = self.array.copy()
        array._chunks = (tuple(int(length) for length in self.lengths), array.chunks[1])
        return array

    def reduce(self, run, combine, request, check=False, change=None, place=None):
        """Make one pass: call run(part, request) on each block, and combine the results.

        `change` is applied to the rows of each block, and `place` then makes labels for them.
        """
        reading = self._reading._replace(change=change, place=place)
        order = Sealed(Order(run, combine, request, reading, check))
        name, layer = f"cafelearn-{run.__name__.strip('_')}-{uuid4().hex}", {}
        # With few blocks, each task contains the Order, which saves a round trip; with many,
        # all tasks share one copy.
        if self.n_blocks > FAN_IN:
            layer[f"order-{name}"] = order
            order = f"order-{name}"
        for number, (rows, weights) in enumerate(self._sources):
            first_chunk = self._first_chunks[number]
            layer[name, number] = (_run, order, rows, weights, number, first_chunk)
        keys, level = [(name, number) for number in range(self.n_blocks)], 0
        while level == 0 or len(keys) > 1:
            level += 1
            parts, keys = keys, []
            for i in range(0, len(parts), FAN_IN):
                keys.append((f"{name}-{level}", i))
                layer[keys[-1]] = (_combine, order, parts[i : i + FAN_IN])
        graph = HighLevelGraph(
            {**self._graph.layers, name: layer},
            {**self._graph.dependencies, name: set(self._graph.layers)},
        )
        (part,) = self._compute(graph, keys)
        return part

    def _compute(self, graph, keys):
        schedule, client = _scheduler(self.array)
        annotations = {}
        if client is not None and isinstance(self._sources[0][0], Sealed):
            # Read a block on the same worker in each pass, because its labels are cached there.
            place = partial(_place, sorted(client.nthreads()), self.n_blocks)
            annotations = {"workers": place, "allow_other_workers": True}
        with dask.annotate(**annotations):
            if client is None:
                return list(schedule(graph, keys))
            futures = schedule(graph, keys, sync=False)
        # Release the futures of the previous pass only after this one is submitted: the
        # client sends a release at once, which would delay its next message by 10 ms.
        self._held = futures
        with _slot_given_up():
            return client.gather(futures)

    def forget(self, key):
        """Remove the entries whose keys begin with `key` from the caches of all workers."""
        _, client = _scheduler(self.array)
        if client is None:
            forget(key)
        else:
            client.run(forget, key, on_error="ignore")


def _scheduler(array):
    """Return the function that computes graphs, and its Client if it has one."""
    schedule = get_scheduler(collections=[array])
    client = getattr(schedule, "__self__", None)
    return schedule, client if hasattr(client, "nthreads") else None


@contextmanager
def _slot_given_up():
    """Let other tasks of the worker run while a task, if this is one, waits for them."""
    from distributed import rejoin, secede

    try:
        secede()
        seceded = True
    except (ValueError, AttributeError, KeyError):  # not in a task, or it has done so already
        seceded = False
    try:
        yield
    finally:
        if seceded:
            rejoin()


def _place(workers, n_blocks, key):
    """Return the worker of a task, the same in each pass; an empty list means any worker."""
    if not workers or not isinstance(key, tuple):
        return []
    return [workers[key[1] * len(workers) // n_blocks % len(workers)]]
