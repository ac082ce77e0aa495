"""Consistency checks of models loaded from files."""

from numbers import Integral, Real

import numpy as np
from sklearn.pipeline import Pipeline

from cafelearn.choice.answer import Answer
from cafelearn.choice.chosen import MEASURED
from cafelearn.choice.selection import MIXTURE
from cafelearn.choice.verdict import VERDICTS
from cafelearn.data.variables import codes_of, of_variables
from cafelearn.estimators.cafe import CAFE
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.files.archive import UnsoundModel
from cafelearn.files.mixture_checks import check_state
from cafelearn.files.shapes import (
    DATE_FORMAT,
    NOT_NEGATIVE,
    OPTIONAL,
    POSITIVE,
    RECORDS,
    SHAPES,
    UNBOUNDED,
)
from cafelearn.mixture.model import Mixture
from cafelearn.tables.encoding import TableEncoder


def check_model(model, n_features=None):
    """Raise unless all parts of a fitted model have valid shapes, types and values.

    `n_features` is the number of features that the model must have, if it is known.
    """
    name = type(model).__name__
    if name not in SHAPES:
        raise UnsoundModel(f"{name} is not allowed in a model")
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    if isinstance(model, Pipeline):
        _check_pipeline(model, n_features)
        return
    width = getattr(model, "n_features_in_", None)
    if not isinstance(width, Integral) or width < 1:
        raise UnsoundModel(f"n_features_in_ of {name} is {_brief(width)}")
    if n_features is not None and width != n_features:
        raise UnsoundModel(f"{name} has {width} features instead of {n_features}")
    sizes = {"m": width}
    for attribute, letters in SHAPES[name].items():
        _check_numbers(name, attribute, getattr(model, attribute, None), letters, sizes)
    _check_names(name, getattr(model, "feature_names_in_", None), width)
    if hasattr(model, "feature_weights_"):
        _check_groups(name, model, width)
    if isinstance(model, MinkowskiWeightedKMeans):
        _check_clusters(model, sizes)
    elif isinstance(model, Mixture):
        _check_mixture(model, sizes)
    elif isinstance(model, CAFE):
        _check_cafe(model, sizes)
    elif isinstance(model, TabularCAFE):
        _check_tabular(model)


def _check_numbers(owner, attribute, numbers, letters, sizes):
    name = f"{attribute} of {owner}"
    if numbers is None and attribute in OPTIONAL:
        return
    kinds = "iu" if attribute == "labels_" else "f"
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in kinds:
        wanted = "integers" if kinds == "iu" else "floats"
        raise UnsoundModel(f"{name} is not an array of {wanted}")
    if numbers.ndim != len(letters):
        raise UnsoundModel(f"{name} has {numbers.ndim} dimensions instead of {len(letters)}")
    for letter, size in zip(letters, numbers.shape, strict=True):
        if sizes.setdefault(letter, size) != size or size == 0:
            raise UnsoundModel(f"{name} has the inconsistent shape {numbers.shape}")
    if attribute == "labels_":
        return
    if np.isnan(numbers).any() or (attribute not in UNBOUNDED and np.isinf(numbers).any()):
        raise UnsoundModel(f"{name} has non-finite values")
    if attribute in NOT_NEGATIVE and (numbers < 0).any():
        raise UnsoundModel(f"{name} has negative values")
    if attribute in POSITIVE and (numbers <= 0).any():
        raise UnsoundModel(f"{name} has values that are not positive")


def _check_names(owner, names, width):
    if names is None:
        return
    if not isinstance(names, np.ndarray) or names.shape != (width,):
        raise UnsoundModel(f"feature_names_in_ of {owner} does not name {width} features")
    if not all(isinstance(name, str) for name in names):
        raise UnsoundModel(f"feature_names_in_ of {owner} are not all text")


