"""Write the results of the comparison study to docs/results, from a directory of runs.

    python -m reproduction study --out DIR
    python -m scripts.publish_study DIR

The script writes all runs to one compressed CSV file. It also writes the tables and the figures
of docs/answers.md. The same runs always give the same files.
"""

from reproduction.study.figures import draw_ranks, draw_regimes
from reproduction.study.plan import STUDY_METHODS
from reproduction.study.run import STUDY, read_study
from reproduction.study.text import render
from scripts.publishing import directories, save, write_runs

COLUMNS = [name for name in STUDY.record._fields if name != "traceback"]


def main():
    """Parse the arguments and write all files."""
    directory, out = directories(__doc__.splitlines()[0])
    results = read_study(directory)
    methods = dict.fromkeys(sum(STUDY_METHODS.values(), ()))
    place = results.method.map({method: place for place, method in enumerate(methods)})
    order = ["task", "dataset", "regime", "version", "place"]
    write_runs(results.assign(place=place), order, COLUMNS, out / "study.csv.gz")
    results = read_study(out / "study.csv.gz")
    (out / "study.md").write_text(render(results), encoding="utf-8")
    save(draw_ranks(results), out / "answers-ranks.png")
    save(draw_regimes(results), out / "answers-regimes.png")


if __name__ == "__main__":
    main()
