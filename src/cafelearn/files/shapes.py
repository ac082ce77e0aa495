"""Shapes, signs and types of the attributes of models."""

import re
from numbers import Real
from types import NoneType

import numpy as np

from cafelearn.extraction.table import EXTRACTORS

# Shapes of fitted attributes, one letter per dimension. Dimensions with the same letter are
# equal within a model: m features, k clusters, r components, n rows. `_check_cafe` checks the
# sizes c and d; the other letters stand for any size.
SHAPES = {
    "MinkowskiWeightedKMeans": {
        "cluster_centers_": "km",
        "feature_weights_": "km",
        "dispersions_": "km",
        "objective_path_": "i",
        "init_objectives_": "s",
        "_mass": "k",
        "_members": "k",
        "_ranges": "m",
        "_typical": "km",
        "labels_": "n",
    },
    "Mixture": {
        "weights_": "k",
        "means_": "km",
        "_center": "m",
        "_spread": "m",
        "_peaks": "k",
        "labels_": "n",
    },
    "CAFE": {
        "feature_weights_": "km",
        "agreement_": "cc",
        "_distance_scales": "d",
        "labels_": "n",
    },
    "TabularCAFE": {"labels_": "n"},
    "TableEncoder": {},
    "Pipeline": {},
    "RangeScaler": {"mean_": "m", "range_": "m"},
    "StandardScaler": {"mean_": "m", "var_": "m", "scale_": "m"},
    "MinMaxScaler": {name: "m" for name in ("min_", "scale_", "data_min_", "data_max_")},
    "MaxAbsScaler": {"scale_": "m", "max_abs_": "m"},
    "RobustScaler": {"center_": "m", "scale_": "m"},
    "TruncatedSVD": {"components_": "rm"},
} | {
    entry.kind.rpartition(".")[2]: entry.shapes for entry in EXTRACTORS.values() if entry.shapes
}
# Attributes that may be missing or None: labels after fits to Dask collections, statistics that
# some options omit, and attributes that older versions did not save.
OPTIONAL = {
    "labels_",
    "mean_",
    "var_",
    "scale_",
    "center_",
    "_members",
    "_ranges",
    "_typical",
}
# Attributes that may be infinite, because powers may overflow. No attribute may contain NaN.
UNBOUNDED = {"dispersions_", "objective_path_", "init_objectives_", "_typical", "var_"}
NOT_NEGATIVE = {
    "feature_weights_",
    "dispersions_",
    "explained_variance_",
    "_mass",
    "_members",
    "_typical",
}
POSITIVE = {"scale_", "range_", "_distance_scales", "_spread"}
# Types of the values in each column of `candidates_`.
RECORDS = {
    "scaling": str,
    "weighting": str,
    "dispersion_offset": (str, Real, NoneType),
    "p": Real,
    "objective": Real,
    "score": Real,
    "smallest": Real,
    "largest": Real,
    "agreement": Real,
    "chosen": (bool, np.bool_),
}
# Date formats that the command ``cafe fit`` stores in a model.
DATE_FORMAT = re.compile(r"%[dm][./-]%[dm][./-]%Y([ T]%H:%M(:%S)?)?")
