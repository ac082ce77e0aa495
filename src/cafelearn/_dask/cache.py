"""Cache of arrays in a process, kept between passes.

Every entry can be recomputed from a block and a model. A lost worker, a block that moves to
another worker or a full cache therefore costs time, but changes no result.
"""

from threading import Lock

# Largest size of the cache of one process; arrays that do not fit are recomputed.
LIMIT = 128 * 2**20


class Cache:
    """Arrays by key (fit, kind, block, ...), up to `limit` bytes in total."""

    def __init__(self, limit):
        self.limit, self.size = limit, 0
        self._entries, self._lock = {}, Lock()

    def get(self, key, version):
        """Return the arrays stored under `key` if they have this version, else None."""
        with self._lock:
            stored, arrays = self._entries.get(key, (None, None))
        return arrays if stored == version else None

    def put(self, key, version, arrays):
        """Store a tuple of arrays if there is room.

        No other entry is evicted: blocks are processed in a fixed order, so evicting the
        oldest entry would evict each one shortly before it is needed.
        """
        added = sum(array.nbytes for array in arrays)
        with self._lock:
            self._drop(key)
            if self.size + added <= self.limit:
                self._entries[key] = (version, arrays)
                self.size += added

    def drop(self, key):
        """Remove one entry."""
        with self._lock:
            self._drop(key)

    def forget(self, fit, kind=None):
        """Remove all entries of a fit, or one kind of them."""
        with self._lock:
            for key in list(self._entries):
                if key[0] == fit and kind in (None, key[1]):
                    self._drop(key)

    def _drop(self, key):
        _, arrays = self._entries.pop(key, (None, ()))
        self.size -= sum(array.nbytes for array in arrays)


CACHE = Cache(LIMIT)


def forget(fit, kind=None):
    """Remove all entries of a fit in this process, or one kind of them."""
    CACHE.forget(fit, kind)
