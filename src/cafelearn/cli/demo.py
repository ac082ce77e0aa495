"""cafe demo: compare k-means, PCA and CAFE on wine data with added noise."""

from pathlib import Path
from typing import Annotated

import typer

from cafelearn.cli import options
from cafelearn.cli.session import session
from cafelearn.cli.tables import make_table, shade

NAME = "cafe-demo.html"
CULTIVARS = ("A", "B", "C")
SOURCE = "The wine data of scikit-learn; each measurement has noise in one cultivar."


def demo(
    out: Annotated[
        Path, typer.Option(help="Directory for the report.", show_default="current directory")
    ] = Path(),
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    jobs: options.Jobs = -1,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Compare k-means, PCA and CAFE on the wine data with added noise.

    Each measurement gets noise in one cultivar and is unchanged in the other two.
    CAFE finds which measurements matter in each cluster.
    """
    with session("demo", quiet, as_json, debug) as run:
        from cafelearn.files.atomic import check_output

        path = check_output(out / NAME, force)
        X, y, noise = _noisy(seed)
        run.say(f"Wine: {len(X)} wines of 3 cultivars, {X.shape[1]} measurements.")
        run.say(
            "Each measurement gets noise in one cultivar, with a standard deviation equal to "
            "its range, and is unchanged in the other two."
        )
        cafe = _compare(run, X, y, seed, jobs)
        _show_weights(run, cafe, y, noise, X.columns)
        _write_report(run, cafe, X, y, path, force)
        run.say("Next: cafe fit YOUR.csv -k 3 --report report.html")


def _noisy(seed):
    """Return the range-scaled wine data with noise, the cultivars, and a mask of the noise.

    The mask has a row per cultivar and a column per measurement.
    """
    import numpy as np
    from sklearn.datasets import load_wine

    from cafelearn.estimators.scaling import RangeScaler

    X, y = load_wine(return_X_y=True, as_frame=True)
    scaled = RangeScaler().set_output(transform="pandas").fit_transform(X)
    rng = np.random.default_rng(seed)
    blurred = rng.permutation(np.arange(X.shape[1]) % len(CULTIVARS))
    noise = blurred == np.arange(len(CULTIVARS))[:, None]
    names = [name.split("/")[0] for name in X.columns]
    noisy = scaled + noise[y] * rng.normal(size=X.shape)
    return noisy.set_axis(names, axis=1), y.to_numpy(), noise


def _compare(run, X, y, seed, jobs):
    """Fit CAFE and other methods, show their agreement with the cultivars, and return CAFE."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.metrics import adjusted_rand_score

    from cafelearn.cli.progress import watch
    from cafelearn.estimators.cafe import CAFE
    from cafelearn.interpret.labels import answer_words

    cafe = CAFE(len(CULTIVARS), n_jobs=jobs, random_state=seed)
    with watch(run):
        features = cafe.fit_transform(X)

    def clusters(rows):
        return KMeans(len(CULTIVARS), n_init=10, random_state=seed).fit_predict(rows)

    run.facts["answer"] = answer_words(cafe)
    run.say(f"CAFE finds {run.facts['answer']}.")
    n_components = X.shape[1] // 2
    pca = PCA(n_components, random_state=seed).fit_transform(X)
    found = {
        "k-means": ("k-means on the measurements", clusters(X)),
        "PCA": (f"k-means on {n_components} features by PCA", clusters(pca)),
        "CAFE": (f"k-means on {features.shape[1]} features by CAFE", clusters(features)),
        "clusters": ("clusters of CAFE", cafe.labels_),
    }
    table = make_table("method", ">adjusted Rand index")
    scores = run.facts["ari"] = {}
    for name, (words, labels) in found.items():
        scores[name] = float(adjusted_rand_score(y, labels))
        table.add_row(words, f"{scores[name]:.2f}")
    run.facts |= {"confidence": cafe.confidence_, "stability": cafe.stability_}
    run.show("Agreement with the cultivars (1 is perfect, 0 is chance)", table)
    return cafe


def _show_weights(run, cafe, y, noise, names):
    """Show where each measurement has noise, and its weight in the cluster of each cultivar."""
    from cafelearn.plotting._estimators import match_clusters

    clusters = match_clusters(y, cafe.labels_)
    weights = cafe.feature_weights_[[clusters[c] for c in range(len(CULTIVARS))]]
    top = weights.max()
    table = make_table(
        "measurement",
        *(f"{what} {name}" for what in ("noise", "weight") for name in CULTIVARS),
    )
    for name, blurred, own in zip(names, noise.T, weights.T, strict=True):
        marks = ["~~~~" if each else "" for each in blurred]
        table.add_row(name, *marks, *(f"{shade(w / top)} {w:.2f}" for w in own))
    run.show("Noise (~) in each cultivar, and the weights of CAFE", table)
    run.say(
        f"Mean weight without noise {weights[~noise].mean():.3f}, with noise "
        f"{weights[noise].mean():.3f}. CAFE did not use the cultivars."
    )
    run.facts["weights"] = {
        name: dict(zip(names, own.tolist(), strict=True))
        for name, own in zip(CULTIVARS, weights, strict=True)
    }
    run.facts["noise_pairs"] = {
        name: names[own].tolist() for name, own in zip(CULTIVARS, noise, strict=True)
    }


def _write_report(run, cafe, X, y, path, force):
    try:
        from cafelearn.report import write_fit_report

        write_fit_report(
            cafe,
            X,
            path,
            y=y,
            title="CAFE on noisy wine measurements",
            source=SOURCE,
            command="cafe demo",
            force=force,
        )
    except ImportError as error:
        run.remark(f"No report: {error}")
        return
    run.facts["files"] = {"report": path}
    run.say(f"Wrote the report to {path}")
