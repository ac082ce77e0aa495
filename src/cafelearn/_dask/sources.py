"""Where the blocks of a Dask collection come from, and how a task gets hold of one.

A block that is in the memory of a cluster is named by its Future. One that can be read or
made on its own, from a file for instance, comes as the tasks that do it, and they run
inside the task that needs the block: no worker ever holds more blocks than it works on,
which Dask's scheduler does not promise when reading is a task of its own. Any other, such
as a block that depends on its neighbours, is named by its key and left to the scheduler.
"""

import pickle
from collections import Counter

import cloudpickle
import dask
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from dask.optimization import cull

# Tasks of this many bytes may be sent to the workers in every pass; so may data that
# several of them share, such as an open file.
SMALL = 100_000


class Sealed:
    """A value that Dask passes on as it is, without looking for tasks inside.

    It travels in one piece: many small arrays take longer if each is sent on its own.
    """

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return _unsealed, (cloudpickle.dumps(self.value),)


def _unsealed(data):
    return Sealed(pickle.loads(data))


def read(source):
    """The block that a source stands for, once it has come to the worker."""
    return dask.get(*source.value) if isinstance(source, Sealed) else source


def find_sources(array, weights, client):
    """(source of the rows, source of their weights) of every block, and what graph they need.

    With a `client`, blocks that hold rows of this process are sent to its workers once.
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
    """The source of every block and the graph that they need."""
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
    """Whether tasks carry so much data that it must be what is in this process's memory."""
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
    except Exception:  # what cannot be pickled raises whatever it likes
        return False


def _futures(collection):
    """The Futures of a collection by their keys."""
    try:
        from distributed import futures_of
    except ImportError:  # then nobody can have made any
        return {}
    return {future.key: future for future in futures_of(collection)}
