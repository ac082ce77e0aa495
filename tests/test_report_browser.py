"""Reports in a real browser: no errors, no network access, working controls."""

import shutil

import numpy as np
import pandas as pd
import pytest

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.interpret.labels import ROLES
from cafelearn.report import write_fit_report
from conftest import make_blobs
from test_profiles import QUICK, customers

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ATTACK = (
    "</script><script>window.ran = 1</script>"
    "<img src=x onerror='window.ran = 1'><b onmouseover='window.ran = 1'>"
)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        options = ("gpu", "background-networking", "component-update", "sync")
        browser = running.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--no-first-run", *(f"--disable-{o}" for o in options)],
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a file; check at the end that there was no error and no other request."""
    pages = []

    def open_file(path, width=1200, scheme="light"):
        page = browser.new_page(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        page.set_default_timeout(5000)
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        pages.append((page, path, said, asked))
        page.goto(path.as_uri())
        return page

    yield open_file
    for page, path, said, asked in pages:
        assert page.evaluate("window.ran") is None
        assert said == []
        assert {url for url in asked if not url.startswith("data:")} == {path.as_uri()}
        page.close()


@pytest.fixture(scope="module")
def fitted():
    X, y = make_blobs(120, 30, 3, n_noise=2, seed=1)
    frame = pd.DataFrame(X, columns=[f"gene {v}" for v in range(30)])
    frame.index = [f"r{i}" for i in range(120)]
    return CAFE(3, n_components=3, p=(1.5, 2.0), n_init=4, random_state=0).fit(frame), frame, y


@pytest.fixture(scope="module")
def fit_file(fitted, tmp_path_factory):
    cafe, X, y = fitted
    path = tmp_path_factory.mktemp("browser") / "fit.html"
    return write_fit_report(cafe, X, path, y=[f"kind {c}" for c in y], title="Blobs")


def column(page, table, index):
    """Texts of a column, of the rows that are seen."""
    return page.eval_on_selector_all(
        f"#{table} tbody tr",
        "(rows, i) => rows.filter(r => r.checkVisibility()).map(r => r.cells[i].textContent)",
        index,
    )


def tip(page):
    return page.wait_for_selector("#tip", state="visible").inner_text()


def no_tip(page):
    return page.wait_for_selector("#tip", state="hidden") is None or not page.is_visible("#tip")


def settle(page):
    """Wait for the events of a scroll."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")


def center(page, selector):
    page.locator(selector).scroll_into_view_if_needed()
    # Scrolling hides the tip: let its event come before the mouse does.
    settle(page)
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


class TestEveryEstimator:
    """Each report opens without an error, shows profiles first, and its parts can be used."""

    @pytest.fixture(params=["CAFE", "TabularCAFE", "MinkowskiWeightedKMeans"])
    def opened(self, request, visit, fitted, tmp_path):
        cafe, X, _ = fitted
        if request.param == "TabularCAFE":
            X = customers()
            estimator = TabularCAFE(CAFE(2, n_components=2, **QUICK)).fit(X)
        elif request.param == "CAFE":
            estimator = cafe
        else:
            estimator = MinkowskiWeightedKMeans(3, n_init=2, random_state=0).fit(X)
        path = write_fit_report(estimator, X, tmp_path / "a.html")
        return visit(path), estimator, X, path

    def test_profiles_come_after_the_summary(self, opened):
        page, estimator, X, _ = opened
        ids = page.eval_on_selector_all("section", "all => all.map(one => one.id)")
        assert ids[:2] == ["summary", "clusters"]
        first = estimator.profile_frame(X).groupby("cluster").head(1)
        cards = page.locator(".card:has(.traits)").all_inner_texts()
        assert len(cards) == len(first)
        for card, description in zip(cards, first["description"], strict=True):
            assert description in card

    def test_hover_over_a_profile(self, opened):
        page, _, _, _ = opened
        page.mouse.move(*center(page, "#profile-table tbody tr:nth-child(1) td:nth-child(2)"))
        lines = tip(page).splitlines()
        assert lines[0].endswith(" · cluster 0")
        assert lines[1].startswith("mean or share ")
        assert any(line.endswith(" the rest") for line in lines)
        assert lines[-1].startswith("weight ")

    def test_points_and_loadings(self, opened):
        page, estimator, _, _ = opened
        assert page.locator(".plot .points").count() >= 2
        has_features = not isinstance(estimator, MinkowskiWeightedKMeans)
        assert (page.locator("#loadings-table").count() == 1) == has_features
        assert (page.locator("#candidates").count() == 1) == has_features

    def test_every_link_of_the_head_has_a_section(self, opened):
        page, _, _, _ = opened
        links = page.eval_on_selector_all("nav a", "all => all.map(a => a.hash.slice(1))")
        ids = page.eval_on_selector_all("section", "all => all.map(one => one.id)")
        assert sorted(links) == sorted(ids)

    def test_narrow_and_printed(self, opened, visit):
        _, _, _, path = opened
        page = visit(path, width=400)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page = visit(path, width=688)
        page.emulate_media(media="print")
        right = page.evaluate(
            "document.querySelector('#profile-table table').getBoundingClientRect().right"
        )
        assert right <= 689


