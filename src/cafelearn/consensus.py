"""Fit mwk-means for several exponents and choose the one that the others agree with most."""

from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from cafelearn._seeds import seed_integer
from cafelearn.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.starts import prepare, run_starts
from cafelearn.theory import normalized_objective


class Consensus(NamedTuple):
    """The outcome of a sweep."""

    p: float
    agreement: np.ndarray  # ARI between the clusterings of each pair of exponents


def make_models(exponents, seed, **options):
    """One mwk-means for each exponent, each with its own child of the SeedSequence `seed`."""
    return [
        MinkowskiWeightedKMeans(p=p, random_state=seed_integer(child), **options)
        for p, child in zip(exponents, seed.spawn(len(exponents)), strict=True)
    ]


def sweep(models, X, n_jobs=None, verbose=0):
    """Fit the models, all starts of all of them in one pool of workers.

    Returns the numbers of clusters that each has found.
    """
    jobs = [prepare(model, X) for model in models]
    run_starts(jobs, n_jobs, verbose)
    return [job.best.n_found for job in jobs]


def choose(models):
    """The exponent whose clustering has the highest total agreement with the others.

    Ties, which are the rule for two exponents, go to the model whose objective is lower
    relative to its bounds (Theorem 2), and then to the smaller exponent.
    """
    labels = [model.labels_ for model in models]
    agreement = np.eye(len(models))
    for i in range(len(models)):
        for j in range(i):
            agreement[i, j] = agreement[j, i] = adjusted_rand_score(labels[i], labels[j])
    total = agreement.sum(axis=1) - 1

    def rank(i):
        # Rounded, so that the order of a sum does not decide.
        position = normalized_objective(models[i].dispersions_, models[i].p)
        return -round(total[i], 12), round(position, 12), models[i].p

    best = min(range(len(models)), key=rank)
    return Consensus(float(models[best].p), agreement)
