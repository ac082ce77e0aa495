"""cafe demo: noisy data, PCA against CAFE, and a report."""

from pathlib import Path
from typing import Annotated

import typer

from cafelearn.cli import options
from cafelearn.cli.session import session
from cafelearn.cli.tables import make_table

NAME = "cafe-demo.html"
NOISE_LEVEL = 0.4
NOISE_SCALE = 2.0


def register(app):
    """Add the command."""
    app.command("demo")(demo)


def demo(
    out: Annotated[
        Path, typer.Option(help="Directory for the report.", show_default="here")
    ] = Path(),
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    jobs: options.Jobs = -1,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Add noise to Breast Cancer Wisconsin and see PCA and CAFE deal with it.

    Of the pairs of a class and a feature, 40% are blurred, as in the paper's experiments.
    """
    with session("demo", quiet, as_json, debug) as run:
        from cafelearn._files import check_output

        path = check_output(out / NAME, force)
        X, y, noise, description = _noisy(seed)
        run.say(
            f"Breast Cancer Wisconsin: {X.shape[0]} tumours, {X.shape[1]} features, 2 classes"
        )
        run.say(
            f"Noise of {NOISE_SCALE:g} times the range was added to {noise.sum()} of "
            f"{noise.size} (class, feature) pairs"
        )
        cafe = _compare(run, X, y, seed, jobs)
        _show_weights(run, cafe, y, noise, X.columns)
        _write_report(run, cafe, X, y, path, force, description)
        run.say("Next: cafe fit YOUR.csv -k 3 --report report.html")


def _noisy(seed):
    import pandas as pd

    from cafelearn.datasets import corrupt, load
    from cafelearn.scaling import RangeScaler

    data = load("breast_cancer")
    scaled = RangeScaler().fit_transform(data.data)
    X, noise = corrupt(scaled, data.target, NOISE_LEVEL, NOISE_SCALE, random_state=seed)
    frame = pd.DataFrame(X, columns=data.feature_names)
    return frame, data.target, noise, data.description


def _compare(run, X, y, seed, jobs):
    """Fit both, cluster the features of both, and show the agreement with the classes."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.metrics import adjusted_rand_score
    from sklearn.pipeline import make_pipeline

    from cafelearn.cafe import CAFE
    from cafelearn.cli.progress import watch
    from cafelearn.scaling import RangeScaler

    cafe = CAFE(2, n_jobs=jobs, random_state=seed)
    with watch(run):
        features = {"CAFE": cafe.fit_transform(X)}
    n_components = features["CAFE"].shape[1]
    pca = make_pipeline(RangeScaler(), PCA(n_components, random_state=seed))
    features = {"PCA": pca.fit_transform(X)} | features
    table = make_table("features by", ">adjusted Rand index")
    scores = run.facts["ari"] = {}
    for name, values in features.items():
        labels = KMeans(2, n_init=10, random_state=seed).fit_predict(values)
        scores[name] = float(adjusted_rand_score(y, labels))
        table.add_row(name, f"{scores[name]:.3f}")
    run.facts["p"] = cafe.p_
    run.show(f"k-means on {n_components} features of each: agreement with the classes", table)
    return cafe


def _show_weights(run, cafe, y, noise, names):
    """Weights of each cluster, with a mark where its class has noise."""
    import numpy as np

    classes = [int(np.bincount(y[cafe.labels_ == l]).argmax()) for l in range(2)]
    words = ("benign", "malignant")
    table = make_table(
        "feature",
        *(f">cluster {l} ({words[label]})" for l, label in enumerate(classes)),
    )
    for v, name in enumerate(names):
        cells = [
            f"{'* ' if noise[classes[l], v] else ''}{cafe.feature_weights_[l, v]:.3f}"
            for l in range(2)
        ]
        table.add_row(name, *cells)
    run.show(f"Weights at p = {cafe.p_:g}; * marks the pairs with noise", table)
    run.facts["weights"] = cafe.weights_frame().to_dict("index")
    run.facts["noise_pairs"] = {words[l]: list(names[noise[l]]) for l in range(2)}


def _write_report(run, cafe, X, y, path, force, description):
    try:
        from cafelearn.report import write_fit_report

        write_fit_report(
            cafe,
            X,
            path,
            y=y,
            title="CAFE on noisy Breast Cancer Wisconsin",
            source=description,
            command="cafe demo",
            force=force,
        )
    except ImportError as error:
        run.remark(f"No report: {error}")
        return
    run.facts["files"] = {"report": path}
    run.say(f"Wrote the report to {path}")
