"""Quantities in the paper's claims about one fit."""

import numpy as np

from cafelearn.data.variables import (
    codes_of,
    fitted_columns,
    of_variables,
    sum_over_variables,
    variable_codes,
)
from cafelearn.kmeans.descent import one_cluster
from cafelearn.kmeans.kernels.weights import cells_of, log_mean_dispersion, make_groups
from cafelearn.kmeans.scales import data_scale
from cafelearn.kmeans.starts import uses_offset
from cafelearn.theory.formulas import dispersions


class Facts:
    """Quantities in the claims, computed on data scaled so that the widest range is near 1."""

    def __init__(self, model, X, sample_weight, nearest):
        self.model, self.p = model, float(model.p)
        self.exact = 1e-8 if X.dtype == np.float64 else 1e-3  # tolerance for rounding
        # Constant variables have no weight, so the claims do not cover them.
        used = fitted_columns(model)
        self.X = X[:, used].astype(np.float64) * model._scale
        self.sample_weight = sample_weight
        self.labels = model.labels_
        if len(self.labels) != len(X):
            raise ValueError(
                f"certificate needs the {len(self.labels)} rows that the model was fitted on, "
                f"got {len(X)}."
            )
        self.centers = model.cluster_centers_[:, used].astype(np.float64) * model._scale
        # With feature groups, the claims are about variables, whose columns share one weight.
        codes = variable_codes(model)
        self.codes = None if codes is None else codes_of(codes[used])
        self.column_weights = model.feature_weights_[:, used].astype(np.float64)
        self.weights = of_variables(self.column_weights, self.codes)
        D = dispersions(self.X, self.labels, self.centers, self.p, sample_weight)
        self.D = sum_over_variables(D, self.codes)
        self.offset = self._offset()
        self.moved = int((nearest != self.labels)[sample_weight > 0].sum())

    def _offset(self):
        offset = self.model.dispersion_offset
        if not uses_offset(self.model):
            return 0.0
        if isinstance(offset, str) and offset == "mean":
            return float(self.D.mean())
        if isinstance(offset, str):
            _, scale = data_scale(self.X.min(axis=0), self.X.max(axis=0))
            _, log_D = one_cluster(self.X, self.sample_weight, scale, self.p)
            groups = make_groups(len(log_D), self.codes)
            mean = np.exp(log_mean_dispersion.from_python(cells_of(log_D[None, :]), groups))
            return float(mean * 0.1 / len(self.model.cluster_centers_))
        if offset == 0:
            return 0.0
        with np.errstate(over="ignore"):
            return float(offset * np.float64(self.model._scale) ** self.p)

    @property
    def why_not(self):
        """Reason why the claims about Eq. 4 do not apply, or None."""
        if self.other_weighting:
            return f"weighting={self.model.weighting!r}"
        if not (isinstance(self.model.dispersion_offset, str) or self.offset > 0):
            return self.unfinished
        return f"weights use dispersion_offset={self.model.dispersion_offset!r}"

    @property
    def other_weighting(self):
        """Whether the weights are not those of Eq. 4."""
        return self.model.weighting != "cluster"

    @property
    def unfinished(self):
        """Reason why the fit stopped before convergence, or None."""
        if self.model.stop_reason_ != "converged":
            return f"stopped by {self.model.stop_reason_}"
        return "stopped by tol" if self.model.tol > 0 else None

    @property
    def positive(self):
        """For each cluster, whether all its dispersions are positive, as the theory assumes."""
        return (self.D > 0).all(axis=1)