class TestFit:
    def test_hover_over_a_weight(self, visit, fit_file, fitted):
        cafe, X, _ = fitted
        page = visit(fit_file)
        page.mouse.move(*center(page, "#weights-table tbody tr:nth-child(2) td:nth-child(3)"))
        v = np.argsort(-cafe.feature_weights_.max(axis=0))[1]
        lines = tip(page).splitlines()
        assert lines[0] == f"{X.columns[v]} · cluster 1"
        assert float(lines[1].removeprefix("weight ")) == pytest.approx(
            cafe.feature_weights_[1, v], rel=1e-4
        )
        assert lines[2] == ROLES[cafe.relevance_[1, v]]
        page.mouse.move(2, 2)
        assert no_tip(page)

    def test_hover_over_a_point(self, visit, fit_file, fitted):
        cafe, X, y = fitted
        page = visit(fit_file)
        features = cafe.transform(X)
        i = int(np.argmax(features[:, 0]))
        page.fill("[data-find]", f"r{i}")
        page.locator(".plot").scroll_into_view_if_needed()
        ring = page.locator(".plot .ring").bounding_box()
        page.fill("[data-find]", "")
        assert no_tip(page)
        page.mouse.move(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
        lines = tip(page).splitlines()
        assert lines[:3] == [f"row r{i}", f"cluster {cafe.labels_[i]}", f"class kind {y[i]}"]
        shown = float(lines[3].removeprefix("extracted feature 1 "))
        assert shown == pytest.approx(features[i, 0], rel=1e-4)

    def test_walk_through_the_points(self, visit, fit_file, fitted):
        cafe, X, _ = fitted
        page = visit(fit_file)
        page.focus(".plot")
        order = np.argsort(cafe.transform(X)[:, 0])
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert tip(page).startswith(f"row r{order[1]}\n")
        page.keyboard.press("End")
        assert tip(page).startswith(f"row r{order[-1]}\n")
        assert page.inner_text("#live").startswith(f"row r{order[-1]},")
        page.keyboard.press("Escape")
        assert no_tip(page)

    def test_axes_colours_and_groups(self, visit, fit_file, fitted):
        _, _, y = fitted
        page = visit(fit_file)
        assert page.locator(".plot .points").count() == 3
        before = page.get_attribute(".plot .points >> nth=0", "d")
        page.select_option("[data-axis='1']", label="assignment margin")
        assert page.get_attribute(".plot .points >> nth=0", "d") != before
        assert "assignment margin" in page.text_content(".plot")
        page.select_option("[data-colour]", label="class")
        expected = [f"kind {c} ({n})" for c, n in enumerate(np.bincount(y))]
        assert page.locator(".legend button").all_inner_texts() == expected
        page.click(".legend button >> nth=1")
        assert page.get_attribute(".legend button >> nth=1", "aria-pressed") == "false"
        assert page.locator(".plot .points").count() == 2
        page.click(".legend button >> nth=1")
        assert page.locator(".plot .points").count() == 3

    def test_sort_find_and_show_all(self, visit, fit_file, fitted):
        cafe, X, _ = fitted
        page = visit(fit_file)
        table = "weights-table"
        first = column(page, table, 0)
        assert len(first) == 20
        head = page.locator(f"#{table} thead th >> nth=2")
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        by_weight = list(X.columns[np.argsort(-cafe.feature_weights_[1], kind="stable")])
        assert column(page, table, 0) == by_weight[:20]
        head.locator("button").focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        page.click(f"#{table} .more")
        assert column(page, table, 0) == by_weight[::-1]
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "none"
        page.click(f"#{table} .more")
        assert column(page, table, 0) == first
        page.fill(f"#{table} [data-search]", "GENE 2")
        found = column(page, table, 0)
        assert set(found) == {"gene 2", *(f"gene {v}" for v in range(20, 30))}
        assert page.inner_text(f"#{table} .found") == "11 of 30"

    def test_names_sort_as_people_count(self, visit, fit_file):
        page = visit(fit_file)
        page.click("#weights-table thead th >> nth=0")
        assert column(page, "weights-table", 0)[:3] == ["gene 0", "gene 1", "gene 2"]

    def test_choose(self, visit, fit_file):
        page = visit(fit_file)
        clusters = column(page, "doubtful-table", 1)
        page.select_option("#doubtful-table select >> nth=0", clusters[0])
        assert set(column(page, "doubtful-table", 1)) == {clusters[0]}
        page.select_option("#doubtful-table select >> nth=0", "")
        assert column(page, "doubtful-table", 1) == clusters

    def test_claims_that_do_not_apply_are_folded_away(self, visit, fit_file):
        page = visit(fit_file)
        assert "does not apply" not in column(page, "certificate-table", 1)
        assert not page.is_visible("#folded-table")
        page.click(".folded summary")
        assert set(column(page, "folded-table", 1)) == {"does not apply"}

    def test_all_cards_of_20_clusters_are_seen(self, visit, tmp_path):
        X, _ = make_blobs(300, 6, 10)
        cafe = CAFE(
            20, p=2.0, n_init=1, selection="likelihood", max_iter=3, random_state=0
        ).fit(X)
        page = visit(write_fit_report(cafe, X, tmp_path / "a.html"))
        clipped = page.evaluate(
            "() => { const cards = document.querySelector('.cards');"
            "return cards.scrollHeight - cards.clientHeight; }"
        )
        assert page.locator(".cards .card").count() == 20
        assert clipped <= 1

    def test_walk_through_the_weights(self, visit, fit_file):
        page = visit(fit_file)
        page.focus("#weights-table td[tabindex='0']")
        names = column(page, "weights-table", 0)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert tip(page).startswith(f"{names[1]} · cluster 1\n")
        assert page.inner_text("#live").startswith(f"{names[1]} · cluster 1, weight")
        for _ in range(30):
            page.keyboard.press("ArrowDown")
        # Rows that are not seen are not walked into.
        assert tip(page).startswith(f"{names[-1]} · cluster 1\n")
        assert page.locator("#weights-table td[tabindex='0']").count() == 1

    def test_tab_reaches_every_control(self, visit, fit_file):
        page = visit(fit_file)
        reached = set()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        for _ in range(150):
            reached.add(page.evaluate("document.activeElement.tagName.toLowerCase()"))
            width = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert width != "none"
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement === document.body"):
                break
        else:
            pytest.fail("the tab key does not come to an end")
        assert reached >= {"a", "button", "input", "select", "svg", "td", "pre"}

    def test_theme(self, visit, fit_file):
        for scheme, dark in (("light", False), ("dark", True)):
            page = visit(fit_file, scheme=scheme)
            for turned in (False, True):
                if turned:
                    page.click("#theme")
                expected = dark != turned
                assert page.get_attribute("#theme", "aria-pressed") == str(expected).lower()
                red = page.evaluate(
                    "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"
                )
                assert (int(red) < 60) == expected

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_on_every_shade_can_be_read(self, visit, fit_file, scheme):
        page = visit(fit_file, scheme=scheme)
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) == 202
        assert min(contrasts) >= 4.5

    def test_narrow_screens_do_not_scroll_sideways(self, visit, fit_file):
        page = visit(fit_file, width=400)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400

    def test_print(self, visit, fit_file):
        page = visit(fit_file, width=688, scheme="dark")
        page.emulate_media(media="print")
        assert not page.is_visible("#theme")
        assert not page.is_visible(".controls >> nth=0")
        cut_off = page.eval_on_selector_all(
            ".table-block table",
            "tables => tables.filter(t => t.getBoundingClientRect().right > innerWidth + 1)"
            ".map(t => t.closest('.table-block').id)",
        )
        assert cut_off == []
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        # Chromium does not repeat heads that hold buttons.
        assert page.locator(".sort:visible").count() == 0
        names = page.eval_on_selector_all(
            "thead th",
            "cells => cells.map(cell => [cell.textContent.trim(),"
            " getComputedStyle(cell, '::before').content])",
        )
        assert names
        assert all(shown == f'"{name}"' for name, shown in names)
        assert page.pdf(format="A4").startswith(b"%PDF")

    def test_many_clusters_fit_a_printed_page(self, visit, tmp_path):
        X, _ = make_blobs(300, 6, 10)
        cafe = CAFE(
            60, p=2.0, n_init=1, selection="likelihood", max_iter=3, random_state=0
        ).fit(X)
        page = visit(write_fit_report(cafe, X, tmp_path / "a.html"), width=688)
        page.emulate_media(media="print")
        right = page.evaluate(
            "document.querySelector('#weights-table table').getBoundingClientRect().right"
        )
        assert right <= 689

    def test_without_scripts(self, browser, fit_file, fitted):
        _, X, _ = fitted
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(fit_file.as_uri())
        rows = page.locator("#weights-table tbody tr")
        assert rows.count() == len(X.columns)
        assert rows.last.is_visible()
        assert not page.is_visible(".scatter")
        assert "Scripts are off" in page.locator("noscript").inner_text()
        context.close()

    def test_copy(self, browser, visit, fit_file):
        page = visit(fit_file)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("[data-copy='snippet']")
        page.wait_for_function(
            "['Copied', 'Selected'].includes(document.querySelector('.copy').textContent)"
        )
        if page.inner_text(".copy >> nth=0") == "Copied":
            text = page.evaluate("navigator.clipboard.readText()")
        else:
            text = page.evaluate("getSelection().toString()")
        assert text.startswith("from cafelearn import CAFE")