def _check_groups(owner, model, width):
    """Check that the variables of a model match its features and weights."""
    labels = getattr(model, "feature_groups_", None)
    if (labels is None) != (getattr(model, "feature_groups", None) is None):
        raise UnsoundModel(f"feature_groups_ of {owner} do not match its feature_groups")
    if labels is None:
        return
    if not isinstance(labels, np.ndarray) or labels.dtype.kind != "U":
        raise UnsoundModel(f"feature_groups_ of {owner} is not an array of text")
    if labels.shape != (width,):
        raise UnsoundModel(f"feature_groups_ of {owner} does not label {width} features")
    codes = codes_of(labels)
    weights = model.feature_weights_
    if (of_variables(weights, codes)[:, codes] != weights).any():
        raise UnsoundModel(f"feature_weights_ of {owner} differ within a variable")


def _check_clusters(model, sizes):
    owner = type(model).__name__
    _check_number(owner, model, sizes["k"])
    _check_labels(owner, model, sizes["k"])
    for attribute in ("_scale", "inertia_"):
        value = getattr(model, attribute, None)
        if not isinstance(value, Real) or not value >= 0:
            raise UnsoundModel(f"{attribute} of {owner} is {_brief(value)}")
    if not 0 < model._scale < np.inf:
        raise UnsoundModel(f"_scale of {owner} is {_brief(model._scale)}")


def _check_number(owner, model, n_clusters):
    """Check that a model has the given or chosen number of clusters."""
    if isinstance(model.n_clusters, Integral):
        if n_clusters != model.n_clusters:
            raise UnsoundModel(
                f"{owner} has {n_clusters} centres, but n_clusters={model.n_clusters}"
            )
        return
    numbers = getattr(model, "_numbers", None)
    table = numbers.get("table") if isinstance(numbers, dict) else None
    if not isinstance(table, dict) or set(table) != {"n_clusters", *MEASURED, "chosen"}:
        raise UnsoundModel(f"n_clusters_table_ of {owner} is damaged")
    kinds = (Real, np.bool_)
    lengths = {len(column) if _is_list(column, kinds) else -1 for column in table.values()}
    if len(lengths) != 1 or -1 in lengths or not isinstance(numbers.get("found"), bool):
        raise UnsoundModel(f"n_clusters_table_ of {owner} is damaged")
    chosen = [
        k
        for k, is_chosen in zip(table["n_clusters"], table["chosen"], strict=True)
        if is_chosen
    ]
    if chosen != [n_clusters]:
        raise UnsoundModel(
            f"{owner} has {n_clusters} centres, but n_clusters_table_ chooses {chosen}"
        )


def _check_labels(owner, model, n_clusters):
    labels = getattr(model, "labels_", None)
    if labels is not None and not (labels.min() >= 0 and labels.max() < n_clusters):
        raise UnsoundModel(f"labels_ of {owner} are not all from 0 to {n_clusters - 1}")


def _check_cafe(cafe, sizes):
    _check_candidates(cafe, sizes)
    _check_number("CAFE", cafe, sizes["k"])
    _check_labels("CAFE", cafe, sizes["k"])
    is_mixture = cafe.selection == MIXTURE
    _check_answer(cafe, sizes["k"])
    if is_mixture:
        _check_mixture_of(cafe, sizes["k"])
    if getattr(cafe, "scaler_", None) is not None:
        check_model(cafe.scaler_, cafe.n_features_in_)
    given = cafe._input
    if given == "memberships" and not is_mixture:
        raise UnsoundModel(f"rescaling='memberships' of CAFE needs selection={MIXTURE!r}")
    # The input of the extractor may include what belongs to each cluster.
    beside = {"memberships": 2, "distances": 1}.get(given, 0)
    # "auto" may mean no extractor.
    automatic = (cafe.extractor, given, cafe.n_components) == ("auto", "memberships", None)
    if cafe.extractor is None or automatic:
        if cafe.extractor_ is not None:
            raise UnsoundModel("CAFE has an extractor_ without an extractor")
    else:
        check_model(
            getattr(cafe, "extractor_", None), cafe.n_features_in_ + beside * sizes["k"]
        )


