"""Tables of the comparison study, in Markdown and for the terminal."""

import pandas as pd

from cafelearn import datasets
from reproduction.markdown import escape, markdown_table
from reproduction.study.answers import (
    ASIDE,
    accuracies,
    by_dataset,
    by_regime,
    check_study,
    configuration_means,
    finding_shares,
    median_seconds,
)
from reproduction.study.regimes import BUNDLED, PUBLIC, STUDY_PAIRS
from reproduction.study.verdicts import must_hold, rank_answers, winners

METHOD_LABELS = {
    "trivial": "trivial rule",
    "kmeans-range": "k-means, range scaling",
    "kmeans-standard": "k-means, standard scaling",
    "ward": "Ward",
    "hdbscan": "HDBSCAN",
    "gmm-diag": "Gaussian mixture, diagonal",
    "gmm-full": "Gaussian mixture, full",
    "gmm-bic": "Gaussian mixture by BIC",
    "mclust": "mclust",
    "stepmix": "StepMix",
    "raw-range": "raw, range scaling",
    "raw-standard": "raw, standard scaling",
    "pca": "PCA",
    "paper": "CAFE, paper settings",
    "cafe": "CAFE",
}
SCORE_LABELS = {"labels": "ARI", "features": "accuracy"}
TASK_LABELS = {"labels": "labels", "features": "features for unseen rows"}
# Configurations in which CAFE is behind by at most this difference of scores are not listed.
CLOSE = 0.02


def study_label(name: str) -> str:
    """Return the label of a method of the study in tables and figures."""
    return METHOD_LABELS.get(name, name)


