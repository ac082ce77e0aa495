"""Try to read Parquet or Feather files in this process, whose memory is limited.

Arrow allocates as many bytes as the headers of a file state, and some damaged files crash it.
`cafelearn.cli.arrow` runs this module as a script before it reads the files itself. The
arguments are the limit in bytes and the kind of the files, whose paths are a list in JSON on
standard input. The first file that cannot be read is described in JSON on standard output.
"""

import json
import sys


def main(limit, kind):
    """Read the files and discard them; return the exit code."""
    import pandas  # noqa: F401 (imported before the memory is limited)
    import pyarrow.feather
    import pyarrow.parquet  # noqa: F401

    paths = json.load(sys.stdin)
    _limit_memory(int(limit))
    for path in paths:
        try:
            for table in _tables(path, kind):
                table.validate(full=True)
                table.to_pandas(use_threads=False, ignore_metadata=kind == "groups")
        except MemoryError:
            return _tell(path=path, needs_more=True)
        except Exception as error:  # damaged files cause exceptions of many types
            words = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
            return _tell(path=path, words=words)
    return 0


def _limit_memory(limit):
    """Limit the memory that this process may still allocate; only Linux enforces it."""
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = used + limit
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


def _tables(path, kind):
    """Yield the table of a file or, if `kind` is "groups", each row group of a Parquet file."""
    from pyarrow import feather, parquet

    if kind == "feather":
        # Without a memory map, Arrow would allocate what the headers of the messages state.
        yield feather.read_table(path, use_threads=False, memory_map=True)
        return
    with parquet.ParquetFile(path) as file:
        if kind == "parquet":
            yield file.read(use_threads=False)
            return
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, use_threads=False)


def _tell(**finding):
    sys.stdout.write(json.dumps(finding) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
