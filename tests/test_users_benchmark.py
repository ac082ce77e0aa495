"""The measured times of the benchmarks page: complete, and what the page shows."""

import time

import numpy as np
import pandas as pd
import pytest
from benchmarks import pages, users

TABLE = pd.read_csv(pages.DOCS / "results" / "users.csv")


def test_every_method_is_measured():
    assert list(TABLE["method"].unique()) == list(users.METHODS)
    assert (TABLE["seconds"] > 0).all()
    ours = TABLE[TABLE["method"] == "CAFE"]
    assert list(ours["rows"]) == list(users.ROWS)


def test_the_page_shows_the_committed_table():
    text = (pages.DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert users.as_markdown(TABLE) in text


def test_a_method_is_stopped_by_its_growth():
    assert users.expected([], [], 1_000) == 0
    assert users.expected([1_000], [2.0], 3_000) == pytest.approx(6)
    quadratic = users.expected([1_000, 2_000], [1.0, 4.0], 4_000)
    assert quadratic == pytest.approx(16)
    # Never less than in proportion, nor more than quadratic.
    assert users.expected([1_000, 2_000], [1.0, 1.0], 4_000) == pytest.approx(2)
    assert users.expected([1_000, 2_000], [1.0, 32.0], 4_000) == pytest.approx(128)


def test_measure(monkeypatch):
    called = []

    def fit(X):
        called.append(len(X))
        begin = time.process_time()
        while time.process_time() - begin < len(X) * 1e-4:
            pass

    monkeypatch.setattr(users, "METHODS", {"busy": fit})
    monkeypatch.setattr(users, "SHORT", 0)
    notes = []
    table = users.measure(["busy"], [100, 200, 100_000], 0.5, notes.append)
    assert list(table["rows"]) == [100, 200]
    assert called == [100, 100, 100, 200, 200]
    assert "100,000 rows: not run" in notes[-1]
    assert table["seconds"].between(0.009, 0.2).all()


def test_names_of_lines_are_moved_apart():
    places = users.spread([0.0, 0.01, 0.02, 5.0], 0.1)
    assert (np.diff(places) > 0.0999).all()
    assert places[-1] == 5


def test_a_part_of_a_page_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin: b -->\nold\n<!-- end: b -->\nc\n", encoding="utf-8")
    pages.replace_part("page.md", "b", "new")
    text = page.read_text(encoding="utf-8")
    assert text == "a\n<!-- begin: b -->\n\nnew\n\n<!-- end: b -->\nc\n"
    with pytest.raises(ValueError, match=r"page\.md needs the lines"):
        pages.replace_part("page.md", "other", "new")
