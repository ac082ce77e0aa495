"""Extreme fits: a case is a dictionary that determines data, weights and parameters."""

import numpy as np

# Sizes about every threshold: one block (128 or 256 rows), one chunk (at most 8,192), and more
# rows than the plain loop is used for (5,000).
SIZES = (2, 3, 5, 8, 20, 50, 60, 127, 128, 129, 200, 255, 256, 257, 400)
LARGE_SIZES = (1000, 4999, 5000, 5001, 5500, 8192, 8193)
WIDTHS = (1, 2, 3, 4, 5, 8, 15, 16, 17, 33)
MOST_CHANGES = 8  # of one file
EXPONENTS = (
    1.001,
    1.01,
    1.02,
    1.03,
    1.1,
    1.3,
    1.5,
    1.9,
    2.0,
    2.1,
    3.0,
    4.0,
    5.0,
    8.0,
    9.0,
    50.0,
)


def normal(rng, n, m):
    return rng.normal(size=(n, m)) + 4 * rng.integers(0, 3, (n, 1))


def ties(rng, n, m):
    return rng.integers(-2, 3, (n, m)).astype(float)


def integers(rng, n, m):
    return rng.integers(0, 10 ** rng.integers(1, 6), (n, m)).astype(float)


def one_hot(rng, n, m):
    return np.eye(max(m, 2))[rng.integers(0, max(m, 2), n)][:, :m]


def constants(rng, n, m):
    X = normal(rng, n, m)
    X[:, rng.random(m) < 0.5] = rng.choice([0.0, 1.0, -1e6, 3e-7])
    return X


def duplicates(rng, n, m):
    return normal(rng, max(n // 10, 1), m)[rng.integers(0, max(n // 10, 1), n)]


def heavy_tails(rng, n, m):
    return rng.standard_cauchy((n, m)) ** rng.choice([1, 3])


def far_from_zero(rng, n, m):
    return normal(rng, n, m) * rng.uniform(0.1, 100, m) + 10.0 ** rng.integers(3, 8)


def column_scales(rng, n, m):
    return normal(rng, n, m) * 10.0 ** rng.integers(-6, 7, m)


def rounded(rng, n, m):
    return np.round(normal(rng, n, m), 1)


def almost_tied(rng, n, m):
    return ties(rng, n, m) + 1e-12 * rng.normal(size=(n, m))


def outlier(rng, n, m):
    X = normal(rng, n, m)
    X[rng.integers(n), rng.integers(m)] = 10.0 ** rng.integers(3, 13)
    return X


def subnormal(rng, n, m):
    X = normal(rng, n, m)
    X[:, 0] = 0
    X[rng.integers(n), 0] = rng.choice([5e-324, 1e-310, 1e-300, 1e-40])
    return X


def huge(rng, n, m):
    return normal(rng, n, m) * rng.choice([1e30, 1e100, 1e300])


def tiny(rng, n, m):
    return normal(rng, n, m) * rng.choice([1e-30, 1e-100, 1e-300])


KINDS = {
    function.__name__: function
    for function in (
        normal,
        ties,
        integers,
        one_hot,
        constants,
        duplicates,
        heavy_tails,
        far_from_zero,
        column_scales,
        rounded,
        almost_tied,
        outlier,
        subnormal,
        huge,
        tiny,
    )
}
SINGLE_LIMIT = {"huge": 1e36, "tiny": 1e-36}


def unweighted(rng, n):
    return None


def ordinary(rng, n):
    return rng.uniform(0.5, 2, n)


def wide(rng, n):
    return 10.0 ** rng.uniform(-5, 5, n)


def some_zero(rng, n):
    return np.where(rng.random(n) < 0.3, 0.0, rng.integers(1, 4, n).astype(float))


def far_from_one(rng, n):
    return rng.uniform(0.5, 2, n) * rng.choice([1e-300, 1e-30, 1e30, 1e300])


WEIGHTS = {
    function.__name__: function
    for function in (unweighted, ordinary, wide, some_zero, far_from_one)
}


def draw(rng):
    """A new case."""
    n = int(rng.choice(LARGE_SIZES if rng.random() < 0.04 else SIZES))
    m = int(rng.choice(WIDTHS[:5] if n > 400 else WIDTHS))
    near_n = n <= 50 and rng.random() < 0.15
    k = max(1, n - int(rng.integers(0, 3))) if near_n else min(n, int(rng.integers(1, 7)))
    p = float(rng.choice(EXPONENTS)) if rng.random() < 0.7 else float(rng.uniform(1.001, 6))
    return {
        "what": "fits",
        "seed": int(rng.integers(2**31)),
        "kind": str(rng.choice(list(KINDS))),
        "rows": n,
        "columns": m,
        "dtype": "float32" if rng.random() < 0.35 else "float64",
        "weights": str(rng.choice(list(WEIGHTS), p=[0.6, 0.1, 0.1, 0.1, 0.1])),
        "n_clusters": k,
        "p": p,
        "offset": [0.0, "fixed", "mean", 1e-3][rng.choice(4, p=[0.35, 0.35, 0.2, 0.1])],
        "weighting": "uniform" if rng.random() < 0.15 else "cluster",
        "init": str(rng.choice(["random", "k-means++", "anomalous"], p=[0.6, 0.3, 0.1])),
        "n_jobs": 2 if rng.random() < 0.1 else 1,
    }


def draw_model(rng):
    """A new damaged model file; see `files`, which knows how many there are to damage."""
    how = str(rng.choice(["bytes", "numbers", "member", "shape", "schema"]))
    return {"what": "models", "how": how, **_file(rng)}


def draw_table(rng):
    """A new damaged table."""
    how = str(rng.choice(["bytes", "numbers", "inside"]))
    return {"what": "tables", "how": how, **_file(rng)}


def _file(rng):
    return {"seed": int(rng.integers(2**31)), "file": int(rng.integers(60))}


def data(case):
    """Rows and sample weights of a case."""
    rng = np.random.default_rng(case["seed"])
    with np.errstate(over="ignore", under="ignore"):
        X = KINDS[case["kind"]](rng, case["rows"], case["columns"])
        if case["dtype"] == "float32":
            if case["kind"] in SINGLE_LIMIT:
                X *= SINGLE_LIMIT[case["kind"]] / np.abs(X).max()
            X = np.clip(X, -3e38, 3e38)
        X = np.ascontiguousarray(X, dtype=case["dtype"])
    weights = WEIGHTS[case["weights"]](rng, len(X))
    if weights is not None and not (weights > 0).any():
        weights[0] = 1.0
    return X, weights


def smaller(case):
    """Cases with fewer rows, columns and clusters, and without what may not matter."""
    for name, least in (("rows", 2), ("columns", 1), ("n_clusters", 1)):
        for part in (0.5, 0.8):
            value = max(least, int(case[name] * part))
            if value < case[name]:
                yield _fitting(case | {name: value})
        if case[name] > least:
            yield _fitting(case | {name: case[name] - 1})
    for name, plain in (("weights", "unweighted"), ("n_jobs", 1), ("init", "random")):
        if case[name] != plain:
            yield case | {name: plain}


def _fitting(case):
    return case | {"n_clusters": min(case["n_clusters"], case["rows"])}


def smaller_file(case):
    """Cases with fewer of the changes that damage a file."""
    for number in range(MOST_CHANGES):
        if number not in case.get("without", ()):
            yield case | {"without": [*case.get("without", ()), number]}
