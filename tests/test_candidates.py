"""The candidates of CAFE: their settings, their order and the choice."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import cafelearn
from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans, RangeScaler, theory
from cafelearn.selection import likelihood_score
from conftest import make_blobs

X, y = make_blobs(240, 5, 3, n_noise=2, seed=4)
ONE = {"scaling": "range", "weighting": "cluster", "dispersion_offset": "mean", "p": 2.0}
SETTINGS = list(ONE)
HARD = {"selection": "likelihood", "n_init": 2}
COLUMNS = [*SETTINGS, "objective", "score", "smallest", "largest", "agreement", "chosen"]


def fit(**settings):
    return CAFE(3, random_state=0, **HARD | ONE | settings).fit(X)


def settings_of(cafe):
    """The settings of the candidates as tuples, with None for no offset."""
    rows = cafe.candidates_[SETTINGS].astype(object)
    return list(rows.where(rows.notna(), None).itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def many():
    return fit(
        scaling=("standard", None),
        weighting=("uniform", "cluster"),
        dispersion_offset=("fixed", 0.5),
        p=(3, 1.5),
    )


class TestTable:
    def test_columns(self, many):
        frame = many.candidates_
        assert list(frame.columns) == COLUMNS
        assert frame.index.name == "candidate"
        assert list(frame.index) == list(range(len(frame)))
        assert frame["chosen"].dtype == bool
        assert frame["chosen"].sum() == 1

    def test_order(self, many):
        """Scaling varies slowest, then weighting, offset and p, each as given."""
        pairs = [("uniform", None), ("cluster", "fixed"), ("cluster", 0.5)]
        assert settings_of(many) == [
            (scaling, weighting, offset, p)
            for scaling in ("standard", "none")
            for weighting, offset in pairs
            for p in (3.0, 1.5)
        ]

    def test_models_are_in_the_order_of_the_rows(self, many):
        assert len(many.models_) == len(many.candidates_)
        for model, row in zip(many.models_, many.candidates_.itertuples(), strict=True):
            assert isinstance(model, MinkowskiWeightedKMeans)
            assert (model.p, model.weighting) == (row.p, row.weighting)
            if row.weighting == "cluster":
                assert model.dispersion_offset == row.dispersion_offset
            assert row.objective == model.inertia_
            sizes = np.bincount(model.labels_, minlength=3)
            assert (row.smallest, row.largest) == (sizes.min(), sizes.max())
            assert row.score == pytest.approx(likelihood_score(X, model.labels_), rel=1e-9)
            agreement = adjusted_rand_score(many.labels_, model.labels_)
            assert row.agreement == pytest.approx(agreement)

    def test_each_model_is_the_one_fitted_alone(self, many):
        scaled = {"standard": StandardScaler().fit_transform(X), "none": X}
        for model, scaling in zip(many.models_, many.candidates_["scaling"], strict=True):
            alone = clone(model).fit(scaled[scaling])
            np.testing.assert_array_equal(alone.labels_, model.labels_)
            np.testing.assert_array_equal(alone.feature_weights_, model.feature_weights_)

    def test_the_chosen_one(self, many):
        chosen = many.candidates_["chosen"].to_numpy().argmax()
        assert many.model_ is many.models_[chosen]
        assert many.p_ == many.model_.p == many.candidates_["p"][chosen]
        assert many.feature_weights_ is many.model_.feature_weights_
        assert many.n_iter_ == many.model_.n_iter_
        np.testing.assert_array_equal(many.labels_, many.model_.labels_)
        np.testing.assert_array_equal(many.predict(X), many.labels_)
        scaling = many.candidates_["scaling"][chosen]
        assert (many.scaler_ is None) == (scaling == "none")
        assert many.agreement_.shape == (len(many.models_),) * 2
        np.testing.assert_allclose(many.candidates_["agreement"], many.agreement_[chosen])

    def test_the_table_is_a_copy(self, many):
        frame = many.candidates_
        frame["p"] = 0.0
        assert many.candidates_["p"].tolist() == [3.0, 1.5] * 6

    def test_documented_defaults_are_distinct_candidates(self):
        frame = CAFE(2, n_init=1, random_state=0).fit(X[:40]).candidates_
        assert len(frame) > 1
        assert not frame[SETTINGS].astype(str).duplicated().any()


class TestValues:
    @pytest.mark.parametrize(
        ("name", "value", "shown"),
        [
            ("scaling", "standard", "standard"),
            ("scaling", None, "none"),
            ("scaling", MinMaxScaler(), "MinMaxScaler"),
            ("weighting", "uniform", "uniform"),
            ("dispersion_offset", "fixed", "fixed"),
            ("dispersion_offset", 0, 0),
            ("p", 3, 3.0),
        ],
    )
    def test_one_value_is_a_sequence_of_one(self, name, value, shown):
        bare = fit(**{name: value})
        assert bare.candidates_[name].tolist() == [shown]
        for many in ((value,), [value]):
            other = fit(**{name: many})
            np.testing.assert_array_equal(other.labels_, bare.labels_)
            pd.testing.assert_frame_equal(other.candidates_, bare.candidates_)

    @pytest.mark.parametrize(
        ("name", "values", "shown"),
        [
            ("scaling", (None, "range", MinMaxScaler()), ["none", "range", "MinMaxScaler"]),
            ("scaling", [MinMaxScaler(), MinMaxScaler((0, 2))], ["MinMaxScaler"] * 2),
            ("weighting", ["uniform", "cluster"], ["uniform", "cluster"]),
            ("dispersion_offset", ("fixed", 0.5, "mean", 0), ["fixed", 0.5, "mean", 0]),
            ("p", np.array([2.5, 1.5]), [2.5, 1.5]),
            ("p", range(2, 4), [2.0, 3.0]),
        ],
    )
    def test_several_values_are_tried_in_their_order(self, name, values, shown):
        assert fit(**{name: values}).candidates_[name].tolist() == shown

    def test_candidates_that_coincide_are_tried_once(self):
        cafe = fit(weighting=("uniform", "cluster"), dispersion_offset=("mean", "fixed", 1.0))
        assert settings_of(cafe) == [
            ("range", "uniform", None, 2.0),
            *(("range", "cluster", offset, 2.0) for offset in ("mean", "fixed", 1.0)),
        ]
        assert len(fit(weighting="uniform", dispersion_offset=("mean", "fixed")).models_) == 1

    def test_parameters_are_left_alone(self):
        given = {"p": [1.5, 2], "scaling": [None, MinMaxScaler()], "weighting": ["uniform"]}
        cafe = fit(**given)
        for name, value in given.items():
            assert cafe.get_params()[name] is value
        assert not hasattr(given["scaling"][1], "scale_")
        assert clone(cafe).get_params()["p"] == [1.5, 2]

    def test_uniform_weights(self):
        cafe = fit(weighting="uniform")
        np.testing.assert_allclose(cafe.feature_weights_, 1 / X.shape[1])


class TestChoice:
    def test_likelihood_takes_the_highest_score(self, many):
        frame = many.candidates_
        assert frame["score"].max() == pytest.approx(frame["score"][frame["chosen"]].item())

    def test_agreement_takes_the_highest_sum(self, many):
        other = clone(many).set_params(selection="agreement").fit(X)
        pd.testing.assert_frame_equal(
            other.candidates_.drop(columns=["agreement", "chosen"]),
            many.candidates_.drop(columns=["agreement", "chosen"]),
        )
        labels = [model.labels_ for model in other.models_]
        sums = [sum(adjusted_rand_score(a, b) for b in labels) for a in labels]
        assert max(sums) == pytest.approx(sums[other.candidates_["chosen"].argmax()])

    def test_they_may_differ(self):
        """Two candidates that fit noise outvote the one that finds the clusters."""
        rng = np.random.default_rng(0)
        truth = np.repeat([0, 1], 60)
        rows = np.column_stack([truth * 8.0 + rng.normal(size=120), rng.normal(size=120) * 50])
        settings = ONE | {"scaling": (None, MinMaxScaler(), "standard"), "n_init": 5}
        settings["weighting"] = "uniform"

        def find(selection):
            return CAFE(2, selection=selection, random_state=0, **settings).fit(rows)

        found = find("likelihood")
        best = found.candidates_["score"].argmax()
        assert found.candidates_["chosen"].argmax() == best
        assert adjusted_rand_score(truth, found.labels_) == max(
            adjusted_rand_score(truth, model.labels_) for model in found.models_
        )
        sums = find("agreement").agreement_.sum(axis=1)
        assert find("agreement").candidates_["chosen"].argmax() in np.flatnonzero(
            sums >= sums.max() - 1e-9
        )

    @pytest.mark.parametrize("selection", ["likelihood", "agreement"])
    def test_the_number_of_threads_makes_no_difference(self, many, selection):
        one = clone(many).set_params(selection=selection, n_jobs=1).fit(X)
        for n_jobs in (2, 3):
            other = clone(one).set_params(n_jobs=n_jobs).fit(X)
            pd.testing.assert_frame_equal(one.candidates_, other.candidates_, check_exact=True)
            np.testing.assert_array_equal(one.agreement_, other.agreement_)
            np.testing.assert_array_equal(one.transform(X), other.transform(X))

    def test_pickle(self, many):
        again = pickle.loads(pickle.dumps(many))
        pd.testing.assert_frame_equal(again.candidates_, many.candidates_)
        assert again.model_ is again.models_[many.models_.index(many.model_)]
        np.testing.assert_array_equal(again.transform(X), many.transform(X))


class TestPaper:
    def test_it_is_a_dict_of_parameters(self):
        assert cafelearn.PAPER is PAPER
        assert set(PAPER) <= set(CAFE().get_params())
        assert PAPER["p"] == (1.1, 1.5, 2.0, 3.0)
        assert PAPER["n_init"] == 50

    @pytest.mark.parametrize("seed", [0, 7])
    def test_algorithm_2_by_hand(self, seed):
        """The former algorithm, from its parts: seeds, models, agreement, choice, features."""
        from sklearn.decomposition import PCA

        settings = PAPER | {"n_init": 10}
        cafe = CAFE(3, n_components=2, random_state=seed, **settings).fit(X)
        scaled = RangeScaler().fit_transform(X)
        for_models, _ = np.random.SeedSequence(seed).spawn(2)
        models = [
            MinkowskiWeightedKMeans(
                3,
                p=p,
                dispersion_offset="mean",
                n_init=10,
                random_state=int(child.generate_state(1)[0] >> 1),
            ).fit(scaled)
            for p, child in zip(PAPER["p"], for_models.spawn(4), strict=True)
        ]
        labels = [model.labels_ for model in models]
        agreement = np.array([[adjusted_rand_score(a, b) for b in labels] for a in labels])

        def rank(i):
            position = theory.normalized_objective(models[i].dispersions_, models[i].p)
            return -round(agreement[i].sum() - 1, 12), round(position, 12), models[i].p

        best = models[min(range(4), key=rank)]
        np.testing.assert_allclose(cafe.agreement_, agreement)
        assert cafe.p_ == best.p
        for model, direct in zip(cafe.models_, models, strict=True):
            assert model.random_state == direct.random_state
            np.testing.assert_array_equal(model.labels_, direct.labels_)
            np.testing.assert_array_equal(model.feature_weights_, direct.feature_weights_)
        np.testing.assert_array_equal(cafe.labels_, best.labels_)
        rescaled = scaled * best.feature_weights_[best.labels_]
        expected = PCA(2, svd_solver="full").fit_transform(rescaled)
        np.testing.assert_allclose(np.abs(cafe.transform(X)), np.abs(expected), atol=1e-9)

    def test_on_iris_it_is_what_it_was(self):
        """The fit by the version before mixtures were the default."""
        rows = load_iris().data
        cafe = CAFE(3, random_state=0, **PAPER | {"n_init": 10}).fit(rows)
        assert np.bincount(cafe.labels_).tolist() == [52, 50, 48]
        assert cafe.p_ == 1.5
        heaviest = [0.36166651597373767, 0.4191338424055017, 0.3379320371759117]
        np.testing.assert_allclose(cafe.feature_weights_.max(axis=1), heaviest, rtol=1e-9)
        sums = np.abs(cafe.transform(rows)).sum(axis=0)
        np.testing.assert_allclose(sums, [20.80619135157291, 3.0780010901647543], rtol=1e-9)