def summarise(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Summarise the study in a few tables."""
    tables, ranks = {}, {}
    for task, name in SCORE_LABELS.items():
        means = by_regime(results, task)
        if means.size:
            tables[f"Mean {name} of the {TASK_LABELS[task]}"] = means
            ranking = rank_answers(results, task)
            if ranking is not None:
                ranks[task] = ranking.ranks
    if ranks:
        table = pd.DataFrame(ranks).rename_axis("method")
        tables["Average ranks"] = table.loc[[m for m in METHOD_LABELS if m in table.index]]
    seconds = median_seconds(results)
    if seconds.size:
        tables["Median seconds"] = seconds
    return tables


def render(results: pd.DataFrame) -> str:
    r"""Render all tables of the study in Markdown."""
    checked = check_study(results, "render")
    failed = checked.loc[checked["status"] == "failed", "method"]
    parts = []
    for task in SCORE_LABELS:
        if configuration_means(results, task).size:
            parts += _task(results, task)
    if median_seconds(results).size:
        parts.append(_frame("Median seconds of a run on one core", median_seconds(results), 2))
    shares = finding_shares(results)
    if shares.size:
        parts.append(_frame("Share of CAFE's fits with each finding", shares, 2))
    bars = must_hold(results)
    if len(bars):
        parts.append(_bars(bars))
    names = ", ".join(
        f"{study_label(name)} {number}" for name, number in failed.value_counts().items()
    )
    ended = f"{len(checked):,} runs; {len(failed):,} of them failed and were left out"
    ended += f" ({names})." if names else "."
    return "\n\n".join([*parts, ended]) + "\n"


def _task(results, task):
    """Yield the tables of a task: means by regime and by data set, ranks, and winners."""
    score, what = SCORE_LABELS[task], TASK_LABELS[task]
    nine = by_regime(results, task, sets=datasets.names())
    pairs = [regime for regime in STUDY_PAIRS if regime in nine.index]
    if len(pairs) > 1:
        after = nine.index.get_loc(pairs[-1]) + 1
        mean = nine.loc[pairs].mean().to_frame("all pairs").T
        nine = pd.concat([nine.iloc[:after], mean, nine.iloc[after:]]).rename_axis("regime")
    if nine.size:
        yield _frame(f"Mean {score} of the {what}, the paper's nine sets", nine, best=True)
    others = by_regime(results, task, sets=(*BUNDLED, *PUBLIC))
    if others.size:
        yield _frame(f"Mean {score} of the {what}, other real sets", others, best=True)
    sets = configuration_means(results, task)
    generated = sets[sets.index.get_level_values("regime") == "generated"]
    if generated.size:
        title = f"Mean {score} of the {what}, generators"
        yield _frame(title, generated.droplevel("regime"), best=True)
    real = by_dataset(results, task).drop(index=generated.index.unique("dataset"))
    if real.size:
        title = f"Mean {score} of the {what}, over the regimes of each real set"
        yield _frame(title, real, best=True)
    if task == "features":
        yield _accuracies(accuracies(results))
    yield _ranks(rank_answers(results, task), what)
    yield from _winners(winners(results, task), what)


def _frame(title, frame, digits=3, best=False):
    """Format a table of numbers; with `best`, print the best score of each row in bold."""
    names = [frame.index.name or "", *(study_label(name) for name in frame.columns)]
    rows = [
        [escape(study_label(str(name))), *_cells(values, digits, best)]
        for name, values in frame.iterrows()
    ]
    return f"**{title}**\n\n{markdown_table(map(escape, names), rows)}"


def _cells(values, digits, best):
    """Format the numbers of a row; missing ones are empty.

    With `best`, print the highest score in bold, and all scores that round to the same number.
    The score of "trivial" is never bold and does not count as the highest.
    """
    texts = values.map(lambda value: "" if pd.isna(value) else f"{value:.{digits}f}")
    rivals = texts.drop(ASIDE, errors="ignore")
    top = rivals[rivals != ""].astype(float).max() if best else None
    return [
        f"**{text}**" if best and text and name != ASIDE and float(text) == top else text
        for name, text in texts.items()
    ]


def _accuracies(table):
    names = ["regime", "features", *(name.replace("_", ", ") for name in table.columns)]
    rows = [
        [escape(regime), escape(study_label(method)), *(f"{value:.3f}" for value in values)]
        for (regime, method), values in zip(table.index, table.to_numpy(), strict=True)
    ]
    title = (
        "Accuracy of 3 nearest neighbours (knn) and logistic regression on unseen rows, with 5 "
        "and 20 labelled rows of each class"
    )
    return f"**{title}**\n\n{markdown_table(names, rows)}"


def _ranks(ranking, what):
    rows = [[escape(study_label(name)), f"{rank:.2f}"] for name, rank in ranking.ranks.items()]
    groups = [" = ".join(map(study_label, group)) for group in ranking.groups]
    text = (
        f"**Average ranks of the {what} over {ranking.n_blocks} configurations**\n\n"
        f"{markdown_table(['method', 'average rank'], rows)}"
    )
    if len(ranking.ranks) > 1:
        text += f"\n\nCritical difference {ranking.difference:.2f}"
        text += f"; no significant difference: {'; '.join(groups)}." if groups else "."
    return text


def _winners(table, what):
    """Yield a table of wins by regime, and one of configurations in which CAFE is behind."""
    counts = table.groupby(["regime", "best"], sort=False).size().unstack(fill_value=0)
    counts = counts[[name for name in METHOD_LABELS if name in counts.columns]]
    yield _frame(f"Number of configurations won by each method: {what}", counts, 0)
    behind = table[table["behind"] > CLOSE].sort_values("behind", ascending=False)
    if len(behind):
        rows = [
            [
                *(escape(text) for text in (row.dataset, row.regime, study_label(row.best))),
                *(f"{number:.3f}" for number in (row.score, row.cafe, row.behind)),
            ]
            for row in behind.itertuples()
        ]
        names = ["data set", "regime", "best method", "score", "CAFE", "difference"]
        title = f"Where another method is ahead of CAFE by more than {CLOSE:g}: {what}"
        yield f"**{title}**\n\n{markdown_table(names, rows)}"


def _bars(bars):
    rows = [
        [escape(row.what), f"{row.value:.3f}", f"{row.bar:g}", "yes" if row.holds else "**no**"]
        for row in bars.itertuples()
    ]
    names = ["quantity", "value", "at least", "met"]
    return f"**Required scores**\n\n{markdown_table(names, rows)}"
