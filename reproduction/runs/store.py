"""Store the records of an experiment in one SQLite file, with one commit per run."""

import json
import sqlite3
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import get_args, get_type_hints

import pandas as pd

FORMAT = 1
TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}


class StoreError(OSError):
    """The records cannot be read or written."""


class NoRunsError(StoreError, ValueError):
    """There are no records, or they belong to other settings or to another experiment."""


class Store:
    """The records of an experiment in a directory, which is created if it does not exist.

    All runs in a directory have the same settings. Without `settings`, the file of records must
    exist, and its settings are not checked.
    """

    def __init__(self, directory, experiment, settings=None):
        self._record, self._key = experiment.record, experiment.key()
        self.path = Path(directory) / experiment.file
        if settings is None and not self.path.exists():
            raise NoRunsError(
                f"There are no runs in {directory}: it has no file {experiment.file}."
            )
        with self._explained("open"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Writers wait for each other; a commit takes milliseconds.
            self._connection = sqlite3.connect(self.path, timeout=60)
            if settings is not None:
                self._prepare(asdict(settings))

    def _prepare(self, settings):
        self._connection.execute("PRAGMA journal_mode=WAL")
        columns = ", ".join(_columns(self._record))
        with self._connection:
            self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS runs ({columns}, "
                f"PRIMARY KEY ({', '.join(self._key)}))"
            )
            self._connection.execute("CREATE TABLE IF NOT EXISTS about (what TEXT)")
            about = json.dumps({"format": FORMAT, "settings": settings}, sort_keys=True)
            if not self._about():
                self._connection.execute("INSERT INTO about VALUES (?)", (about,))
        if self._about() != about:
            raise NoRunsError(
                f"{self.path} holds runs with other settings ({self._about()}) than requested "
                f"({about}). Choose another directory."
            )

    def _about(self):
        row = self._connection.execute("SELECT what FROM about").fetchone()
        return row[0] if row else None

    def add(self, record):
        """Commit a record; an earlier record of the run is replaced only if it failed."""
        names = ", ".join(record._fields)
        marks = ", ".join("?" * len(record._fields))
        changes = ", ".join(f"{name} = excluded.{name}" for name in record._fields)
        with self._explained("write"), self._connection:
            self._connection.execute(
                f"INSERT INTO runs ({names}) VALUES ({marks}) ON CONFLICT DO UPDATE "
                f"SET {changes} WHERE runs.status != 'done'",
                record,
            )

    def ended(self, include_failed=True):
        """Return the set of keys (sample and method) of the runs that have a record."""
        wanted = "" if include_failed else " WHERE status = 'done'"
        with self._explained("read"):
            rows = self._connection.execute(f"SELECT {', '.join(self._key)} FROM runs{wanted}")
            return set(rows)

    def records(self):
        """Return all records, in the order of their keys."""
        with self._explained("read"):
            rows = self._connection.execute(
                f"SELECT {', '.join(self._record._fields)} FROM runs "
                f"ORDER BY {', '.join(self._key)}"
            )
            return [self._record(*row) for row in rows]

    def frame(self):
        """Return all records as a data frame."""
        return pd.DataFrame(self.records(), columns=self._record._fields)

    def close(self):
        """Close the connection to the file."""
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @contextmanager
    def _explained(self, doing):
        try:
            yield
        except StoreError:
            raise
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            words = " ".join(str(error).split())
            message = f"Cannot {doing} the runs in {self.path}: {words}."
            if _is_damage(error):
                message += " The file is damaged; restore a copy, or move it away and restart."
            elif doing != "read" and _is_hindrance(error):
                message += (
                    " All committed runs are saved; restart when there is disk space, the file "
                    "is writable and no other process has locked it."
                )
            raise StoreError(message) from error


def _is_damage(error):
    """Check whether an error means that the file, or text in it, is damaged."""
    # If text cannot be decoded, the error has no SQLite error code.
    code = getattr(error, "sqlite_errorcode", None)
    is_database_error = isinstance(error, sqlite3.DatabaseError)
    return isinstance(error, UnicodeDecodeError) or (
        is_database_error
        and (code is None or code & 255 in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
    )


def _is_hindrance(error):
    """Check whether an error is due to disk space, permissions or a lock."""
    return isinstance(error, OSError) or getattr(error, "sqlite_errorcode", 0) & 255 in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    )


def read_runs(source, experiment):
    """Read the records of an experiment, from its directory or a CSV file, as a data frame."""
    source = Path(source)
    if source.is_dir():
        with Store(source, experiment) as store:
            return store.frame()
    if not source.exists():
        raise NoRunsError(f"The runs must be in a directory or a CSV file, got {source}.")
    try:
        results = pd.read_csv(source)
    except (ValueError, OSError) as error:
        raise StoreError(f"Cannot read the runs in {source}: {error}") from error
    missing = [name for name in (*experiment.key(), "ari") if name not in results.columns]
    if missing:
        raise NoRunsError(f"{source} has no column {', '.join(missing)}: it holds no runs.")
    return results if "status" in results.columns else results.assign(status="done")


def _columns(record):
    """Yield the columns of the table of runs; fields without a default may not be null."""
    for name, hint in get_type_hints(record).items():
        kind = next(TYPES[part] for part in get_args(hint) or (hint,) if part in TYPES)
        yield f"{name} {kind}{'' if name in record._field_defaults else ' NOT NULL'}"
