"""The fit of CAFE to a source of rows; see `cafelearn.data.source`."""

from typing import NamedTuple

import numpy as np
from sklearn import config_context

from cafelearn.base.progress import phase
from cafelearn.base.seeds import seed_integer, seed_sequence
from cafelearn.base.typing import MatrixLike, VectorLike
from cafelearn.choice.answer import best_starts, fit_mixture, judge_labels
from cafelearn.choice.diagnosis import warn_of
from cafelearn.choice.selection import (
    MIXTURE,
    SELECTIONS,
    add_tables,
    agreement_matrix,
    contingency_tables,
    highest,
)
from cafelearn.data.moments import combine_moments, sum_moments
from cafelearn.data.source import scale_rows
from cafelearn.data.validation import check_unscaled, is_dask
from cafelearn.data.variables import columns_of_variables, set_variables, variable_codes
from cafelearn.estimators.cafe_fitted import FittedCAFE
from cafelearn.estimators.candidates import (
    candidate_records,
    fit_models,
    make_candidates,
    make_models,
)
from cafelearn.estimators.opening import open_rows
from cafelearn.estimators.scaling import LARGEST_SAMPLE
from cafelearn.estimators.variable_scaling import fit_scalers, scaling_key
from cafelearn.extraction.fitting import (
    extractor_of,
    fit_extractor,
    fit_pca,
    fits_from_moments,
    width_of,
)
from cafelearn.extraction.rescaling import (
    balancing_scales,
    shortest_distance,
    spread_sums,
    weights_of,
)
from cafelearn.mixture.descent import score_labels
from cafelearn.mixture.em import add_sums
from cafelearn.mixture.rows import counting_unit, one_thread, prepare, sum_batches
from cafelearn.mixture.settings import LIMITS


