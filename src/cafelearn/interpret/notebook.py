"""HTML summary of a fitted estimator, shown in notebooks above scikit-learn's diagram."""

from html import escape

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.words import shortened
from cafelearn.interpret.labels import (
    answer_words,
    is_mixture,
    mixture_words,
    plural,
    settings_words,
)
from cafelearn.interpret.profiles import variable_names, variable_weights

# Largest numbers of features and clusters in the map; a larger map would not be a summary.
MOST_FEATURES, MOST_CLUSTERS = 12, 20
LONGEST_NAME = 32
CELL, ROW, TOP, LETTER = 38, 18, 36, 6.4  # sizes in the map, in pixels
# This colour is visible on white and on black. Shades differ only in opacity, so that they suit
# both backgrounds.
COLOR = "#c2662b"
STYLE = (
    ".cafelearn-fit{font-family:system-ui,sans-serif;font-size:13px;margin:0 0 10px}"
    ".cafelearn-fit p{margin:2px 0}.cafelearn-fit svg{display:block;max-width:100%;height:auto}"
    ".cafelearn-fit ul{margin:6px 0;padding:0;list-style:none}"
    ".cafelearn-fit li{border-left:3px solid #8a8f98;padding:1px 8px;margin:3px 0}"
    ".cafelearn-fit li.severe{border-color:#c0392b}"
    ".cafelearn-fit text{font-size:11px;fill:currentColor}"
)


class NotebookMixin:
    """Show a summary of the fit above scikit-learn's diagram in notebooks."""

    def _repr_html_inner(self):
        """Return the HTML of this estimator for scikit-learn's `_repr_html_`."""
        diagram = super()._repr_html_inner()
        try:
            check_is_fitted(self)
        except NotFittedError:
            return diagram
        return summary_html(self) + diagram

    def _repr_mimebundle_(self, **kwargs):
        """Return the representations for Jupyter, which calls this before `_repr_html_`."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def summary_html(estimator) -> str:
    """Return answer, sizes, settings, diagnosis and weights of a fitted estimator as HTML."""
    inner = getattr(estimator, "cafe_", estimator)
    model = getattr(inner, "model_", inner)
    mass = _mass(inner, model)
    k, m = inner.feature_weights_.shape
    number = "" if inner.n_clusters_table_ is None else " (number chosen automatically)"
    size = "weighted rows"
    if _are_counts(mass):
        size = f"{_amount(mass.sum())} rows"
    elif is_mixture(inner) and inner._mass is None:
        size = "the rows"
    name = type(estimator).__name__
    words = f"{plural(k, 'cluster')}{number} of {size}, {plural(m, 'feature')}"
    if getattr(inner, "extractor_", None) is not None:
        words += f", {inner._n_features_out:,} extracted"
    is_uniform = not is_mixture(inner) and model.weighting == "uniform"
    parts = [
        f"<p><b>{escape(answer_words(inner))}.</b></p>",
        f"<p><b>{escape(name)}</b>: {words}.</p>",
        f"<p>{escape(_settings(inner, model))}</p>",
        _findings(inner.diagnosis_),
        _map(variable_weights(inner), mass, variable_names(inner), is_uniform),
    ]
    return f'<div class="cafelearn-fit"><style>{STYLE}</style>{"".join(parts)}</div>'


def _mass(inner, model):
    """Return the mass of each cluster; after a lazy fit of a mixture, its share."""
    if not is_mixture(inner):
        return np.asarray(model._mass, dtype=float)
    found = inner.mixture_.weights_ if inner._mass is None else inner._mass
    return np.asarray(found, dtype=float)


def _settings(inner, model):
    if is_mixture(inner):
        n = len(inner.models_)
        starts = f"{plural(n, 'candidate')} of Minkowski weighted k-means"
        return (
            f"Mixture: {mixture_words(inner.mixture_)}. It started from {starts}, among others."
        )
    if model is inner:
        offset = model.dispersion_offset if model.weighting != "uniform" else None
        row = {"weighting": model.weighting, "dispersion_offset": offset, "p": model.p}
        chosen = settings_words(row | {"scaling": "none"})
        words = f"Settings: {chosen}"
    else:
        tried = inner.candidates_
        chosen = settings_words(tried[tried["chosen"]].iloc[0])
        of = "" if len(tried) == 1 else f" of {len(tried):,} candidates"
        words = f"Chosen{of}: {chosen}"
    starts = len(model.init_objectives_)
    return (
        f"{words}; best of {plural(starts, 'start')}, {plural(model.n_iter_, 'iteration')}, "
        f"{model.stop_reason_}."
    )


def _findings(findings):
    if not findings:
        return "<p>Diagnosis: no problems found.</p>"
    items = (
        f'<li class="{escape(finding.severity)}">{escape(finding.message)}</li>'
        for finding in sorted(findings, key=lambda finding: finding.severity != "severe")
    )
    return f"<ul>{''.join(items)}</ul>"


def _map(weights, mass, names, is_uniform):
    """Return an SVG map of the weights, features by clusters, highest weights first."""
    clusters = np.arange(len(mass))
    if len(clusters) > MOST_CLUSTERS:
        clusters = np.sort(np.argsort(-mass, kind="stable")[:MOST_CLUSTERS])
    heaviest = np.argsort(-weights.max(axis=0), kind="stable")[:MOST_FEATURES]
    features = [] if is_uniform else heaviest.tolist()
    shown = [shortened(names[v], LONGEST_NAME) for v in features]
    left = round(LETTER * max(map(len, ["cluster", *shown]))) + 8
    width, height = left + CELL * len(clusters), TOP + ROW * len(features) + 4
    drawn = [_text(left - 6, 12, "cluster"), _text(left - 6, 27, "rows")]
    for i, l in enumerate(clusters):
        middle = left + CELL * i + CELL / 2
        drawn += [_text(middle, 12, l, "middle"), _text(middle, 27, _short(mass[l]), "middle")]
    top = float(weights.max()) or 1.0
    for j, v in enumerate(features):
        y = TOP + ROW * j
        drawn.append(_text(left - 6, y + 12, shown[j]))
        for i, l in enumerate(clusters):
            shade = 0.06 + 0.94 * weights[l, v] / top
            tip = f"{names[v]}, cluster {l}: weight {weights[l, v]:.3g}"
            drawn.append(
                f'<rect x="{left + CELL * i + 1}" y="{y}" width="{CELL - 2}" '
                f'height="{ROW - 2}" fill="{COLOR}" fill-opacity="{shade:.2f}">'
                f"<title>{escape(tip)}</title></rect>"
            )
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Sizes of the clusters and weights of the features">{"".join(drawn)}</svg>'
        f"<p>{_caption(weights, len(clusters), len(features), is_uniform)}</p>"
    )


def _caption(weights, n_clusters, n_features, is_uniform):
    k, m = weights.shape
    said = [f"The {n_clusters} largest of {k:,} clusters."] if n_clusters < k else []
    if is_uniform:
        said.append("All features have the same weight.")
    elif n_features < m:
        said.append(f"The {n_features} highest-weighted of {m:,} features.")
    if not is_uniform:
        said.append("A stronger colour means a higher weight.")
    return " ".join(said)


def _text(x, y, value, anchor="end"):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(str(value))}</text>'


def _short(mass):
    """Format a size in a few characters."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if mass >= unit:
            return f"{mass / (1e3 if name == 'k' else unit):.3g}{name}"
    return _amount(mass)


def _amount(value):
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def _are_counts(mass):
    return all(map(float.is_integer, mass.tolist()))
