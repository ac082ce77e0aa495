"""Cases that failed once. They are always run."""

FIT = {
    "what": "fits",
    "seed": 225,
    "kind": "ties",
    "rows": 200,
    "columns": 2,
    "dtype": "float32",
    "weights": "unweighted",
    "n_clusters": 3,
    "p": 1.01,
    "offset": 0.0,
    "weighting": "cluster",
    "init": "random",
    "n_jobs": 1,
}

CORPUS = [
    # A dispersion of 0 in single precision.
    FIT,
    # A column with one subnormal cell: no end.
    FIT | {"kind": "subnormal", "rows": 60, "dtype": "float64", "p": 2.0, "offset": "mean"},
]
