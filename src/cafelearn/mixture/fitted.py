"""What a fitted mixture says of rows: probabilities, densities, draws, relevance."""

from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.seeds import seed_sequence
from cafelearn.base.typing import MatrixLike
from cafelearn.data.validation import check_data
from cafelearn.mixture.columns import Columns, read_rows
from cafelearn.mixture.drawing import draw_rows
from cafelearn.mixture.em import Family, Parameters
from cafelearn.mixture.marginals import Marginals
from cafelearn.mixture.powers import Powers
from cafelearn.mixture.rows import Fitted, in_batches


class FittedMixture:
    """Methods and attributes of a `Mixture` that need only its state, `_fitted`."""

    n_features_in_: int

    def _cluster_features(self, X):
        """Return the membership probabilities of validated rows, and the roots of densities.

        A root is minus the square root of twice the log density of the row in a cluster,
        relative to the highest one: minus its Mahalanobis distance, for a normal distribution.
        The total variance of the roots is about 1.
        """
        shares, densities, _ = in_batches(X, self._fitted)
        below = np.maximum(self._peaks - densities, 0.0)
        return shares, -np.sqrt(2 * below) * self._root_scale

    def _probabilities(self, X):
        """Return the membership probabilities of validated rows."""
        return in_batches(X, self._fitted)[0]

    def _checked(self, X):
        check_is_fitted(self)
        return check_data(self, X, reset=False, gaps=True)

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Compute the probability of each component for each row, the background aside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components)
            The probabilities; each row has the sum 1.
        """
        return self._probabilities(self._checked(X))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Find the most likely component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Index of the component.
        """
        return self.predict_proba(X).argmax(axis=1).astype(np.int32)

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Compute the log density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log of the density with respect to continuous values and of the probability of
            categories and atoms.
        """
        return in_batches(self._checked(X), self._fitted)[2]

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Compute the mean log density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.
        y : None
            Ignored; present by convention.

        Returns
        -------
        score : float
            Mean of :meth:`score_samples`.
        """
        return float(self.score_samples(X).mean())

    def bic(self, X: MatrixLike) -> float:
        """Compute the Bayesian information criterion; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        bic : float
            The criterion.
        """
        log_density = self.score_samples(X)
        columns, parameters, _ = self._fitted
        n_parameters = columns.n_parameters + parameters.n_parameters
        return float(n_parameters * np.log(len(log_density)) - 2 * log_density.sum())

    def icl(self, X: MatrixLike) -> float:
        """Compute the integrated completed likelihood criterion; lower is better.

        It is the BIC plus twice the entropy of the membership probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        icl : float
            The criterion.
        """
        share = self.predict_proba(X)
        return self.bic(X) - 2 * float((share * np.log(np.maximum(share, 1e-300))).sum())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, without missing values.
        labels : ndarray of shape (n_samples,)
            Component of each row; -1 for the background.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"Mixture.sample needs n_samples to be >= 1, got {n_samples!r}.")
        rng = np.random.default_rng(seed_sequence(self.random_state).spawn(3)[2])
        return draw_rows(self._fitted, int(n_samples), rng)

    def transform_columns(self, X: MatrixLike) -> np.ndarray:
        """Transform the continuous columns as the mixture does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        values : ndarray of shape (n_samples, n_continuous)
            Transformed values with a mean of about 0 and a variance of about 1; 0 for atoms and
            missing values.
        """
        return np.array(read_rows(self._checked(X), self._fitted.columns).values)

    @property
    def covariances_(self) -> np.ndarray:
        """Covariance matrices of the transformed continuous columns."""
        check_is_fitted(self)
        _, parameters, _ = self._fitted
        own = np.where(parameters.used > 0, parameters.variance, 1.0)
        found = np.stack([np.diag(variance) for variance in own])
        block = parameters.block
        found[:, block[:, None], block] = parameters.covariance
        return found

    @property
    def relevance_(self) -> np.ndarray:
        """Role of each feature in each component."""
        check_is_fitted(self)
        columns, parameters, _ = self._fitted
        k = len(parameters.mean)
        found = np.zeros((k, self.n_features_in_), dtype=np.int8)
        kind = np.where(parameters.used > 0, parameters.kind, 0)
        kind[:, parameters.block] = parameters.kind[parameters.block]
        found[:, columns.place] = kind
        places = columns.event_place, columns.place[columns.marginals.mode_column]
        matters = parameters.log_ratio[:k] != 0
        for place, column in enumerate(np.concatenate(places).tolist()):
            found[matters[:, place], column] = 2
        return found

    @property
    def covariance_(self) -> str:
        """The chosen covariance structure."""
        check_is_fitted(self)
        return self._fitted.family.covariance

    @property
    def tails_(self) -> bool:
        """Whether t distributions were chosen."""
        check_is_fitted(self)
        return self._fitted.family.tails

    @property
    def background_(self) -> float:
        """Share of the background."""
        check_is_fitted(self)
        _, parameters, family = self._fitted
        return float(np.exp(parameters.log_weight[-1])) if family.background else 0.0

    @property
    def _fitted(self):
        """The fitted mixture; stored as dictionaries of arrays, which model files can hold."""
        state = self._state
        columns = dict(state["columns"])
        columns["powers"] = Powers(**columns["powers"])
        columns["marginals"] = Marginals(**columns["marginals"])
        return Fitted(
            Columns(**columns), Parameters(**state["parameters"]), Family(**state["family"])
        )

    @_fitted.setter
    def _fitted(self, fitted):
        columns = fitted.columns._asdict()
        columns["powers"] = columns["powers"]._asdict()
        columns["marginals"] = columns["marginals"]._asdict()
        parameters = fitted.parameters._asdict()
        parameters["covariance"] = np.array(parameters["covariance"])
        self._state = {
            "columns": columns,
            "parameters": parameters,
            "family": fitted.family._asdict(),
        }
