"""A Dask collection as numbered blocks of rows, and the passes over them.

A pass runs tasks on all blocks. Their results are combined on the workers until
few parts are left, so that the client receives as much for a thousand blocks as for ten.
"""

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import numpy as np
from dask.base import get_scheduler
from dask.highlevelgraph import HighLevelGraph
from sklearn.utils import check_array
from sklearn.utils.validation import check_non_negative

from cafelearn._dask.cache import forget
from cafelearn._dask.sources import Sealed, find_sources, read
from cafelearn._scaling import scale_rows
from cafelearn._solver.kernels.geometry import chunk_rows
from cafelearn._validation import ordinary_weights

# Largest number of parts that one task, or the client, combines.
FAN_IN = 16
# Blocks that are not consecutive share a task only if there are at most this many blocks.
SCATTERED = 64
# The blocks of one task take at most this share of a worker's memory.
TASK_MEMORY = 0.4


class Rows(NamedTuple):
    """One block in a pass."""

    X: np.ndarray  # C-contiguous float32 or float64
    sample_weight: np.ndarray  # float64
    number: int  # of the block
    first_chunk: int  # number of its first chunk among those of all blocks
    fit: str  # key of the fit in the cache

    @property
    def last_chunk(self):
        """The number of the first chunk of the next block."""
        return self.first_chunk + -(-len(self.X) // chunk_rows(self.X.shape[1]))


class View(NamedTuple):
    """Rows in one scaling, with a key for the cache."""

    fit: str
    scaler: Any  # fitted, or None

    def __call__(self, rows):
        return rows._replace(X=scale_rows(self.scaler, rows.X), fit=self.fit)


class Reading(NamedTuple):
    """Conversion of a raw block to Rows."""

    fit: str
    n_features: int
    dtype: np.dtype
    owner: str  # name of the estimator, for messages
    scaler: Any  # fitted, or None
    weight_exponent: int = 0  # weights are multiplied by 2 to this
    heaviest: float = 0.0  # the largest weight, if it is known

    def __call__(self, block, weights, number, first_chunk, check=False):
        X = block
        if self.scaler is not None:
            X = scale_rows(self.scaler, np.ascontiguousarray(block, dtype=self.dtype))
        if check:
            X = check_array(
                X,
                dtype=self.dtype,
                order="C",
                ensure_min_samples=0,
                ensure_all_finite="allow-nan",
                estimator=self.owner,
                input_name="X",
            )
            if X.shape[1] != self.n_features:
                raise ValueError(
                    f"{self.owner} needs the same {self.n_features} features in every block, "
                    f"but block {number} has {X.shape[1]}."
                )
            weights = _checked(weights, len(X))
        X = np.ascontiguousarray(X, dtype=self.dtype)
        if weights is None:
            weights = _ones(len(X))
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if self.heaviest > 0:
            weights = ordinary_weights(weights, self.weight_exponent, self.heaviest, self.dtype)
        return Rows(_writable(X), _writable(weights), number, first_chunk, self.fit)


@lru_cache(maxsize=4)
def _ones(n_rows):
    """Equal weights, cached for later blocks and passes."""
    return np.ones(n_rows)


def _checked(weights, n_rows):
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
            "X and sample_weight must be divided alike."
        )
    check_non_negative(weights, "`sample_weight`")
    return weights


class _Lent:
    """Interface that marks a read-only array as writable.

    Kernels are compiled only for writable arrays. None of them writes to rows, so rows received
    from other processes need not be copied.
    """

    def __init__(self, array):
        self.array = array
        pointer, _ = array.__array_interface__["data"]
        self.__array_interface__ = array.__array_interface__ | {"data": (pointer, False)}


def _writable(array):
    return array if array.flags.writeable else np.asarray(_Lent(array))


class Order(NamedTuple):
    """One pass: the function of its tasks and its arguments."""

    run: Callable  # (rows, request) -> part
    combine: Callable  # (list of parts in their order) -> part
    request: Any
    reading: Reading
    check: bool


def _run(order, rows, weights, numbers, first_chunks):
    """One task: some blocks. Returns their parts, each with the number of its first block."""
    order, parts = order.value, []
    for block in zip(rows, weights, numbers, first_chunks, strict=True):
        raw, heavy, number, first_chunk = block
        data = order.reading(read(raw), read(heavy), number, first_chunk, order.check)
        parts.append((number, order.run(data, order.request)))
    return Sealed(_joined(order, parts))