def _check_candidates(cafe, sizes):
    """Check the clusterings among which CAFE has chosen, or from which a mixture started."""
    models = getattr(cafe, "models_", None)
    if not isinstance(models, list) or not all(
        isinstance(model, MinkowskiWeightedKMeans) for model in models
    ):
        raise UnsoundModel("models_ of CAFE are not all MinkowskiWeightedKMeans")
    if sizes["c"] != len(models):
        raise UnsoundModel(f"agreement_ of CAFE does not match its {len(models)} models_")
    chosen = getattr(cafe, "model_", None)
    if not any(chosen is model for model in models):
        raise UnsoundModel("model_ of CAFE is not among its models_")
    for model in models:
        check_model(model, cafe.n_features_in_)
    for model in models:
        if not np.array_equal(_labels_of(model), _labels_of(cafe)):
            raise UnsoundModel("feature_groups_ of CAFE do not match its models_")
    if chosen.feature_weights_.shape != cafe.feature_weights_.shape:
        raise UnsoundModel("feature_weights_ of CAFE do not match its model_")
    if not isinstance(getattr(cafe, "p_", None), Real):
        raise UnsoundModel("p_ of CAFE is not a number")
    if sizes["d"] != 3:
        raise UnsoundModel("_distance_scales of CAFE are not three numbers")
    _check_records(cafe, models)


def _check_records(cafe, models):
    """Check the columns of `candidates_`."""
    tried = getattr(cafe, "_candidates", None)
    if not isinstance(tried, dict) or set(tried) != set(RECORDS):
        raise UnsoundModel("candidates_ of CAFE are damaged")
    for name, kinds in RECORDS.items():
        column = tried[name]
        if not _is_list(column, kinds):
            raise UnsoundModel(f"{name} in candidates_ of CAFE has values of a wrong type")
        if len(column) != len(models):
            raise UnsoundModel(f"candidates_ of CAFE do not match its {len(models)} models_")
    if [model is cafe.model_ for model in models] != [bool(it) for it in tried["chosen"]]:
        raise UnsoundModel("candidates_ of CAFE do not match its model_")


def _is_list(values, kinds):
    return isinstance(values, list) and all(isinstance(value, kinds) for value in values)


def _check_mixture(mixture, sizes):
    """Check a Mixture whose attributes have the right shapes."""
    if mixture.n_components != sizes["k"]:
        raise UnsoundModel(
            f"Mixture has {sizes['k']} means, but n_components={mixture.n_components}"
        )
    if abs(mixture.weights_.sum() - 1) > 1e-6:
        raise UnsoundModel("weights_ of Mixture have not the sum 1")
    _check_labels("Mixture", mixture, sizes["k"])
    for name in ("n_iter_", "_n_varying", "_root_scale"):
        value = getattr(mixture, name, None)
        if not isinstance(value, Real) or not 0 <= value < np.inf:
            raise UnsoundModel(f"{name} of Mixture is {_brief(value)}")
    value = getattr(mixture, "lower_bound_", None)
    if not isinstance(value, Real) or not np.isfinite(value):
        raise UnsoundModel(f"lower_bound_ of Mixture is {_brief(value)}")
    labels = getattr(mixture, "feature_groups_", None)
    if labels is not None and not (
        isinstance(labels, np.ndarray)
        and labels.dtype.kind == "U"
        and labels.shape == (mixture.n_features_in_,)
    ):
        raise UnsoundModel("feature_groups_ of Mixture do not label its features")
    check_state(mixture)


def _check_mixture_of(cafe, n_clusters):
    mixture = getattr(cafe, "mixture_", None)
    if not isinstance(mixture, Mixture):
        raise UnsoundModel("mixture_ of CAFE is not a Mixture")
    check_model(mixture, cafe.n_features_in_)
    if mixture.n_components != n_clusters:
        raise UnsoundModel("mixture_ of CAFE does not match its feature_weights_")
    if not np.array_equal(_labels_of(mixture), _labels_of(cafe)):
        raise UnsoundModel("feature_groups_ of CAFE do not match its mixture_")


