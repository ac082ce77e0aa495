"""Reports as files: contents, escaping and errors."""

import builtins
import hashlib
import json
import re
import time
from base64 import b64decode, b64encode
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, PAPER
from cafelearn.diagnosis import Finding
from cafelearn.interpret.labels import (
    ROLES,
    candidate_names,
    family_positions,
    mixture_words,
    settings_words,
)
from cafelearn.report import write_fit_report
from cafelearn.report.embedding import sample
from cafelearn.report.page import number, short
from cafelearn.theory import certificate
from conftest import make_blobs

ATTACK = "</script><img src=x onerror=alert(1)>\"'&{{ 7 * 7 }}\u2028"


class Document(HTMLParser):
    """Tables, text and tags of a page, as a browser would read them."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.tags, self.words, self.json = {}, [], [], {}
        self._block = self._row = self._script = None
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if attributes.get("class") == "table-block":
            self._block = self.tables.setdefault(attributes["id"], [])
        if tag == "tr":
            self._row = []
            self._block.append(self._row)
        if tag in ("td", "th"):
            self._row.append({"text": "", **attributes})
        if tag in ("script", "style"):
            self._script = attributes.get("id", tag)

    def handle_endtag(self, tag):
        if tag == "tr":
            self._row = None
        if tag in ("script", "style"):
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.json[self._script] = data
        elif self._row:
            self._row[-1]["text"] += data.strip()
        else:
            self.words.append(data)

    def frame(self, name):
        head, *rows = [[cell["text"] for cell in row] for row in self.tables[name]]
        return pd.DataFrame(rows, columns=head)


def read(path):
    return Document(path.read_text(encoding="utf-8"))


def pictures(document):
    """Return a dict from the description of each picture to its SVG."""
    found = [attributes for tag, attributes in document.tags if tag == "img"]
    assert all(set(a) == {"class", "src", "alt"} for a in found)
    assert all(a["src"].startswith("data:image/svg+xml;base64,") for a in found)
    return {a["alt"]: b64decode(a["src"].partition(",")[2]).decode() for a in found}


@pytest.fixture(scope="module")
def fitted():
    X, y = make_blobs(150, 6, 3, n_noise=2, seed=1)
    frame = pd.DataFrame(
        X, columns=[f"gene {v}" for v in range(6)], index=[f"r{i}" for i in range(150)]
    )
    frame.iloc[:30, 5] = 0.0
    settings = PAPER | {"n_init": 4}
    return CAFE(3, n_components=3, random_state=0, **settings).fit(frame), frame, y


@pytest.fixture(scope="module")
def report(fitted, tmp_path_factory):
    cafe, X, y = fitted
    path = tmp_path_factory.mktemp("report") / "fit.html"
    classes = [f"kind {label}" for label in y]
    made = write_fit_report(
        cafe,
        X,
        path,
        y=classes,
        title="Blobs",
        source="blobs.csv",
        command="cafe fit blobs.csv",
    )
    assert made == path
    return read(path)


class TestFitReport:
    def test_says_what_was_done(self, report, fitted):
        cafe, _, _ = fitted
        assert "CAFE was fitted with 3 clusters to 150 rows of 6 features." in report.text
        assert "clustered 16 times by Minkowski weighted k-means, 4 starts" in report.text
        assert "p = 1.1, 1.5, 2 and 3" in report.text
        assert f"The clustering at p = {cafe.p_:g} was chosen" in report.text
        assert "principal component analysis extracted 3 features" in report.text
        assert "Data: blobs.csv" in report.text
        assert "cafe fit blobs.csv" in report.text

    def test_data(self, report, fitted):
        _, X, _ = fitted
        table = report.frame("data-table").set_index("feature")
        assert list(table.index) == list(X.columns)
        for name, values in (("min", X.min()), ("mean", X.mean()), ("max", X.max())):
            np.testing.assert_allclose(table[name].astype(float), values, rtol=1e-3)
        assert table["zeros"].tolist() == ["0%"] * 5 + ["20%"]

    def test_agreement_and_the_chosen_exponent(self, report, fitted):
        cafe, _, _ = fitted
        table = report.frame("agreement-table")
        np.testing.assert_allclose(
            table.iloc[:, 1:5].astype(float), cafe.agreement_, atol=0.00501
        )
        chosen = [name for name in table["candidate"] if "chosen" in name]
        assert chosen == [f"p = {cafe.p_:g} (chosen)"]

    def test_what_was_tried(self, report, fitted):
        cafe, _, _ = fitted
        table, frame = report.frame("candidates-table"), cafe.candidates_
        chosen = cafe.models_.index(cafe.model_)
        names = [f"{i} (chosen)" if i == chosen else str(i) for i in range(4)]
        assert table["candidate"].tolist() == names
        for name in ("scaling", "weighting"):
            assert table[name].tolist() == frame[name].tolist()
        assert table["offset"].tolist() == frame["dispersion_offset"].tolist()
        for name in ("p", "smallest", "largest"):
            assert table[name].astype(float).tolist() == frame[name].tolist()
        np.testing.assert_allclose(
            table["agreement"].astype(float), frame["agreement"], atol=0.00051
        )
        scores = table["score"].str.replace(",", "").astype(float)
        np.testing.assert_allclose(scores, frame["score"], atol=0.051)

    def test_without_findings_nothing_is_said(self, fitted, tmp_path, monkeypatch):
        cafe, X, _ = fitted
        monkeypatch.setattr(CAFE, "diagnosis_", [], raising=False)
        page = read(write_fit_report(cafe, X, tmp_path / "a.html"))
        assert not [a for tag, a in page.tags if a.get("class") == "findings"]

    def test_findings_are_in_the_head(self, fitted, tmp_path, monkeypatch):
        cafe, X, _ = fitted
        found = [
            Finding("uniform", "note", "Weighting does not help here."),
            Finding("one-feature", "severe", f"One feature ({ATTACK}) has all weight."),
        ]
        monkeypatch.setattr(CAFE, "diagnosis_", found, raising=False)
        text = write_fit_report(cafe, X, tmp_path / "a.html").read_text(encoding="utf-8")
        page = Document(text)
        items = [a for tag, a in page.tags if tag == "li" and "data-code" in a]
        # The severe ones first, and told apart by words, not by colour alone.
        assert [a["data-code"] for a in items] == ["one-feature", "uniform"]
        assert [a["class"] for a in items] == ["severe", "hint"]
        said = page.text.split("Summary of the fit")[0]
        assert "Warning: One feature (" in said
        assert said.index("Warning:") < said.index("Note: Weighting does not help here.")
        assert text.index('class="findings"') < text.index("</header>")
        assert {tag for tag, _ in page.tags}.isdisjoint({"iframe"})
        assert len(pictures(page)) == 1

    def test_weights_and_dispersions(self, report, fitted):
        cafe, X, _ = fitted
        rows = report.tables["weights-table"][1:]
        heaviest = cafe.feature_weights_.max(axis=0)
        assert [row[0]["text"] for row in rows] == list(X.columns[np.argsort(-heaviest)])
        model = cafe.model_
        for row in rows:
            v = list(X.columns).index(row[0]["text"])
            shown = [float(cell["data-value"]) for cell in row[1:]]
            np.testing.assert_allclose(shown, cafe.feature_weights_[:, v], rtol=1e-5)
            behind = [float(cell["data-extra"]) for cell in row[1:]]
            np.testing.assert_allclose(behind, model.dispersions_[:, v], rtol=1e-2)

    def test_embedding(self, report, fitted):
        cafe, X, y = fitted
        points = json.loads(report.json["points"])
        assert points["ids"] == list(X.index)
        assert [axis["name"] for axis in points["axes"]][-1] == "assignment margin"
        features = np.column_stack([axis["values"] for axis in points["axes"]])
        np.testing.assert_allclose(features[:, :3], cafe.transform(X), rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(features[:, 3], cafe.assignment_margin(X), rtol=1e-4)
        by_cluster, by_class = points["colours"]
        assert by_cluster["codes"] == cafe.labels_.tolist()
        assert [by_class["groups"][c] for c in by_class["codes"]] == [f"kind {c}" for c in y]

    def test_starts(self, report, fitted):
        cafe, _, _ = fitted
        table = report.frame("restarts-table")
        for (_, row), model in zip(table.iterrows(), cafe.models_, strict=True):
            assert float(row["objective"]) == pytest.approx(model.inertia_, rel=1e-3)
            assert int(row["iterations"]) == model.n_iter_
            assert row["stop reason"] == model.stop_reason_
            same = model.init_objectives_ <= model.init_objectives_.min() * (1 + 1e-6)
            assert int(row["reached the best"]) == same.sum()
        assert "Objective of the best start by iteration" in pictures(report)

    def test_certificate(self, report, fitted):
        cafe, X, _ = fitted
        expected = certificate(cafe.model_, cafe.scaler_.transform(X.to_numpy()))
        found = {}
        for name in ("certificate-table", "folded-table"):
            table = report.frame(name).set_index("claim")["verdict"]
            assert (table == "does not apply").any() == (name == "folded-table")
            found |= table.to_dict()
        assert found == expected["verdict"].to_dict()

    def test_doubtful_rows(self, report, fitted):
        cafe, X, _ = fitted
        table = report.frame("doubtful-table")
        margin = pd.Series(cafe.assignment_margin(X), index=X.index)
        np.testing.assert_allclose(
            table["margin"].astype(float), margin.sort_values()[:100], rtol=1e-2
        )
        distances = cafe.model_.transform(
            np.ascontiguousarray(cafe.scaler_.transform(X.to_numpy()))
        )
        for _, row in table.head(20).iterrows():
            order = np.argsort(distances[X.index.get_loc(row["row"])])
            assert row["cluster"] == f"cluster {order[0]}"
            assert row["second cluster"] == f"cluster {order[1]}"

    def test_classes(self, report, fitted):
        cafe, _, y = fitted
        assert f"{adjusted_rand_score(y, cafe.labels_):.3f}" in report.text
        table = report.frame("classes-table").set_index("class").astype(int)
        for kind in range(3):
            counts = np.bincount(cafe.labels_[y == kind], minlength=3)
            assert table.loc[f"kind {kind}"].tolist() == [*counts, counts.sum()]

    def test_the_snippet_makes_the_same_fit(self, fitted, tmp_path):
        cafe, X, _ = fitted
        text = write_fit_report(cafe, X, tmp_path / "a.html").read_text(encoding="utf-8")
        code = re.search(r'<pre id="snippet".*?<code>(.*?)</code>', text, re.DOTALL).group(1)
        names = {"X": X}
        exec(code.replace("&#39;", "'"), names)
        np.testing.assert_array_equal(names["features"], cafe.transform(X))
        np.testing.assert_array_equal(names["new_labels"], cafe.labels_)
        pd.testing.assert_frame_equal(names["profile"], cafe.profile_frame(X))

    def test_without_classes_names_and_choice(self, tmp_path):
        X, _ = make_blobs(60, 4, 2, n_noise=1)
        settings = PAPER | {"p": 2.0, "n_init": 1, "scaling": None}
        cafe = CAFE(2, n_components=1, extractor=PCA(), **settings)
        page = read(write_fit_report(cafe.fit(X), X, tmp_path / "a.html"))
        assert "classes-table" not in page.tables
        assert "agreement-table" not in page.tables
        assert "There was only one candidate" in page.text
        assert len(page.frame("candidates-table")) == 1
        assert "clustered once" in page.text
        assert "left in its own units" in page.text
        assert page.frame("data-table")["feature"].tolist() == ["x0", "x1", "x2", "x3"]
        assert json.loads(page.json["points"])["ids"][:3] == ["0", "1", "2"]

    def test_one_cluster(self, tmp_path):
        X, _ = make_blobs(40, 3, 1, n_noise=0)
        cafe = CAFE(1, p=2.0, n_init=1).fit(X)
        page = read(write_fit_report(cafe, X, tmp_path / "a.html"))
        assert "no row is doubtful" in page.text
        assert "1 cluster to 40 rows" in page.text
        assert "differences of a cluster" not in page.text

    def test_the_number_of_clusters(self, report, tmp_path):
        X = np.r_[
            np.random.default_rng(0).normal(size=(60, 3)),
            np.random.default_rng(1).normal(size=(60, 3)) + 9.0,
        ]
        cafe = CAFE([1, 2, 3], p=2, n_init=2, random_state=0).fit(X)
        page = read(write_fit_report(cafe, X, tmp_path / "chosen.html"))
        assert "2 clusters were chosen; 1 to 3 were tried" in page.text
        table = page.frame("numbers-table")
        assert table["clusters"].tolist() == ["1", "2", "3"]
        found = cafe.n_clusters_table_
        gains = table["gain"].str.replace(",", "").astype(float)
        np.testing.assert_allclose(gains, found["gain"], atol=0.05)
        assert table["note"][1] == "chosen"
        assert "numbers-table" not in report.tables
        assert "No problems found." in page.text
        cafe._numbers["table"]["tied"][2] = True
        page = read(write_fit_report(cafe, X, tmp_path / "tied.html"))
        assert page.text.count("2 clusters (3 nearly as good), high confidence: the rows") == 1
        assert page.frame("numbers-table")["note"][2].startswith("nearly as good")
        assert "3 clusters are nearly as good as the 2 that were chosen" in page.text
        assert "No problems found." not in page.text
        cafe = CAFE([2, 5], p=2, n_init=2, random_state=0).fit(X)
        page = read(write_fit_report(cafe, X, tmp_path / "listed.html"))
        assert "2 and 5 were tried" in page.text

    def test_row_ids_and_missing_classes(self, fitted, tmp_path):
        cafe, X, y = fitted
        classes = [None if i == 0 else label for i, label in enumerate(y)]
        path = write_fit_report(
            cafe, X, tmp_path / "a.html", row_ids=[f"id-{i}" for i in range(150)], y=classes
        )
        page = read(path)
        assert set(page.frame("doubtful-table")["row"].str[:3]) == {"id-"}
        assert "missing" in page.frame("classes-table")["class"].tolist()
        ari = adjusted_rand_score(y[1:], cafe.labels_[1:])
        assert f"adjusted Rand index of {ari:.3f}" in page.text
        assert "Rows without a class (1) do not count in these numbers." in page.text

    def test_no_known_class(self, fitted, tmp_path):
        cafe, X, _ = fitted
        page = read(write_fit_report(cafe, X, tmp_path / "a.html", y=[None] * 150))
        assert "Clusters and known classes" not in page.text

    def test_other_data_are_noticed(self, fitted, tmp_path):
        cafe, X, _ = fitted
        page = read(write_fit_report(cafe, X.iloc[::-1], tmp_path / "a.html"))
        assert "Check that these are the data that the model was fitted on." in page.text


@pytest.fixture(scope="module")
def several(fitted, tmp_path_factory):
    """A fit of many candidates, and its report."""
    _, X, _ = fitted
    cafe = CAFE(
        3,
        p=(1.5, 2.0, 3.0),
        scaling=("range", "standard"),
        dispersion_offset=("mean", 0.5),
        weighting=("cluster", "uniform"),
        n_init=2,
        selection="likelihood",
        random_state=0,
    ).fit(X)
    return cafe, read(write_fit_report(cafe, X, tmp_path_factory.mktemp("many") / "a.html"))


class TestManyCandidates:
    def test_says_what_was_combined(self, several):
        cafe, page = several
        assert "clustered 36 times by Minkowski weighted k-means, 2 starts for each of 18" in (
            page.text
        )
        assert (
            "(scaling range and standard, weighting cluster and uniform, offset mean and 0.5, "
            "p = 1.5, 2 and 3)" in page.text
        )
        (row,) = (row for _, row in cafe.candidates_.iterrows() if row["chosen"])
        assert f"The clustering with {settings_words(row)} was chosen" in page.text

    def test_best_first(self, several):
        cafe, page = several
        table = page.frame("candidates-table")
        assert len(table) == 18
        assert table["candidate"][0] == f"{cafe.candidates_['chosen'].argmax()} (chosen)"
        order = table["candidate"].str.split().str[0].astype(int)
        assert sorted(order) == list(range(18))
        scores = cafe.candidates_["score"].to_numpy()[order]
        assert (np.diff(scores) <= 1e-9 * np.abs(scores[1:])).all()
        uniform = table["weighting"] == "uniform"
        assert (table["offset"][uniform] == "").all()
        assert (table["offset"][~uniform] != "").all()
        # The rest is there, behind a button.
        beyond = [a for tag, a in page.tags if tag == "tr" and a.get("class") == "beyond"]
        assert len(beyond) >= 6

    def test_agreement_of_the_best_ten(self, several):
        cafe, page = several
        order = page.frame("candidates-table")["candidate"].str.split().str[0].astype(int)[:10]
        table = page.frame("agreement-table")
        assert table.shape == (10, 12)
        names = candidate_names(cafe.candidates_)
        for i, label in zip(order, table["candidate"], strict=True):
            assert label.removesuffix(" (chosen)") == f"{i}: {names[i]}"
        assert list(table.columns[1:11]) == [str(i) for i in order]
        np.testing.assert_allclose(
            table.iloc[:, 1:11].astype(float),
            cafe.agreement_[np.ix_(order, order)],
            atol=0.00501,
        )
        assert "The best 10 of 18 candidates are compared" in page.text

    def test_charts_of_the_family_of_the_chosen_one(self, several):
        cafe, page = several
        drawn = pictures(page)["Objective of the best start by iteration"]
        assert drawn.count("<!-- p = ") == len(family_positions(cafe.candidates_))
        assert len(page.frame("restarts-table")) == 18

    def test_chosen_by_agreement(self, several, fitted, tmp_path):
        _, X, _ = fitted
        cafe = clone(several[0]).set_params(selection="agreement").fit(X)
        page = read(write_fit_report(cafe, X, tmp_path / "a.html"))
        assert "the highest total agreement with the others" in page.text
        order = page.frame("candidates-table")["candidate"].str.split().str[0].astype(int)
        sums = cafe.agreement_.sum(axis=1)[order]
        assert (np.diff(sums) <= 1e-9).all()

    def test_uniform_weights(self, fitted, tmp_path):
        _, X, _ = fitted
        settings = {"weighting": "uniform", "scaling": "range", "selection": "likelihood"}
        cafe = CAFE(3, p=2.0, n_init=2, **settings).fit(X)
        page = read(write_fit_report(cafe, X, tmp_path / "a.html"))
        assert "Uniform weights were chosen: all weights are equal." in page.text
        assert "this clustering has uniform weights" in page.text
        assert "does not hold" not in page.frame("certificate-table")["verdict"].tolist()


@pytest.fixture(scope="module")
def mixed(fitted, tmp_path_factory):
    """A fit of a mixture, and its report."""
    _, X, y = fitted
    cafe = CAFE(3, n_init=2, random_state=0).fit(X)
    path = tmp_path_factory.mktemp("mixed") / "a.html"
    return cafe, read(write_fit_report(cafe, X, path, y=y))


class TestMixture:
    def test_the_answer_comes_first(self, mixed):
        cafe, page = mixed
        said = f"3 clusters, {cafe.confidence_} confidence: the rows form separate clusters"
        assert said in page.text
        assert page.text.index(said) < page.text.index("Summary of the fit")
        assert f"{cafe.confidence_} confidence" in page.text
        assert f"{cafe.stability_:.2f} stability" in page.text

    def test_the_mixture_in_words(self, mixed):
        cafe, page = mixed
        assert mixture_words(cafe.mixture_) in page.text
        assert "It started from 12 candidates of Minkowski weighted k-means" in page.text
        assert "the second cluster is more than half as likely as the first" in page.text

    def test_roles(self, mixed):
        cafe, page = mixed
        cells = {row[0]["text"]: row[1:] for row in page.tables["weights-table"][1:]}
        for v, name in enumerate(cafe.feature_names_in_):
            roles = [cell["data-extra"] for cell in cells[name]]
            assert roles == [ROLES[role] for role in cafe.relevance_[:, v]]

    def test_principal_components_are_drawn(self, mixed, fitted):
        cafe, page = mixed
        points = json.loads(page.json["points"])
        names = [axis["name"] for axis in points["axes"]]
        assert names[:2] == ["principal component 1", "principal component 2"]
        assert "no features were extracted" in page.text
        expected = PCA(2, random_state=0).fit_transform(cafe.transform(fitted[1]))[:, 0]
        values = np.array(points["axes"][0]["values"])
        np.testing.assert_allclose(np.abs(values), np.abs(expected), atol=1e-3)

    def test_candidates_are_starts(self, mixed):
        _, page = mixed
        assert "are starts of the mixture" in page.text
        assert "checked on the best candidate of the starts, not on the mixture" in page.text
        table = page.frame("candidates-table")
        assert len(table) == 12
        assert table["candidate"].str.endswith(" (best)").sum() == 1
        assert "chosen" not in " ".join(table["candidate"])

    def test_code(self, mixed):
        assert "shares = cafe.predict_proba(new_rows)" in mixed[1].text

    def test_second_clusters(self, mixed, fitted):
        cafe, page = mixed
        share = cafe.predict_proba(fitted[1])
        table = page.frame("doubtful-table").set_index("row")
        for row in table.index[:5]:
            order = np.argsort(-share[fitted[1].index.get_loc(row)])
            assert table.loc[row, "cluster"] == f"cluster {order[0]}"
            assert table.loc[row, "second cluster"] == f"cluster {order[1]}"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    X, y = make_blobs(60, 3, 2, n_noise=1)
    frame = pd.DataFrame(X, columns=[f"{v}{ATTACK}" for v in range(3)])
    cafe = CAFE(2, p=2.0, n_init=1, random_state=0).fit(frame)
    return write_fit_report(
        cafe,
        frame,
        tmp_path_factory.mktemp("attack") / "a.html",
        row_ids=[f"{i}{ATTACK}" for i in range(60)],
        y=[f"{label}{ATTACK}" for label in y],
        title=ATTACK,
        source=ATTACK,
        command=ATTACK,
    )


class TestNothingGivenIsTrusted:
    def test_in_a_fit_report(self, path):
        page = read(path)
        assert {tag for tag, _ in page.tags}.isdisjoint({"iframe", "object", "form"})
        assert set(pictures(page)) == {"Objective of the best start by iteration"}
        assert not [name for _, a in page.tags for name in a if name.startswith("on")]
        assert [tag for tag, _ in page.tags].count("script") == 2
        points = json.loads(page.json["points"])
        assert points["ids"][3] == f"3{ATTACK}"
        assert page.frame("data-table")["feature"][0] == f"0{ATTACK}".strip()
        assert "49" not in page.text.split("Summary of the fit")[0]
        assert "\u2028" not in page.json["points"]

    def test_the_policy_names_the_script(self, path):
        page = read(path)
        policy = next(
            a["content"]
            for tag, a in page.tags
            if a.get("http-equiv") == "Content-Security-Policy"
        )
        digest = b64encode(hashlib.sha256(page.json["script"].encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy
        assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")

    def test_no_address_outside(self, path):
        page = read(path)
        for tag, attributes in page.tags:
            for name in ("src", "href", "action", "srcset"):
                value = attributes.get(name, "#")
                assert value.startswith(("#", "data:")), (tag, value)
        assert "@import" not in page.json["style"]
        assert "url(" not in page.json["style"]

    def test_names_that_cannot_be_written(self, tmp_path):
        X, _ = make_blobs(30, 2, 2, n_noise=0)
        cafe = CAFE(2, p=2.0, n_init=1).fit(X)
        ids = ["\ud800", "\x00", "", *range(27)]
        read(write_fit_report(cafe, X, tmp_path / "a.html", row_ids=ids, title="\ud800"))


class TestLargeData:
    def test_many_features(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3000))
        quick = {"selection": "likelihood", "n_init": 1, "max_iter": 3, "random_state": 0}
        cafe = CAFE(4, n_components=2, p=2.0, **quick).fit(X)
        start = time.perf_counter()
        path = write_fit_report(cafe, X, tmp_path / "a.html")
        assert time.perf_counter() - start < 20
        assert path.stat().st_size < 4e6
        page = read(path)
        rows = page.tables["weights-table"][1:]
        assert len(rows) == 3000
        assert "there are 36,000,000 pairs" in page.text

    def test_too_many_cells_are_left_out(self, fitted, tmp_path, monkeypatch):
        cafe, X, _ = fitted
        monkeypatch.setattr("cafelearn.report.tables.MOST_CELLS", 6)
        monkeypatch.setattr("cafelearn.report.tables.FEWEST_FEATURES", 1)
        page = read(write_fit_report(cafe, X, tmp_path / "a.html"))
        assert len(page.tables["weights-table"]) == 1 + 2
        assert "Of 6 features, the 2 with the largest weights are listed." in page.text

    def test_many_rows(self, tmp_path):
        X, y = make_blobs(60_000, 5, 3, n_noise=1)
        cafe = CAFE(3, p=2.0, n_init=1, selection="likelihood", random_state=0).fit(X)
        start = time.perf_counter()
        path = write_fit_report(cafe, X, tmp_path / "a.html", y=y)
        assert time.perf_counter() - start < 20
        assert path.stat().st_size < 1e6
        assert re.search(r"(4,99\d|5,00\d) of 60,000 rows are drawn", read(path).text)

    def test_the_sample_keeps_small_clusters(self):
        labels = np.repeat([0, 1, 2], [40_000, 30, 5])
        rows = sample(labels, 3, most=1000)
        assert len(np.unique(rows)) == len(rows) < 1050
        assert np.bincount(labels[rows]).tolist()[1:] == [20, 5]
        np.testing.assert_array_equal(rows, sample(labels, 3, most=1000))
        np.testing.assert_array_equal(sample(labels[:10], 3, most=1000), np.arange(10))


class TestRefusals:
    X, _ = make_blobs(30, 3, 2, n_noise=0)

    def test_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError, match="This CAFE instance is not fitted yet"):
            write_fit_report(CAFE(2), self.X, tmp_path / "a.html")

    def test_another_estimator(self, tmp_path):
        with pytest.raises(TypeError, match=r"MinkowskiWeightedKMeans, got KMeans"):
            write_fit_report(KMeans(2), self.X, tmp_path / "a.html")

    def test_other_rows(self, tmp_path):
        cafe = CAFE(2, p=2.0, n_init=1).fit(self.X)
        with pytest.raises(ValueError, match=r"needs the 30 rows .* got 10"):
            write_fit_report(cafe, self.X[:10], tmp_path / "a.html")
        with pytest.raises(
            ValueError, match="one value of row_ids for each of the 30 rows, got 3"
        ):
            write_fit_report(cafe, self.X, tmp_path / "a.html", row_ids="abc")
        with pytest.raises(ValueError, match="one value of y for each of the 30 rows, got 1"):
            write_fit_report(cafe, self.X, tmp_path / "a.html", y=[1])
        with pytest.raises(ValueError, match="2 features"):
            write_fit_report(cafe, self.X[:, :2], tmp_path / "a.html")

    @pytest.mark.parametrize(("name", "found"), [("r.pdf", "extension '.pdf'"), ("r", "no ")])
    def test_a_suffix_other_than_html(self, name, found, tmp_path):
        with pytest.raises(ValueError, match=rf"^write_fit_report .*{found}.*\.html or"):
            write_fit_report(CAFE(2), self.X, str(tmp_path / name))
        assert not list(tmp_path.iterdir())

    def test_an_existing_file(self, tmp_path):
        cafe = CAFE(2, p=2.0, n_init=1).fit(self.X)
        path = tmp_path / "a.html"
        path.write_text("mine")
        with pytest.raises(FileExistsError, match=r"a\.html"):
            write_fit_report(cafe, self.X, path)
        assert path.read_text() == "mine"
        write_fit_report(cafe, self.X, str(path), force=True)
        assert path.read_text(encoding="utf-8").startswith("<!doctype html>")

    def test_jinja2_is_named_when_missing(self, tmp_path, monkeypatch):
        load = builtins.__import__

        def without(module, *args, **kwargs):
            if module == "jinja2":
                raise ImportError(module)
            return load(module, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
        message = "write_fit_report needs the package jinja2: pip install 'cafelearn[report]'"
        with pytest.raises(ImportError, match=re.escape(message)):
            write_fit_report(CAFE(2), self.X, tmp_path / "a.html")


class TestWords:
    def test_numbers(self):
        assert [number(v) for v in (0.12345, 1234.5, 12.0, -0.0001234, None, np.nan)] == [
            "0.123",
            "1234",
            "12",
            "-0.000123",
            "",
            "",
        ]
        assert number(1.5e9) == "1.5e+09"
        assert short("abc", 3) == "abc"
        assert short("abcd", 3) == "a…d"
        assert short("a long name with the number 12", 15) == "a long na…er 12"
