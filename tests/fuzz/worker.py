"""The process that runs cases: one line of JSON in, its findings as one line out."""

import contextlib
import json
import os
import resource
import sys
import traceback

from tests.fuzz import WHAT

# Address space that a case may add to that of the imported libraries; compiling counts, too.
MEMORY = 1 << 30
SOURCE = os.sep + "cafelearn" + os.sep


def main():
    """Run cases until the input ends."""
    # What libraries print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        outcome, findings = run(json.loads(line))
        answers.write(json.dumps([outcome, [str(finding) for finding in findings]]) + "\n")
        answers.flush()


def run(case):
    """How a case ended and its findings; an exception is one."""
    function = WHAT[case["what"]]()
    with limited_memory():
        try:
            return function(case)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rpartition(SOURCE)[2]}:{place.lineno}"
            message = str(error).partition("\n")[0]
            return "raised", [f"raises {type(error).__name__} ({where}): {message}"]


@contextlib.contextmanager
def limited_memory():
    """Limit the address space to what is used now and MEMORY."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


if __name__ == "__main__":
    main()