def _check_answer(cafe, n_clusters):
    """Check what is known about the clusters of a CAFE."""
    answer = getattr(cafe, "_answer", None)
    names = Answer._fields if cafe.selection == MIXTURE else ("verdict", "gain")
    if not isinstance(answer, dict) or set(answer) != set(names):
        raise UnsoundModel("the answer of CAFE is damaged")
    known = isinstance(answer["verdict"], str) and answer["verdict"] in VERDICTS
    numbers = [answer[name] for name in ("gain", "stability") if name in answer]
    sound = known and all(isinstance(x, Real) and np.isfinite(x) for x in numbers)
    if sound and "clusters" in answer:
        clusters = answer["clusters"]
        shares = [answer["isolated"], *(clusters if isinstance(clusters, list) else [None])]
        sound = len(shares) == n_clusters + 1 and all(
            isinstance(share, Real) and 0 <= share <= 1 for share in shares
        )
    if not sound:
        raise UnsoundModel("the answer of CAFE has values of a wrong type or out of range")


def _labels_of(model):
    labels = getattr(model, "feature_groups_", None)
    return () if labels is None else labels


def _check_tabular(model):
    encoder, cafe = getattr(model, "encoder_", None), getattr(model, "cafe_", None)
    if not isinstance(encoder, TableEncoder) or not isinstance(cafe, CAFE):
        raise UnsoundModel("TabularCAFE lacks a TableEncoder or a CAFE")
    check_model(encoder)
    check_model(cafe)
    names = encoder._names_out
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnsoundModel("_names_out of TableEncoder are not all text")
    if len(names) != cafe.n_features_in_:
        raise UnsoundModel(
            f"TableEncoder has {len(names)} features, but CAFE has {cafe.n_features_in_}"
        )
    if not isinstance(encoder.numbers_, list) or not isinstance(encoder.categories_, dict):
        raise UnsoundModel("the columns of TableEncoder are damaged")
    given = encoder._names_in
    if given is not None and not (
        isinstance(given, list)
        and len(given) == encoder.n_features_in_
        and all(isinstance(name, str) for name in given)
    ):
        raise UnsoundModel("_names_in of TableEncoder are damaged")
    _check_treatments(encoder)
    if not all(isinstance(values, list) for values in encoder.categories_.values()):
        raise UnsoundModel("the categories of TableEncoder are damaged")
    _check_labels("TabularCAFE", model, cafe.n_clusters_)
    _check_reading(model._reading)


def _check_reading(reading):
    """Check the options with which the command ``cafe fit`` read the table."""
    if reading is None:
        return
    known = {"decimal", "missing", "thousands", "texts", "dates"}
    if not (
        isinstance(reading, dict)
        and set(reading) == known
        and reading["decimal"] in (".", ",")
        and reading["thousands"] in (None, "none", ".", ",")
        and isinstance(reading["texts"], dict)
        and isinstance(reading["dates"], dict)
        and all(map(_is_text_list, (reading["missing"], *reading["texts"].values())))
        and all(
            isinstance(form, str) and DATE_FORMAT.fullmatch(form)
            for form in reading["dates"].values()
        )
    ):
        raise UnsoundModel("the reading options of TabularCAFE are damaged")


def _is_text_list(value):
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _check_treatments(encoder):
    """Check the treatments and the date columns of a TableEncoder."""
    treatments, dates = getattr(encoder, "_treatments", None), getattr(encoder, "dates_", None)
    if not isinstance(dates, list) or not set(dates) <= set(encoder.numbers_):
        raise UnsoundModel("dates_ of TableEncoder are not among its numbers_")
    if (
        not isinstance(treatments, dict)
        or not all(
            isinstance(each, list)
            and len(each) == 3
            and all(isinstance(text, str) for text in each)
            for each in treatments.values()
        )
        or not set(dates) <= set(treatments)
    ):
        raise UnsoundModel("treatments_ of TableEncoder are damaged")


def _check_pipeline(pipeline, n_features):
    if not isinstance(pipeline.steps, list) or not pipeline.steps:
        raise UnsoundModel("Pipeline has no steps")
    for place, (_, step) in enumerate(pipeline.steps):
        if step not in (None, "passthrough"):
            check_model(step, n_features if place == 0 else None)


def _brief(value):
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
