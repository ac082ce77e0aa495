"""Write the results of the paper's experiment to docs/results, from a directory of runs.

    python -m reproduction paper --out DIR
    python -m scripts.publish_results DIR

The script writes all runs to one compressed CSV file. It also writes the tables, the comparison
as text and the figures, and repeats the study behind the paper's Figures 1 and 2. The same runs
always give the same files.
"""

from reproduction.paper.compare import compare, summary
from reproduction.paper.figures import draw_figures
from reproduction.paper.plan import METHODS
from reproduction.paper.run import read_results
from reproduction.paper.tables import render
from reproduction.theory.figures import draw_figures as draw_theory_figures
from reproduction.theory.fits import summary as theory_summary
from reproduction.theory.fits import theory_study
from scripts.publishing import directories, save, write_runs

COLUMNS = [
    *("dataset", "noise_level", "noise_scale", "version", "method", "status", "ari", "nmi"),
    *("seconds", "sweep_seconds", "p", "k_found", "warnings", "libraries"),
]


def main():
    """Parse the arguments and write all files."""
    directory, out = directories(__doc__.splitlines()[0])
    results = read_results(directory)
    place = results.method.map({method: place for place, method in enumerate(METHODS)})
    order = ["dataset", "noise_level", "noise_scale", "version", "place"]
    write_runs(results.assign(place=place), order, COLUMNS, out / "grid.csv.gz")
    results = read_results(out / "grid.csv.gz")
    comparison = compare(results)
    (out / "comparison.txt").write_text(summary(comparison) + "\n", encoding="utf-8")
    for format, suffix in {"text": "txt", "md": "md", "csv": "csv"}.items():
        text = render(results, format)
        (out / f"tables.{suffix}").write_text(text, encoding="utf-8")
    for name, figure in draw_figures(results, comparison).items():
        save(figure, out / f"{name}.png")
    study = theory_study()
    (out / "theory.txt").write_text(theory_summary(study) + "\n", encoding="utf-8")
    draw_theory_figures(study, out, formats=("png",))


if __name__ == "__main__":
    main()
