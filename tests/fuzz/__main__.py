"""The command: draw cases until the time is over, and print findings with their cases."""

import argparse
import json
import sys
import time

import numpy as np
from tests.fuzz import DRAWS, SMALLER, WHAT
from tests.fuzz.corpus import CORPUS
from tests.fuzz.workers import Worker

# Seconds to look for a smaller case that shows the same.
SHRINKING = 30


def main(arguments=None):
    """Run the fuzzer; returns 1 if something was found."""
    options = parse(arguments)
    worker, found, counts, kinds = Worker(), 0, {}, {}
    try:
        for case in cases(options):
            findings = worker.run(case)
            counts[case["what"]] = counts.get(case["what"], 0) + 1
            if findings:
                found += 1
                name = kind(findings[0])
                kinds[name] = kinds.get(name, 0) + 1
                if kinds[name] <= options.most:
                    report(worker, case, findings)
    except KeyboardInterrupt:
        say("Interrupted.")
    finally:
        worker.close()
    ran = ", ".join(f"{count} {what}" for what, count in counts.items())
    say(f"{ran or 'no cases'}: {found} with findings")
    for name, count in sorted(kinds.items()):
        say(f"  {count} x {name}")
    return 1 if found else 0


def parse(arguments):
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument(
        "--cases", type=int, default=sys.maxsize, help="at most, beside the corpus"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--what", choices=list(WHAT), help="default: all, by turns")
    parser.add_argument("--case", type=json.loads, help="run this case alone")
    parser.add_argument("--most", type=int, default=3, help="of one kind to print")
    return parser.parse_args(arguments)


def cases(options):
    """Corpus first; then new cases until the time is over, which the corpus does not use."""
    if options.case:
        yield options.case
        return
    wanted = [options.what] if options.what else list(WHAT)
    yield from (case for case in CORPUS if case["what"] in wanted)
    rng = np.random.default_rng(options.seed)
    until = time.monotonic() + 60 * options.minutes
    turn = 0
    while time.monotonic() < until and turn < options.cases:
        # Fits take most of the turns: they are the larger space.
        what = wanted[0] if len(wanted) == 1 or turn % 2 else wanted[1 + turn // 2 % 2]
        yield DRAWS[what](rng)
        turn += 1


def report(worker, case, findings):
    """Print a finding with the smallest case that shows one of the same kind."""
    until = time.monotonic() + SHRINKING
    shown, seen = case, findings
    tried = True
    while tried and time.monotonic() < until:
        tried = False
        for other in SMALLER[case["what"]](shown):
            again = worker.run(other)
            if again and kind(again[0]) == kind(findings[0]):
                shown, seen, tried = other, again, True
                break
            if time.monotonic() > until:
                break
    say(f"FOUND {seen[0]}" + (f" (and {len(seen) - 1} more)" if len(seen) > 1 else ""))
    say(f"  python -m tests.fuzz --case '{json.dumps(shown)}'")


def kind(finding):
    """Return the first words of a finding, which identify its kind."""
    return finding.split(" [")[0].split(":")[0].split(" by ")[0]


def say(text):
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
