"""Write docs/results/leak.md: what the paper's noise tells of the classes, beside each method.

    python -m scripts.publish_leak

The trivial rule groups the rows of each noisy data set of the paper's experiment by which of
their values are unique in their column; it looks at no value. Its scores stand beside those of
the methods in ``grid.csv.gz``, averaged over the six noise settings and the 20 versions.
"""

import pandas as pd
from sklearn.metrics import adjusted_rand_score

from cafelearn import datasets
from reproduction.markdown import markdown_table
from reproduction.paper.plan import Plan
from reproduction.paper.run import noisy_data, read_results
from reproduction.study.regimes import unique_patterns
from scripts.publishing import RESULTS

METHODS = {
    "pca": "PCA",
    "cafe+pca": "CAFE + PCA",
    "nmf": "NMF",
    "cafe+nmf": "CAFE + NMF",
    "ica": "ICA",
    "cafe+ica": "CAFE + ICA",
    "mwk-means": "mwk-means",
}


def main():
    """Compute the scores of the trivial rule and write the table."""
    scores = {}
    for sample in Plan().samples():
        noisy = noisy_data(sample)
        score = adjusted_rand_score(noisy.y, unique_patterns(noisy.X))
        scores.setdefault(sample.dataset, []).append(score)
    grid = read_results(RESULTS / "grid.csv.gz")
    means = grid.pivot_table("ari", "dataset", "method")[list(METHODS)].rename(columns=METHODS)
    means.insert(0, "trivial rule", pd.Series({n: sum(s) / len(s) for n, s in scores.items()}))
    means = means.loc[list(datasets.names())]
    means.loc["mean"] = means.mean()
    rows = [[name, *(f"{value:.3f}" for value in row)] for name, row in means.iterrows()]
    text = markdown_table(["data set", *means.columns], rows)
    (RESULTS / "leak.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
