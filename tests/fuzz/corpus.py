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
    # Single precision far from zero, and with columns of very different ranges.
    FIT
    | {"seed": 1014788488, "kind": "far_from_zero", "rows": 129, "columns": 5}
    | {"n_clusters": 4, "p": 8.0, "init": "anomalous"},
    FIT
    | {"seed": 131563500, "kind": "column_scales", "rows": 60, "columns": 5}
    | {"p": 3.9588448529380025, "init": "k-means++"},
    # Warnings of arithmetic: sizes and dispersions of huge weights, waiting times.
    FIT | {"seed": 1913147182, "kind": "normal", "rows": 9, "weights": "far_from_one"},
    FIT
    | {"seed": 1687673800, "kind": "integers", "rows": 1000, "dtype": "float64"}
    | {"weights": "far_from_one", "n_clusters": 2, "p": 1.3},
    FIT
    | {"seed": 747622341, "kind": "heavy_tails", "rows": 15, "n_clusters": 2, "p": 50.0}
    | {"weighting": "uniform", "init": "k-means++"},
    # A row of no weight so far away that its distance overflows.
    FIT
    | {"seed": 1843295939, "kind": "huge", "rows": 2, "columns": 1, "weights": "some_zero"}
    | {"n_clusters": 1, "p": 3.9376088239593874, "offset": 0.001, "init": "k-means++"},
    # Powers of distances so small that waiting times for them are infinite.
    FIT
    | {"seed": 1046369241, "kind": "outlier", "rows": 4, "columns": 15, "n_clusters": 3}
    | {
        "dtype": "float64",
        "p": 50.0,
        "offset": "fixed",
        "weighting": "uniform",
        "init": "k-means++",
    },
    # Centres at p > 2 whose error was taken for less than it is.
    FIT
    | {"seed": 208383635, "kind": "ties", "rows": 20, "columns": 16, "weights": "wide"}
    | {"n_clusters": 5, "p": 5.0, "offset": "fixed"},
    # All ranges are so small that those of some columns would count as none.
    FIT
    | {"seed": 1757731941, "kind": "tiny", "rows": 3, "columns": 33, "weights": "some_zero"}
    | {"n_clusters": 2, "p": 1.3, "offset": "fixed"},
    # Almost tied members of huge weight, whose centre is rounded to much of their range.
    FIT
    | {"seed": 18563263, "kind": "almost_tied", "rows": 3, "columns": 8, "dtype": "float64"}
    | {"weights": "far_from_one", "n_clusters": 2, "p": 1.8327731797721283}
    | {"weighting": "uniform"},
    # Labels that come back, of equal objectives.
    FIT
    | {"seed": 935058247, "kind": "almost_tied", "rows": 20, "columns": 8, "dtype": "float64"}
    | {"p": 1.02, "offset": "fixed", "init": "k-means++"},
    # Rows of float32 that are fitted in float64, in which the range of each column counts.
    FIT
    | {"seed": 795173827, "kind": "subnormal", "rows": 2, "columns": 8, "n_clusters": 2}
    | {"p": 50.0},
    # Waiting times that overflow beyond 5,000 rows.
    FIT
    | {"seed": 1768041817, "kind": "heavy_tails", "rows": 5001, "columns": 1, "p": 50.0}
    | {"dtype": "float64", "n_clusters": 2, "offset": "mean", "init": "k-means++"},
    # A centre between two points where the rest of the gradient is equally steep.
    FIT
    | {"seed": 1843086533, "kind": "integers", "rows": 129, "columns": 1}
    | {"dtype": "float64", "n_clusters": 4, "p": 1.5},
    # A centre that was off by little of the range, but by much of the usual distance.
    FIT
    | {"seed": 492198738, "kind": "heavy_tails", "rows": 5242, "columns": 1}
    | {"n_clusters": 2, "weighting": "uniform"},
    # A centre that comes from far away to members of a tiny range.
    FIT
    | {"seed": 1519877861, "kind": "almost_tied", "rows": 9, "columns": 16, "weights": "wide"}
    | {"n_clusters": 4, "p": 4.726161427049602},
    # Rows that move between centres at distances that count as zero.
    FIT
    | {"seed": 117353741, "kind": "subnormal", "rows": 257, "columns": 33, "n_clusters": 2}
    | {"dtype": "float64", "weights": "far_from_one", "p": 1.5290233440610126},
    FIT
    | {"seed": 1704835254, "kind": "outlier", "rows": 8192, "columns": 1, "p": 4.0}
    | {"offset": 0.001},
    # Dispersions after a step along which the gradient is no straight line.
    FIT
    | {"seed": 2010427402, "kind": "rounded", "rows": 3, "columns": 16, "dtype": "float64"}
    | {"weights": "wide", "n_clusters": 1, "p": 3.0, "weighting": "uniform"},
    FIT
    | {"seed": 2926880, "kind": "heavy_tails", "rows": 255, "columns": 15, "dtype": "float64"}
    | {"weights": "wide", "n_clusters": 1, "p": 4.0, "init": "anomalous"},
    FIT
    | {"seed": 1565036918, "kind": "heavy_tails", "rows": 63, "columns": 8}
    | {"dtype": "float64", "weights": "wide", "n_clusters": 1, "p": 3.1304878261715454},
    # A heavy member next to the centre, one number away, that made most of the dispersion.
    FIT
    | {"seed": 497074299, "rows": 16, "columns": 12, "weights": "wide", "p": 1.001}
    | {"offset": 0.001},
    FIT
    | {"seed": 132797700, "kind": "constants", "rows": 3, "weights": "wide", "n_clusters": 2}
    | {"p": 1.1, "offset": "fixed"},
    FIT
    | {"seed": 664983566, "kind": "constants", "rows": 20, "columns": 16, "weights": "wide"}
    | {"n_clusters": 5, "p": 1.02, "offset": 0.001},
    # A power whose polynomial has a highest coefficient of 0.
    FIT
    | {"seed": 1456106920, "kind": "tiny", "rows": 2, "columns": 1, "dtype": "float64"}
    | {"n_clusters": 1, "p": 4.999113084153957, "weighting": "uniform"},
    # Distances whose powers are just above the smallest normal number.
    FIT
    | {"seed": 1621082381, "kind": "almost_tied", "rows": 49, "columns": 1, "dtype": "float32"}
    | {"n_clusters": 7, "p": 2.9027842854714674, "offset": 0.0},
    # A Feather file with damaged notes of pandas.
    {"what": "tables", "how": "bytes", "seed": 1155730646, "file": 9},
    {"what": "tables", "how": "bytes", "seed": 1175949915, "file": 9},
    # Statistics of sizes in a Parquet footer on which Arrow ends the process.
    {"what": "tables", "how": "inside", "seed": 1874146462, "file": 46}
    | {"without": [1, 2, 3, 4, 5, 6, 7]},
    {"what": "tables", "how": "numbers", "seed": 1600808970, "file": 59}
    | {"without": [0, 1, 3, 4, 5, 6, 7]},
    # A search for a centre that begins at a heavy member.
    FIT
    | {"seed": 326239712, "kind": "far_from_zero", "rows": 20, "columns": 15}
    | {"dtype": "float64", "weights": "wide", "n_clusters": 6, "p": 3.0, "init": "k-means++"},
    # The header of a NumPy file that Python's tokenizer gives up on.
    {"what": "tables", "how": "inside", "seed": 717369485, "file": 25, "without": [1]},
    # A Feather file whose lengths ask for more than the file has.
    {"what": "tables", "how": "inside", "seed": 197765398, "file": 24},
    {"what": "tables", "how": "inside", "seed": 898885088, "file": 37},
    # A centre that differs from its members, which are all 0, by less than counts.
    FIT
    | {"seed": 1031789367, "kind": "ties", "rows": 127, "columns": 33, "p": 1.03}
    | {"n_clusters": 5, "offset": "fixed"},
    # A cluster that is emptied, reseeded, and gets the members of the first iteration again.
    FIT
    | {"seed": 409148855, "kind": "one_hot", "rows": 129, "columns": 4, "p": 8.0}
    | {"weights": "far_from_one", "n_clusters": 2, "offset": 0.001},
    # A model file in which a feature has another name.
    {"what": "models", "how": "schema", "seed": 848209394, "file": 54}
    | {"without": [1, 2, 3, 4, 5, 6, 7]},
]
