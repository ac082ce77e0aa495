"""Run the benchmarks of ``make bench`` and write their table to docs/benchmarks.md."""

from threadpoolctl import threadpool_limits

from benchmarks import descent, extraction, whole_fits
from benchmarks.pages import replace_part

PARTS = (
    descent.iterations,
    whole_fits.single_precision,
    whole_fits.early_stopping,
    descent.whole_fit,
    descent.threads,
    descent.memory,
    descent.growth,
    descent.start_up,
)
# These parts, and the methods that they are compared with, may use several cores.
PARALLEL_PARTS = (extraction.cafe, extraction.extractors, extraction.unseen_rows)


def main():
    """Run all parts, print each measurement and write the table."""
    rows = []

    def report(what, measured, bar):
        kind, limit = bar.split()
        met = measured >= float(limit) if kind == ">=" else measured <= float(limit)
        rows.append(f"| {what} | {measured:.2f} | {bar} | {'yes' if met else 'no'} |")
        print(f"{measured:8.2f}  ({bar}, {'met' if met else 'NOT MET'})  {what}", flush=True)

    with threadpool_limits(1):
        for part in PARTS:
            part(report)
    for part in PARALLEL_PARTS:
        part(report)
    table = "\n".join(["| quantity | measured | bar | met |", "|---|---|---|---|", *rows])
    replace_part("benchmarks.md", "make bench", table)


if __name__ == "__main__":
    main()
