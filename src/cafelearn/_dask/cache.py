"""What a worker remembers of its blocks between two passes.

Everything here can be worked out again from a block and a model, so nothing depends on it
but time: a worker that is lost, a block that moves to another worker or a full memory
change no result.
"""

from threading import Lock

# No more is remembered by one process; what comes after that is worked out again.
LIMIT = 128 * 2**20


class Cache:
    """Arrays by (fit, kind, block, ...), up to a number of bytes."""

    def __init__(self, limit):
        self.limit, self.size = limit, 0
        self._entries, self._lock = {}, Lock()

    def get(self, key, version):
        """The arrays stored under `key`, if they are of this version."""
        with self._lock:
            stored, arrays = self._entries.get(key, (None, None))
        return arrays if stored == version else None

    def put(self, key, version, arrays):
        """Store a tuple of arrays unless there is no room.

        Nothing else is dropped for them: blocks are visited in turns, and dropping the
        oldest would drop each one shortly before its turn.
        """
        added = sum(array.nbytes for array in arrays)
        with self._lock:
            self._drop(key)
            if self.size + added <= self.limit:
                self._entries[key] = (version, arrays)
                self.size += added

    def drop(self, key):
        """Forget one entry."""
        with self._lock:
            self._drop(key)

    def forget(self, fit, kind=None):
        """Forget all that belongs to a fit, or one kind of it."""
        with self._lock:
            for key in list(self._entries):
                if key[0] == fit and kind in (None, key[1]):
                    self._drop(key)

    def _drop(self, key):
        _, arrays = self._entries.pop(key, (None, ()))
        self.size -= sum(array.nbytes for array in arrays)


CACHE = Cache(LIMIT)


def forget(fit, kind=None):
    """Forget all that this process remembers of a fit, or one kind of it."""
    CACHE.forget(fit, kind)