# Contrast (as WCAG defines it) of the text on all shades, brown and blue, from 0 to 100.
CONTRASTS = """() => {
  const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...brush.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const cell = document.querySelector("#weights-table tbody tr:last-child td.shade");
  const found = [];
  for (const below of ["", "below"]) {
    for (let h = 0; h <= 100; h += 1) {
      cell.className = `shade ${below} ${h > 61 ? "hot" : h > 40 ? "warm" : ""}`;
      cell.style.setProperty("--h", h);
      const style = getComputedStyle(cell);
      const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => x - y);
      found.push((b + 0.05) / (a + 0.05));
    }
  }
  return found;
}"""


class TestTipsOfTheKeyboard:
    """They stay while the page scrolls under a pointer that rests, and go when it moves."""

    @pytest.mark.parametrize("by", [-60, 60])
    def test_at_a_point(self, visit, fit_file, by):
        page = visit(fit_file)
        page.mouse.move(*center(page, ".plot"))
        page.focus(".plot")
        page.keyboard.press("ArrowRight")
        before = page.locator("#tip").bounding_box()
        said = tip(page)
        page.evaluate("by => scrollBy({ top: by, behavior: 'instant' })", by)
        settle(page)
        assert page.is_visible("#tip")
        assert page.inner_text("#tip") == said
        assert page.locator("#tip").bounding_box()["y"] == pytest.approx(
            before["y"] - by, abs=2
        )
        page.mouse.move(3, 3)
        page.wait_for_selector("#tip", state="hidden")

    def test_at_a_cell(self, visit, fit_file):
        page = visit(fit_file)
        page.mouse.move(*center(page, "#weights-table tbody tr:nth-child(2) td:nth-child(3)"))
        cell = "#weights-table tbody tr:nth-child(1) td:nth-child(2)"
        page.focus(cell)
        page.keyboard.press("ArrowRight")
        said = tip(page)
        page.evaluate("scrollBy({ top: 40, behavior: 'instant' })")
        settle(page)
        assert page.is_visible("#tip")
        assert page.inner_text("#tip") == said

    def test_a_tip_of_the_pointer_goes_with_the_page(self, visit, fit_file):
        page = visit(fit_file)
        page.mouse.move(*center(page, "#weights-table tbody tr:nth-child(2) td:nth-child(3)"))
        tip(page)
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
        page.wait_for_selector("#tip", state="hidden")


