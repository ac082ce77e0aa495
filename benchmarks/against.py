"""Compare whole fits of this checkout with those of another checkout.

``python -m benchmarks.against DIRECTORY`` fits the data of ``benchmarks.whole_fits`` with the
package in DIRECTORY/src and with this package, alternately, and compares their times and
labels. Early versions had an option, `haste`, for inexact centres on large data. It is disabled
here.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FITS = """
import sys, time
import numpy as np
try:
    import cafelearn.kmeans.descent as descent
    from cafelearn.kmeans.iteration import make_problem
    from cafelearn.kmeans.scales import data_scale
except ImportError:  # names of the modules in earlier versions
    import cafelearn.descent as descent
    try:
        from cafelearn.machine import data_scale, make_problem
    except ImportError:
        from cafelearn.descent import data_scale, make_problem
folder, p = sys.argv[1], float(sys.argv[2])
X = np.load(folder + "/rows.npy")
ones = np.ones(len(X))
scale, feature_scale = data_scale(X.min(axis=0), X.max(axis=0))
problem = make_problem(X, p, scale, "mean", 300, 0.0)
if "haste" in problem._fields:
    problem = problem._replace(haste=0.0)
starts = np.load(folder + "/starts.npy")
descent.descend(X, ones, starts[0], feature_scale, problem)  # compile
begin = time.perf_counter()
found = [descent.descend(X, ones, Z, feature_scale, problem) for Z in starts]
print(time.perf_counter() - begin)
np.save(sys.argv[3], np.array([result.labels for result in found]))
"""


def run(source, folder, p, labels):
    """Fit with the package in `source`, save the labels and return the time in seconds."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FITS, folder, str(p), labels],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main():
    """Run the fits with both packages and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="the other checkout")
    parser.add_argument(
        "--rounds", type=int, default=3, help="fits with each package; the best time counts"
    )
    options = parser.parse_args()
    from benchmarks.whole_fits import STARTS, draw, noisy_blobs

    sources = {"ours": Path(__file__).parent.parent / "src", "other": options.directory / "src"}
    with tempfile.TemporaryDirectory() as folder:
        X, _ = noisy_blobs()
        np.save(f"{folder}/rows.npy", X)
        np.save(f"{folder}/starts.npy", [draw(X, 10, seed) for seed in range(STARTS)])
        for p in (1.1, 1.5, 3.0):
            best = dict.fromkeys(sources, np.inf)
            for _ in range(options.rounds):
                for name, source in sources.items():
                    seconds = run(source.resolve(), folder, p, f"{folder}/{name}.npy")
                    best[name] = min(best[name], seconds)
            ours, other = (np.load(f"{folder}/{name}.npy") for name in sources)
            same = "same labels" if (ours == other).all() else "DIFFERENT labels"
            print(
                f"p = {p:g}: {best['other']:.2f} s over {best['ours']:.2f} s = "
                f"{best['other'] / best['ours']:.2f}, {same}",
                flush=True,
            )


if __name__ == "__main__":
    main()
