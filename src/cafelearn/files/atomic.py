"""Write files and directories atomically."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MODEL_SUFFIXES, PAGE_SUFFIXES = (".skops",), (".html", ".htm")


@contextmanager
def atomic_path(path, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` at the end of the `with` block.

    If the block raises, the temporary file is removed and an existing file is unchanged.

    Parameters
    ----------
    path : str or Path
        The file to write.
    force : bool, default=False
        Whether an existing file may be replaced.

    Yields
    ------
    temporary : Path
        A new name in the same directory, with the same suffixes as `path`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cafelearn.files.atomic import atomic_path
    >>> path = Path(tempfile.mkdtemp()) / "words.txt"
    >>> with atomic_path(path) as temporary:
    ...     _ = temporary.write_text("all or nothing")
    ...     path.exists()
    False
    >>> path.read_text()
    'all or nothing'
    """
    path = check_output(path, force)
    temporary = _beside(path)
    try:
        with _naming(path, temporary):
            yield temporary
        # Another process may have created the file meanwhile.
        check_output(path, force)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _naming(path, temporary):
    """Name `path` instead of `temporary` in write errors, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        named = error.filename is not None and str(temporary) not in str(error.filename)
        if named or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def _beside(path):
    """Return an unused path in the same directory."""
    return path.with_name(f".{secrets.token_hex(8)}-{path.name[-100:]}")


def check_suffix(option, path, known):
    """Raise unless an output path, if given, is a directory or has a known suffix.

    `option` is the option or the function that got the path, for the message.
    """
    if path is None or Path(path).is_dir() or Path(path).suffix.lower() in known:
        return
    suffix = Path(path).suffix
    found = f"unsupported extension {suffix!r}" if suffix else "no extension"
    raise ValueError(f"{option} {path}: {found}; expected {' or '.join(known)}.")


def check_output(path, force: bool = False) -> Path:
    """Raise unless a file can be written at `path`.

    Call it before a long computation whose result is to be written.

    Parameters
    ----------
    path : str or Path
        The file to write.
    force : bool, default=False
        Whether an existing file may be replaced.

    Returns
    -------
    path : Path
        The path.

    Examples
    --------
    >>> from cafelearn.files.atomic import check_output
    >>> check_output("nowhere/words.txt")
    Traceback (most recent call last):
    ...
    FileNotFoundError: cannot write nowhere/words.txt: the directory nowhere does not exist.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a directory.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {path}: the directory {path.parent} does not exist."
        )
    if path.exists() and not force:
        raise FileExistsError(
            f"cannot write {path}: it exists already. Use --force (force=True) to replace it."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: {path.parent} is not writable.")
    return path


@contextmanager
def atomic_directory(path, suffix: str, force: bool = False) -> Iterator[Path]:
    """Yield a temporary directory that is renamed to `path` at the end of the `with` block.

    If the block raises, the temporary directory is removed and an existing one is unchanged.

    Parameters
    ----------
    path : str or Path
        The directory to write.
    suffix : str
        Suffix of the files.
    force : bool, default=False
        Whether an existing directory may be replaced. A directory that contains anything but
        files with this suffix is never replaced.

    Yields
    ------
    temporary : Path
        A new directory beside `path`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cafelearn.files.atomic import atomic_directory
    >>> path = Path(tempfile.mkdtemp()) / "words"
    >>> with atomic_directory(path, ".txt") as temporary:
    ...     _ = (temporary / "a.txt").write_text("all or nothing")
    ...     path.exists()
    False
    >>> [file.name for file in path.iterdir()]
    ['a.txt']
    """
    path = check_directory(path, suffix, force)
    temporary = _beside(path)
    temporary.mkdir()
    try:
        with _naming(path, temporary):
            yield temporary
        check_directory(path, suffix, force)
        if path.exists():
            # A rename cannot replace a directory that is not empty.
            old = _beside(path)
            path.rename(old)
            try:
                temporary.rename(path)
            except BaseException:
                old.rename(path)
                raise
            shutil.rmtree(old)
        else:
            temporary.rename(path)
    except BaseException:
        # Threads may still be writing files. After the rename they fail, instead of adding
        # files to a directory that is being removed.
        with suppress(OSError):
            shutil.rmtree(temporary.rename(_beside(path)), ignore_errors=True)
        raise


def check_directory(path, suffix: str, force: bool = False) -> Path:
    """Raise unless a directory of files can be written at `path`.

    Parameters
    ----------
    path : str or Path
        The directory to write.
    suffix : str
        Suffix of the files.
    force : bool, default=False
        Whether an existing directory of files with this suffix may be replaced.

    Returns
    -------
    path : Path
        The path.

    Examples
    --------
    >>> from cafelearn.files.atomic import check_directory
    >>> check_directory(".", ".parquet", force=True)
    Traceback (most recent call last):
    ...
    FileExistsError: cannot write .: it exists and is not a directory of .parquet files.
    """
    path = Path(path)
    if not path.is_dir() and not path.exists():
        return check_output(path, force)
    strange = path.is_symlink() or not path.is_dir()
    if strange or any(not f.is_file() or f.suffix != suffix for f in path.iterdir()):
        raise FileExistsError(
            f"cannot write {path}: it exists and is not a directory of {suffix} files."
        )
    if not force:
        raise FileExistsError(
            f"cannot write {path}: it exists already. Use --force (force=True) to replace it."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: {path.parent} is not writable.")
    return path
