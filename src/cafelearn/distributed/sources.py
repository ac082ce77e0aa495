"""Sources, from which workers obtain the blocks of a Dask collection. There are three kinds:

* A block in the memory of a cluster: its Future.
* A block that can be computed without the others, for instance read from a file: the tasks that
  compute it. They run inside the task that needs the block, so a worker never holds more blocks
  than it works on. If reading were a task of its own, the scheduler would not guarantee this.
* Any other block, such as one that depends on its neighbours: its key in the graph. The
  scheduler computes the block.
"""

from collections import Counter

import cloudpickle
import dask
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from dask.optimization import cull

# Largest size in bytes of the tasks of a block, which are sent to a worker in every pass. It is
# also the largest size of data that several blocks share, such as an open file.
SMALL = 100_000


class Sealed:
    """A value that Dask passes on unchanged, without looking for tasks inside it."""

    def __init__(self, value):
        self.value = value


def read(source):
    """Return the block of a source; called on the worker."""
    return dask.get(*source.value) if isinstance(source, Sealed) else source


def find_sources(array, weights, client):
    """Return (source of the rows, source of their weights) of every block, and their graph.

    With a `client`, rows that are in this process are sent to its workers once.
    """
    layers, dependencies, columns = {}, {}, []
    for collection in (array, weights):
        if collection is None:
            columns.append([None] * array.numblocks[0])
            continue
        sources, graph = _sources(collection)
        if client is not None and _hold_rows(sources, graph):
            sources, graph = _sources(client.persist(collection))
        columns.append(sources)
        layers |= graph.layers
        dependencies |= graph.dependencies
    return list(zip(*columns, strict=True)), HighLevelGraph(layers, dependencies)


def _sources(collection):
    """Return the source of every block and the graph that the sources need."""
    blocks = collection.to_delayed().ravel()
    graph, held = blocks[0].__dask_graph__(), _futures(collection)
    if held:
        return [held.get(block.key, block.key) for block in blocks], graph
    tasks = dict(graph)
    parts = [cull(tasks, [block.key])[0] for block in blocks]
    uses = Counter(key for part in parts for key in part)
    shared = {key for key, count in uses.items() if count > 1}
    if all(_is_data(tasks[key]) and _is_small(tasks[key]) for key in shared):
        sealed = [Sealed((part, block.key)) for part, block in zip(parts, blocks, strict=True)]
        return sealed, HighLevelGraph({}, {})
    return [block.key for block in blocks], graph


def _hold_rows(sources, graph):
    """Check whether tasks contain so much data that it must be rows of the collection."""
    found = [source.value for source in sources if isinstance(source, Sealed)]
    found += [task for task in dict(graph).values() if _is_data(task)]
    return not all(map(_is_small, found))


def _is_data(task):
    return isinstance(task, np.ndarray) or type(task).__name__ == "DataNode"


def _is_small(task):
    value = getattr(task, "value", task)
    if isinstance(value, np.ndarray):
        return value.nbytes <= SMALL
    try:
        return len(cloudpickle.dumps(value)) <= SMALL
    except Exception:  # pickling can raise any exception
        return False


def _futures(collection):
    """Return the Futures of a collection by key."""
    try:
        from distributed import futures_of
    except ImportError:  # without distributed there are no Futures
        return {}
    return {future.key: future for future in futures_of(collection)}