class FittingCAFE(FittedCAFE):
    """Fit a CAFE."""

    def fit_transform(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> np.ndarray:
        """Fit and extract the features of the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; see :meth:`fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            The same as ``fit(X).transform(X)``.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def _open(self, X, sample_weight):
        """Check the rows and return their source."""
        if is_dask(X) and sample_weight is not None:
            raise ValueError(
                f"{type(self).__name__} takes no sample_weight for Dask collections; "
                "MinkowskiWeightedKMeans does."
            )
        return open_rows(self, X, sample_weight)

    def _fit(self, source):
        """Fit with the number of clusters that was given or chosen."""
        candidates = make_candidates(self)
        set_variables(self)
        codes = variable_codes(self)
        if any(candidate.scaling is None for candidate in candidates):
            check_unscaled(source.low, source.high, self)
        seeds = seed_sequence(self.random_state).spawn(4)
        for_models, for_extractor, for_search, for_answer = seeds
        seed = seed_integer(for_extractor)
        extractor = extractor_of(self, source.n_counted, source.shape[1], seed)
        # Candidates with the same scaling share one source of scaled rows.
        scalers = fit_scalers(candidates, source, codes, for_extractor)
        scaled = dict(zip(scalers, source.scaled(scalers.values(), self), strict=True))
        sources = [scaled[scaling_key(candidate, codes)] for candidate in candidates]
        prepared = self._prepare(source, for_search)
        models, found, scores = self._fit_candidates(
            candidates, for_models, sources, prepared, source.gaps
        )
        chosen = self._choose(candidates, models, found, scores, source, sources)
        self.scaler_ = sources[chosen].scaler
        if self.selection == MIXTURE:
            best = best_starts(scores)
            its_sources = [sources[i] for i in best]
            starts = _predict([models[i] for i in best], its_sources, prepared.X)
            self._fit_mixture(source, prepared, starts, for_answer)
            placed = source.labelled(source.portable(self)._assign)
            self._weigh(placed, sources[chosen], codes)
        else:
            placed = source.labelled(source.portable(self)._assign, self.model_.labels_)
            labels = self._assign(prepared.X)
            self._judge(prepared, labels, for_answer)
        self._extract(extractor, placed, for_extractor)
        for model, its_source in zip(models, sources, strict=True):
            model.labels_ = its_source.labels(model, model.labels_)
        self.labels_ = source.labels(self, placed.placed)
        if self.selection == MIXTURE and isinstance(self.labels_, np.ndarray):
            self.mixture_.labels_ = self.labels_[source.kept]
        warn_of(self.diagnosis_, type(self).__name__)
        return self

    def _prepare(self, source, seed):
        """Prepare the rows of the search: all rows, or a sample."""
        rows, mass = source.sample(seed, LIMITS.search_rows)
        return prepare(rows, mass / unit_of(source), columns_of_variables(self))

    def _fit_candidates(self, candidates, seed, sources, prepared, gaps):
        """Fit a model of each candidate; return the models, numbers of clusters and scores.

        If `gaps` is true (values are missing), each candidate is fitted with both kinds of
        starts, and the model with the higher score is kept.
        """

        def fit(filled):
            models = make_models(candidates, seed, **self._model_options())
            found = fit_models(models, sources, self.n_jobs, self.verbose, filled)
            labellings = _predict(models, sources, prepared.X)
            with one_thread():
                scores = [score_labels(prepared, each, self.n_clusters) for each in labellings]
            return models, found, scores

        models, found, scores = fit(False)
        if gaps:
            # On some data the starts on filled rows are better, on other data they are not.
            others, more, scores_of_others = fit(True)
            both = np.transpose([scores, scores_of_others])
            better = [highest(pair) for pair in both]
            models = [(models, others)[i][j] for j, i in enumerate(better)]
            found = np.choose(better, [found, more]).tolist()
            scores = np.choose(better, both.T)
        return models, found, np.asarray(scores)

    def _choose(self, candidates, models, found, scores, source, sources):
        """Choose a fitted model, set the attributes that depend on it and return its index."""
        place = Placement([source.portable(m) for m in models], [s.scaler for s in sources])
        sizes = [self.n_clusters] * len(models)
        placed = source.labelled(place, [model.labels_ for model in models])
        tables = placed.reduce(count_pairs, add_tables, sizes)
        self.agreement_ = agreement_matrix(tables, len(models))
        chosen = SELECTIONS[self.selection].choose(models, scores, self.agreement_)
        check_found(self, found[chosen], source.weighted)
        self.models_, self.model_ = models, models[chosen]
        self._candidates = candidate_records(
            candidates, models, scores, self.agreement_, chosen
        )
        self.p_, self.n_iter_ = float(self.model_.p), self.model_.n_iter_
        self.feature_weights_ = self.model_.feature_weights_
        shortest = shortest_distance(self.model_.inertia_, self.model_._mass.sum(), self.p_)
        self._distance_scales = np.array([shortest, 1.0, 1.0])
        if source.weighted:
            counted = placed.placed[chosen][source.kept]
            self.model_._members = np.bincount(counted, minlength=self.n_clusters) * 1.0
        return chosen

    def _fit_mixture(self, source, prepared, starts, seed):
        """Fit the mixture: the search runs on prepared rows, the last iterations on all."""
        unit, refine = unit_of(source), len(prepared.weight) < source.n_counted

        def total(run, request):
            return source.reduce(sum_part, add_sums, (unit, run, request))

        self.mixture_, answer = fit_mixture(self, prepared, starts, seed, total, refine)
        self._answer = answer._asdict()

    def _weigh(self, placed, scaled, codes):
        """Set the weights and the sizes of the clusters of the mixture."""
        unit, center = unit_of(placed), scaled.low / 2 + scaled.high / 2
        request = placed.portable(self), unit, center
        with one_thread():
            sums, mass, members = placed.reduce(sum_spreads, add_members, request)
            self.feature_weights_ = weights_of(sums, scaled.high - scaled.low, codes)
        self._mass, self._members = mass, members if placed.weighted else None

    def _judge(self, prepared, labels, seed):
        """Judge the clusters of a hard candidate; `labels` are those of the prepared rows."""
        with phase("verdict"):
            verdict = judge_labels(prepared, labels, self.n_clusters, seed)
        self._answer = {"verdict": verdict.kind, "gain": float(verdict.gain)}

    def _extract(self, extractor, placed, seed):
        """Fit the extractor by moments of the rescaled rows if possible, else to rows."""
        rescale = Rescaling(placed.portable(self))
        if self._input == "distances":
            request = rescale, placed.weighted, {}
            moments = placed.reduce(sum_moments, combine_moments, request)
            self._balance_parts(moments.scatter / moments.mass)
            rescale = Rescaling(placed.portable(self))
        if not placed.in_memory and fits_from_moments(extractor):
            request = rescale, False, {"products": True}
            moments = placed.reduce(sum_moments, combine_moments, request)
            self.extractor_ = fit_pca(extractor, moments, placed.dtype)
            self._n_features_out = extractor.n_components_
            return
        if placed.in_memory:
            rows, mass = rescale(placed.part()), placed.weight if placed.weighted else None
        else:
            at_most = 1 if extractor is None else LARGEST_SAMPLE
            rows, mass = self._rescaled(placed.sample(seed, at_most)[0]), None
        self.extractor_ = fit_extractor(extractor, rows, mass)
        self._n_features_out = width_of(self.extractor_, rows[:1])

    def _balance_parts(self, variances):
        """Set the scales that give rows and log distances the same total variance.

        `variances` are the variances of all columns without these scales.
        """
        self._distance_scales[1:] = balancing_scales(variances, self.n_features_in_)

    def _model_options(self):
        """Return the parameters that all candidate models share."""
        names = ("n_clusters", "init", "n_init", "subsample", "max_iter", "tol")
        options = {name: getattr(self, name) for name in (*names, "early_stopping", "n_jobs")}
        # feature_groups_ instead of feature_groups, because "auto" needs column names, which
        # scaled rows do not have.
        options["feature_groups"] = self.feature_groups_
        if self.n_init is None:
            options["n_init"] = 3 if self.selection == MIXTURE else 10
        return options


def check_found(estimator, n_found, weighted):
    """Raise if the chosen model has fewer nonempty clusters than requested."""
    if n_found < estimator.n_clusters:
        rows = "distinct rows of positive weight" if weighted else "distinct rows"
        raise ValueError(
            f"CAFE found only {n_found} of n_clusters={estimator.n_clusters} clusters in every "
            f"start: X has too few {rows}. Use fewer clusters."
        )


def unit_of(source):
    """Return the divisor that makes the weights of a source numbers of rows."""
    return counting_unit(source.weight) if source.weighted else 1.0


class Placement(NamedTuple):
    """Assign rows by several models, each after its own scaler."""

    models: list
    scalers: list

    def __call__(self, X):
        """Return the labels of the rows by each model."""
        scaled = {id(scaler): scale_rows(scaler, X) for scaler in self.scalers}
        with config_context(assume_finite=True):
            return [
                model._assign(scaled[id(scaler)])
                for model, scaler in zip(self.models, self.scalers, strict=True)
            ]


def _predict(models, sources, X):
    """Return the labels of rows by models, which were fitted to scaled sources."""
    return Placement(models, [source.scaler for source in sources])(X)


def count_pairs(part, sizes):
    """Compute the contingency tables of the labellings of a part."""
    return contingency_tables(part.labels, sizes)


def sum_part(part, request):
    """Add up the results of a function for a part; `request` is (unit, run, its request)."""
    unit, run, inner = request
    weight = part.sample_weight if unit == 1 else part.sample_weight / unit
    return sum_batches(part.X, weight, run, inner)


def sum_spreads(part, request):
    """Compute SpreadSums, masses and sizes of clusters; `request` is (cafe, unit, centre)."""
    cafe, unit, center = request
    labels, weight, k = part.labels, part.sample_weight, cafe.n_clusters
    sums = spread_sums(cafe._scale(part.X), labels, k, weight / unit, center)
    mass = np.bincount(labels, weight, minlength=k)
    return sums, mass, np.bincount(labels, minlength=k).astype(np.float64)


def add_members(parts):
    """Add the results of `sum_spreads`."""
    return tuple(add_sums(sums) for sums in zip(*parts, strict=True))


class Rescaling(NamedTuple):
    """Compute the input of the extractor of a CAFE for a part with labels."""

    cafe: FittedCAFE

    def __call__(self, part):
        X, cafe = part.X, self.cafe
        with config_context(assume_finite=True):
            if cafe._input == "memberships":
                return cafe._rescale(X, part.labels)
            return cafe._rescale(cafe._scale(X), part.labels)
