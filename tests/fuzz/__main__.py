"""The command: draw cases until the time is over, and print findings with their cases."""

import argparse
import json
import sys
import threading
import time
from collections import Counter

import numpy as np
from tests.fuzz import DRAWS, GROUPS, SMALLER, WHAT
from tests.fuzz.corpus import CORPUS
from tests.fuzz.workers import Worker

# Seconds to look for a smaller case that shows the same.
SHRINKING = 30


def main(arguments=None):
    """Run the fuzzer; returns 1 if something was found."""
    options = parse(arguments)
    run = Run(options)
    started = time.monotonic()
    threads = [threading.Thread(target=run.work, daemon=True) for _ in range(options.workers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        say("Interrupted.")
        run.stopped = True
        for thread in threads:
            thread.join()
    run.summarise(time.monotonic() - started)
    return 1 if run.kinds else 0


def parse(arguments):
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, help="default: 1, or no limit where --cases is given"
    )
    parser.add_argument("--cases", type=int, help="at most, beside the corpus")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(GROUPS), help="default: all, by turns")
    parser.add_argument("--workers", type=int, default=1, help="processes that run cases")
    parser.add_argument("--case", type=json.loads, help="run this case alone")
    parser.add_argument("--most", type=int, default=3, help="of one kind to print")
    options = parser.parse_args(arguments)
    if options.minutes is None:
        options.minutes = 1.0 if options.cases is None else float("inf")
    options.cases = sys.maxsize if options.cases is None else options.cases
    return options


class Run:
    """Cases, shared by the threads of the workers, and what came of them."""

    def __init__(self, options):
        self.most, self.cases, self.stopped = options.most, cases(options), False
        self.outcomes, self.kinds = Counter(), Counter()
        self.lock = threading.Lock()

    def work(self):
        """Run cases in a process of their own until there are none left."""
        worker = Worker()
        try:
            while (case := self._next()) is not None:
                outcome, findings = worker.run(case)
                with self.lock:
                    self.outcomes[case["what"], outcome] += 1
                    if findings:
                        name = kind(findings[0])
                        self.kinds[name] += 1
                if findings and self.kinds[name] <= self.most:
                    report(worker, case, findings)
        finally:
            worker.close()

    def _next(self):
        with self.lock:
            return None if self.stopped else next(self.cases, None)

    def summarise(self, seconds):
        """Print how many cases ended how, and how many findings of each kind there are."""
        for (what, outcome), count in sorted(self.outcomes.items()):
            say(f"  {count} {what} {outcome}")
        for name, count in sorted(self.kinds.items()):
            say(f"  {count} x {name}")
        found, total = sum(self.kinds.values()), sum(self.outcomes.values())
        say(f"{total} cases in {seconds / 60:.1f} minutes: {found} with findings")


def cases(options):
    """Corpus first; then new cases until the time is over, which the corpus does not use."""
    if options.case:
        yield options.case
        return
    wanted = GROUPS[options.only] if options.only else list(WHAT)
    yield from (case for case in CORPUS if case["what"] in wanted)
    rng = np.random.default_rng(options.seed)
    until = time.monotonic() + 60 * options.minutes
    turn = 0
    while time.monotonic() < until and turn < options.cases:
        # Of all three, fits take half of the turns: they are the largest space.
        turns = wanted if len(wanted) < 3 else [wanted[1], wanted[0], wanted[2], wanted[0]]
        yield DRAWS[turns[turn % len(turns)]](rng)
        turn += 1


def report(worker, case, findings):
    """Print a finding with the smallest case that shows one of the same kind."""
    until = time.monotonic() + SHRINKING
    shown, seen = case, findings
    tried = True
    while tried and time.monotonic() < until:
        tried = False
        for other in SMALLER[case["what"]](shown):
            _, again = worker.run(other)
            if again and kind(again[0]) == kind(findings[0]):
                shown, seen, tried = other, again, True
                break
            if time.monotonic() > until:
                break
    say(
        f"FOUND {seen[0]}"
        + (f" (and {len(seen) - 1} more)" if len(seen) > 1 else "")
        + f"\n  python -m tests.fuzz --case '{json.dumps(shown)}'"
    )


def kind(finding):
    """Return the first words of a finding, which identify its kind."""
    return finding.split(" [")[0].split(":")[0].split(" by ")[0]


def say(text):
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
