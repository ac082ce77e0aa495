"""Cache of arrays in a process, kept between passes.

Every entry can be recomputed from a block and a model. A lost worker, a block that moves to
another worker or a full cache therefore costs time, but changes no result.
"""

from threading import Lock

# Largest size of the cache of one process; arrays that do not fit are recomputed.
LIMIT = 128 * 2**20


class Cache:
    """Dictionaries of arrays by (fit or draw, block), up to `limit` bytes in total."""

    def __init__(self, limit):
        self.limit, self.size = limit, 0
        self._entries, self._lock = {}, Lock()

    def get(self, key):
        """Return the arrays stored under `key`, an empty dictionary if there are none."""
        with self._lock:
            return self._entries.get(key, {})

    def put(self, key, arrays):
        """Replace the entry by a dictionary of arrays if there is room.

        No other entry is evicted: blocks are processed in a fixed order, so evicting the
        oldest entry would evict each one shortly before it is needed.
        """
        with self._lock:
            self._drop(key)
            if self.size + _size(arrays) <= self.limit:
                self._entries[key] = arrays
                self.size += _size(arrays)

    def forget(self, first):
        """Remove all entries whose key begins with `first`."""
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
    """Remove all entries of this process whose key begins with `first`."""
    CACHE.forget(first)
