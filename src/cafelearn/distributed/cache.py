"""Cache of arrays in each process, kept between passes.

Every entry can be recomputed from a block and the request of a pass. If an entry is missing,
because a worker was lost, a block moved to another worker or the cache was full, the pass takes
longer but its result is the same.
"""

from threading import Lock

# Largest size in bytes of the cache of one process; arrays that do not fit are recomputed.
LIMIT = 128 * 2**20


class Cache:
    """Dictionaries of arrays by (fit or draw, block), up to `limit` bytes in total."""

    def __init__(self, limit):
        self.limit, self.size = limit, 0
        self._entries, self._lock = {}, Lock()

    def get(self, key):
        """Return the arrays stored under `key`; an empty dictionary if there are none."""
        with self._lock:
            return self._entries.get(key, {})

    def put(self, key, arrays):
        """Store a dictionary of arrays under `key`; if it does not fit, store nothing.

        The old entry of `key` is removed in any case. Other entries are not evicted: blocks are
        processed in a fixed order, so the oldest entry would always be evicted shortly before
        it is needed.
        """
        with self._lock:
            self._drop(key)
            if self.size + _size(arrays) <= self.limit:
                self._entries[key] = arrays
                self.size += _size(arrays)

    def forget(self, first):
        """Remove the entries of all keys that begin with `first`."""
        with self._lock:
            for key in list(self._entries):
                if key[0] == first:
                    self._drop(key)

    def _drop(self, key):
        self.size -= _size(self._entries.pop(key, {}))


def _size(arrays):
    return sum(array.nbytes for array in arrays.values())


CACHE = Cache(LIMIT)


def forget(first):
    """Remove the entries of all keys that begin with `first` from this process."""
    CACHE.forget(first)