def _joined(order, parts):
    """Combine the parts of consecutive blocks."""
    runs = []
    for number, part in parts:
        if runs and number == runs[-1][0] + len(runs[-1][1]):
            runs[-1][1].append(part)
        else:
            runs.append((number, [part]))
    return [(number, order.combine(run) if len(run) > 1 else run[0]) for number, run in runs]


def _combine(order, tasks):
    """Combine the parts of tasks that together cover consecutive blocks."""
    return Sealed(_in_order(order.value.combine, tasks))


def _in_order(combine, tasks):
    parts = sorted((part for task in tasks for part in task.value), key=itemgetter(0))
    return [(parts[0][0], combine([part for _, part in parts]))]


class Blocks:
    """The blocks of a Dask array with one chunk of columns, with the rows' weights.

    Parameters
    ----------
    array : dask.array.Array of shape (n_samples, n_features)
        The rows. Numbers of rows may be unknown.
    weights : dask.array.Array of shape (n_samples,) or None
        Their weights, in blocks of the same lengths.
    dtype : dtype
        float32 or float64.
    owner : str
        Name of the estimator.
    """

    def __init__(self, array, weights, dtype, owner):
        self.array, self.weights = array, weights
        self.dtype, self.lengths = np.dtype(dtype), None
        self._reading = Reading(uuid4().hex, array.shape[1], self.dtype, owner, None)
        _, client = _scheduler(array)
        self._sources, self._graph = find_sources(array, weights, client)
        self._first_chunks = [0] * len(self._sources)
        self._groups = _groups(self._sources, client, self._largest())
        self._held = None  # the futures of the last pass

    def _largest(self):
        """Bytes of the largest block, or 0 if unknown."""
        rows = max(self.array.chunks[0], default=0)
        return 0 if np.isnan(rows) else int(rows) * self.array.shape[1] * self.array.itemsize

    def scaled(self, scaler):
        """The same blocks, scaled by a fitted scaler."""
        other = copy(self)
        other._reading = self._reading._replace(fit=uuid4().hex, scaler=scaler)
        return other

    def widen(self):
        """Let later passes see the rows in float64."""
        self.dtype = np.dtype(np.float64)
        self._reading = self._reading._replace(dtype=self.dtype)

    def normalise_weights(self, exponent, heaviest):
        """Multiply the weights in later passes by a power of two; `heaviest` is the largest."""
        self._reading = self._reading._replace(weight_exponent=exponent, heaviest=heaviest)

    @property
    def fit(self):
        """Key of these blocks in the caches of the workers."""
        return self._reading.fit

    @property
    def view(self):
        """The scaling of these blocks and its key."""
        return View(self.fit, self._reading.scaler)

    def __len__(self):
        return int(sum(self.lengths))

    @property
    def shape(self):
        return len(self), self.array.shape[1]

    @property
    def n_blocks(self):
        return len(self._sources)

    def set_lengths(self, lengths):
        """Set the numbers of rows, which determine the numbers of the chunks."""
        self.lengths = np.asarray(lengths, dtype=np.int64)
        n_chunks = -(-self.lengths // chunk_rows(self.array.shape[1]))
        self._first_chunks = np.concatenate([[0], np.cumsum(n_chunks)[:-1]]).tolist()

    def reduce(self, run, combine, request, check=False):
        """Make one pass: run(rows, request) for every block, combined in their order."""
        order = Order(run, combine, request, self._reading, check)
        name = f"cafelearn-{run.__name__.strip('_')}-{uuid4().hex}"
        # A few tasks get the order directly, which saves a round trip; many share one copy.
        told, layer = Sealed(order), {}
        if len(self._groups) > FAN_IN:
            told = f"order-{name}"
            layer[told] = Sealed(order)
        keys = []
        for numbers in self._groups:
            rows, weights = map(list, zip(*(self._sources[i] for i in numbers), strict=True))
            first_chunks = [self._first_chunks[i] for i in numbers]
            keys.append((name, numbers[0]))
            layer[keys[-1]] = (_run, told, rows, weights, numbers, first_chunks)
        level = 0
        while len(keys) > FAN_IN:
            level += 1
            parts, keys = keys, []
            for i in range(0, len(parts), FAN_IN):
                keys.append((f"{name}-{level}", i))
                layer[keys[-1]] = (_combine, told, parts[i : i + FAN_IN])
        graph = HighLevelGraph(
            {**self._graph.layers, name: layer},
            {**self._graph.dependencies, name: set(self._graph.layers)},
        )
        ((_, part),) = _in_order(combine, self._compute(graph, keys))
        return part

    def _compute(self, graph, keys):
        schedule, client = _scheduler(self.array)
        if client is None:
            return list(schedule(graph, keys))
        with dask.annotate(**_places(client, self._sources, self.n_blocks)):
            futures = schedule(graph, keys, sync=False)
        # The futures of the last pass are released only now, after this one is submitted: the
        # client sends a release at once and would hold back the next message for 10 ms.
        self._held = futures
        return client.gather(futures)

    def forget(self, kind=None):
        """Clear the workers' caches of these blocks, or of one kind of entries."""
        _, client = _scheduler(self.array)
        if client is None:
            forget(self.fit, kind)
        else:
            client.run(forget, self.fit, kind, on_error="ignore")


def _scheduler(array):
    """The function that computes graphs, and the Client behind it or None."""
    schedule = get_scheduler(collections=[array])
    client = getattr(schedule, "__self__", None)
    return schedule, client if hasattr(client, "nthreads") else None


def _groups(sources, client, block_bytes):
    """Group the numbers of the blocks into tasks.

    Blocks in the memory of one worker are grouped, because a task has more overhead than a
    short pass over a block in memory. A worker gets a task for each of its threads, or more if
    the blocks would exceed its memory. If parts must be combined before the client gets them,
    only consecutive blocks are grouped.
    """
    alone = [[number] for number in range(len(sources))]
    if client is None or not all(hasattr(rows, "key") for rows, _ in sources):
        return alone
    held, threads = client.who_has([rows for rows, _ in sources]), client.nthreads()
    homes = [min(held.get(rows.key) or [""]) for rows, _ in sources]
    at_home = {home: [i for i, other in enumerate(homes) if other == home] for home in homes}
    room = _room(client, block_bytes)
    at_most = {
        home: max(1, min(-(-len(blocks) // threads.get(home, 1)), room.get(home, len(blocks))))
        for home, blocks in at_home.items()
    }
    tasks = {home: -(-len(blocks) // at_most[home]) for home, blocks in at_home.items()}
    if len(sources) <= SCATTERED and sum(tasks.values()) <= FAN_IN:
        shares = [np.array_split(at_home[home], tasks[home]) for home in at_home]
        return sorted(share.tolist() for parts in shares for share in parts)
    groups = []
    for number, home in enumerate(homes):
        if groups and homes[groups[-1][0]] == home and len(groups[-1]) < at_most[home]:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _room(client, block_bytes):
    """Largest number of blocks of a task on each worker with limited memory.

    Dask may have spilled some of a worker's blocks to disk, and reloads all that a task needs.
    """
    if block_bytes == 0:
        return {}
    workers = client.scheduler_info()["workers"]
    return {
        name: int(TASK_MEMORY * worker["memory_limit"] // block_bytes)
        for name, worker in workers.items()
        if worker.get("memory_limit")
    }


class ByNumber:
    """Map every block of rows to a worker, the same in each pass."""

    def __init__(self, workers, n_blocks):
        self.workers, self.n_blocks = workers, n_blocks

    def __call__(self, key):
        number = key[1] if isinstance(key, tuple) and len(key) > 1 else None
        if not isinstance(number, int) or not self.workers:
            return []
        return [self.workers[number * len(self.workers) // self.n_blocks % len(self.workers)]]


def _places(client, sources, n_blocks):
    """Annotations that read a block on the same worker in each pass.

    That worker may have cached its labels. Blocks in memory stay where they are.
    """
    if not any(isinstance(rows, Sealed) for rows, _ in sources):
        return {}
    workers = sorted(client.nthreads())
    return {"workers": ByNumber(workers, n_blocks), "allow_other_workers": True}