class TestNothingGivenIsTrusted:
    def test_in_a_fit_report(self, visit, tmp_path):
        X, y = make_blobs(60, 4, 2, n_noise=1)
        frame = pd.DataFrame(X, columns=[f"{v}{ATTACK}" for v in range(4)])
        cafe = CAFE(2, p=2.0, n_init=1, random_state=0).fit(frame)
        path = write_fit_report(
            cafe,
            frame,
            tmp_path / "a.html",
            row_ids=[f"{i}{ATTACK}" for i in range(60)],
            y=[f"{c}{ATTACK}" for c in y],
            title=ATTACK,
            source=ATTACK,
            command=ATTACK,
        )
        page = visit(path)
        assert page.inner_text("h1") == ATTACK
        page.mouse.move(*center(page, "#weights-table tbody tr:nth-child(1) td:nth-child(2)"))
        assert ATTACK in tip(page)
        page.focus(".plot")
        page.keyboard.press("ArrowRight")
        assert "<img src=x" in tip(page)
        page.select_option("[data-colour]", label="class")
        assert ATTACK[:35] in page.inner_text(".legend")
        page.fill("[data-find]", "7</script>")
        assert "<img src=x" in page.inner_text(".scatter .found")
        page.click("#doubtful-table thead th >> nth=0")
        assert page.locator("main img:not(.ink-image), main b[onmouseover]").count() == 0

    def test_the_policy_stops_what_is_put_in_later(self, browser, fit_file, tmp_path):
        text = fit_file.read_text(encoding="utf-8")
        bad = text.replace("</main>", "<script>window.ran = 1</script></main>")
        assert bad != text
        path = tmp_path / "bad.html"
        path.write_text(bad, encoding="utf-8")
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("window.ran") is None
        assert page.evaluate("document.documentElement.classList.contains('js')")
        page.close()


def test_large_tables_stay_quick(visit, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2000))
    cafe = CAFE(
        4, n_components=2, p=2.0, n_init=1, selection="likelihood", max_iter=3, random_state=0
    ).fit(X)
    page = visit(write_fit_report(cafe, X, tmp_path / "a.html"))
    page.click("#weights-table .more")
    assert len(column(page, "weights-table", 0)) == 2000
    seconds = page.evaluate(
        "() => { const start = performance.now();"
        "document.querySelectorAll('#weights-table .sort')[1].click();"
        "document.body.offsetHeight; return (performance.now() - start) / 1000; }"
    )
    assert seconds < 5
