"""Table of the built-in extractors of CAFE.

To add an extractor, add an entry here, a test, and a row to the table of
docs/guide/extractors.md. The classes are imported only when needed, so that `cafe` can list
the names without loading scikit-learn.
"""

from importlib import import_module
from typing import NamedTuple


class Extractor(NamedTuple):
    """One built-in extractor."""

    kind: str  # full name of the class
    text: str  # name in reports
    shapes: dict  # of fitted arrays, see _model_checks; empty if the extractor cannot be saved
    parallel: bool = False  # whether it has the parameter n_jobs
    options: tuple = ()  # further parameters, as pairs of name and value
    linear: bool = True  # whether features are linear in the rows (NMF: rows in the features)
    extra: str = ""  # the extra of cafelearn that installs it, if any
    package: str = ""  # the package installed by that extra


EXTRACTORS = {
    "pca": Extractor(
        "sklearn.decomposition.PCA",
        "principal component analysis",
        {"components_": "rm", "mean_": "m", "explained_variance_": "r"},
    ),
    "nmf": Extractor(
        "cafelearn.extraction.nmf.ReplicatedNMF",
        "non-negative matrix factorisation",
        {"components_": "rm", "minimum_": "m"},
        parallel=True,
    ),
    "ica": Extractor(
        "cafelearn.extraction.ica.ReconstructionICA",
        "reconstruction ICA",
        {"components_": "rm"},
        parallel=True,
    ),
    "fastica": Extractor(
        "sklearn.decomposition.FastICA",
        "FastICA",
        {"components_": "rm", "mixing_": "mr", "mean_": "m"},
        options=(("whiten", "unit-variance"),),
    ),
    "autoencoder": Extractor(
        "cafelearn.extraction.autoencoder.Autoencoder",
        "an autoencoder",
        {
            "components_": "rm",
            "decoder_": "rm",
            "hidden_offset_": "r",
            "output_offset_": "m",
            "minimum_": "m",
            "range_": "m",
        },
        parallel=True,
        linear=False,
    ),
    "umap": Extractor(
        "umap.UMAP",
        "UMAP",
        {},
        # With a seed, UMAP runs on one thread.
        options=(("n_jobs", 1),),
        linear=False,
        extra="umap",
        package="umap-learn",
    ),
}


def extractor_class(name):
    """Import and return the class of an extractor."""
    entry = EXTRACTORS[name]
    module, _, kind = entry.kind.rpartition(".")
    try:
        return getattr(import_module(module), kind)
    except ImportError as error:
        if not entry.extra:
            raise
        raise ImportError(
            f"CAFE(extractor={name!r}) needs the package {entry.package}: "
            f"pip install 'cafelearn[{entry.extra}]'."
        ) from error


def make_extractor(name, n_components, seed, n_jobs=None):
    """Make an unfitted extractor of `n_components` features; `seed` is an integer."""
    entry, options = EXTRACTORS[name], {"n_components": n_components, "random_state": seed}
    if entry.parallel:
        options["n_jobs"] = n_jobs
    return extractor_class(name)(**options, **dict(entry.options))
