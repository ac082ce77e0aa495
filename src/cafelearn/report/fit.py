"""Write a report on a fitted estimator as one HTML file."""

from collections.abc import Sequence
from pathlib import Path

from cafelearn.base.typing import MatrixLike
from cafelearn.estimators.cafe import CAFE
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.report import drawing, numbers, profiles, sections, tried, usage, words
from cafelearn.report.embedding import axis_name, embedding
from cafelearn.report.facts import Facts
from cafelearn.report.loadings import loadings_table
from cafelearn.report.page import check_ready, write_page

# Headings of the scatter plot, by the names of its axes.
AXES = {
    "extracted feature": "Extracted features",
    "principal component": "Principal components",
    "distance to cluster": "Distances to the centres",
}


def write_fit_report(
    estimator: CAFE | TabularCAFE | MinkowskiWeightedKMeans,
    X: MatrixLike,
    path: str | Path,
    *,
    row_ids: Sequence | None = None,
    y: Sequence | None = None,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    read: str | None = None,
    force: bool = False,
) -> Path:
    """Write a report on a fit as one self-contained HTML file.

    The report begins with the answer in one line, the findings of ``diagnosis_`` and a summary.
    Its sections are:

    - profiles and feature weights of the clusters;
    - extracted features and their loadings, or principal components if none were extracted;
    - known classes, if given, compared with the clusters;
    - the choice of the number of clusters;
    - the candidates, which are the starts of a mixture;
    - rows with small assignment margins;
    - the starts of the candidates;
    - the claims of the theory, checked on the chosen candidate;
    - statistics of the data, and code that repeats the fit.

    The report on a MinkowskiWeightedKMeans has no candidates, and shows the distances to the
    centres instead of extracted features.

    The file loads nothing from the network. It does not contain the data, but it contains
    names and statistics of the columns, and the names, extracted features, clusters and known
    classes of up to about 5,000 rows.

    Parameters
    ----------
    estimator : CAFE, TabularCAFE or MinkowskiWeightedKMeans
        A fitted estimator.
    X : array-like or DataFrame of shape (n_samples, n_features)
        The data that the estimator was fitted on. After a fit to a Dask collection, pass a
        sample of its rows; the report states that it shows a sample.
    path : str or Path
        The file to write, with the suffix ``.html`` or ``.htm``.
    row_ids : sequence of length n_samples, default=None
        Names of the rows; ``None`` means the index of a data frame, or row numbers.
    y : sequence of length n_samples, default=None
        Known classes to compare the clusters with.
    title : str, default=None
        Title of the page.
    source : str, default=None
        Source of the data, shown under the title.
    command : str, default=None
        The shell command that made the fit, shown with the code.
    read : str, default=None
        Expression that reads the table, such as ``'pd.read_csv("wine.csv")'``, for the code in
        the report. If None, the code assumes a variable `X`.
    force : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    path : Path
        The file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from cafelearn import CAFE
    >>> from cafelearn.report import write_fit_report
    >>> wine = load_wine(as_frame=True)
    >>> cafe = CAFE(n_clusters=3, n_init=3, random_state=0).fit(wine.data)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.html")
    ...     report = write_fit_report(cafe, wine.data, path, y=wine.target, title="Wine")
    ...     "<title>Wine</title>" in report.read_text(encoding="utf-8")
    True
    """
    check_ready("write_fit_report", path, force)
    facts = Facts(estimator, X, row_ids, y)
    return write_facts(
        facts, path, title=title, source=source, command=command, read=read, force=force
    )


def write_facts(facts, path, *, title, source, command, read, force):
    """Write the report on a fit from its Facts; the options are those of `write_fit_report`."""
    content = {
        "source": source,
        "command": command,
        "summary": words.summary(facts),
        "key_numbers": words.key_numbers(facts),
        "clusters": words.cluster_cards(facts),
        "profile_table": profiles.profile_table(facts),
        "snippet": usage.snippet(facts, read),
        "facts": facts,
        "data_table": sections.data_table(facts),
        "findings": facts.findings,
        "numbers": numbers.numbers_section(facts),
        "candidates_table": None if facts.cafe is None else tried.candidates_table(facts),
        "agreement_table": None if facts.cafe is None else tried.agreement_table(facts),
        "weights_table": sections.weights_table(facts),
        "embedding": embedding(facts),
        "axis_name": AXES[axis_name(facts)],
        "relevance": words.relevance(facts),
        "loadings_table": loadings_table(facts),
        "restarts_table": sections.restarts_table(facts),
        "objectives": drawing.draw_objectives(facts),
        "certificate": sections.certificate_section(facts),
        "doubtful_table": sections.doubtful_table(facts),
        "classes": sections.classes_section(facts),
    }
    if title is None:
        title = "CAFE report" if facts.cafe is not None else "Minkowski weighted k-means report"
    return write_page(
        "fit.html.jinja", content, path, title=title, force=force, caller="write_fit_report"
    )
