"""Every example in the README and the documentation runs as written, and all of it builds."""

import doctest
import importlib
import inspect
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import warnings
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

import cafelearn

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = ("_build", "auto_examples", "generated", "backreferences")
WRITTEN = (*GENERATED, "results")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        if not set(WRITTEN) & set(page.relative_to(DOCS).parts)
    ),
]
FENCE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
CHECKER = doctest.OutputChecker()
SECONDS = re.compile(r"\b\d+(\.\d+)? s\b")
# Modules whose public names the reference lists.
DOCUMENTED = (
    "cafelearn",
    "cafelearn.cli",
    "cafelearn.datasets",
    "cafelearn.diagnosis",
    "cafelearn.distributed",
    "cafelearn.explanation",
    "cafelearn.extraction",
    "cafelearn.mixture",
    "cafelearn.persistence",
    "cafelearn.plotting",
    "cafelearn.report",
    "cafelearn.selection",
    "cafelearn.theory",
)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    code: str
    line: int


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        yield Block(found["language"].strip(), textwrap.dedent(found["code"]), line)


def name_of(page):
    return str(page.relative_to(ROOT))


def run_python(block, page, names):
    """A session with prompts is compared with its output, a script is only run."""
    if not block.code.startswith(">>>"):
        with redirect_stdout(StringIO()):
            exec(compile("\n" * (block.line - 1) + block.code, page, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(
        block.code, names, name_of(page), str(page), block.line - 1
    )
    report = StringIO()
    runner = doctest.DocTestRunner(CHECKER, optionflags=OPTIONS)
    runner.run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    assert not runner.summarize(verbose=False).failed, report.getvalue()


def commands(block):
    """The commands after the prompts, each with the output that the page shows."""
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        n = 1
        while lines[n - 1].endswith("\\"):
            n += 1
        yield " ".join(line.rstrip("\\") for line in lines[:n]), "\n".join(lines[n:]) + "\n"


def run_console(block, page):
    for command, expected in commands(block):
        words = shlex.split(command)
        assert words[0] == "cafe" or words[:3] == ["python", "-m", "reproduction"], (
            f"{name_of(page)}, line {block.line}: {command}"
        )
        arguments = ["-m", "cafelearn", *words[1:]] if words[0] == "cafe" else words[1:]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=os.environ
            | {"PYTHONIOENCODING": "utf-8", "MPLBACKEND": "Agg", "PYTHONPATH": path},
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if expected.strip():
            wanted, got = (SECONDS.sub("0.0 s", text) for text in (expected, done.stdout))
            same = CHECKER.check_output(wanted, got, OPTIONS)
            assert same, f"{name_of(page)}, line {block.line}: {command}\n{done.stdout}"


def check_setup(block):
    """Commands that install or build are not run; what they name has to exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, flags=re.MULTILINE))
    for line in block.code.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert set(words[1:]) <= targets, line
        elif words[:2] == ["pip", "install"]:
            extras = re.findall(r"\[(.*)\]", line)
            for extra in extras[0].split(",") if extras else ():
                assert extra in project["optional-dependencies"], line
        else:
            assert words[0] in ("find", ".venv/bin/pre-commit"), line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in blocks(page):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            if block.language == "python":
                run_python(block, page, names)
            elif block.language == "console":
                run_console(block, page)
            elif block.language == "shell" or block.code.startswith(("make ", "pip ")):
                check_setup(block)
            else:
                # Directives of Sphinx, and what is no code.
                assert block.language.startswith("{") or block.language in ("", "bibtex")
    importlib.import_module("matplotlib.pyplot").close("all")


def test_a_wrong_output_is_found(tmp_path, monkeypatch):
    """The tests above can fail: on a result, on a command and on a setup line."""
    page = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="Expected"):
        run_python(Block("python", ">>> 1 + 1\n3\n", 1), page, {})
    with pytest.raises(AssertionError, match=f"cafe {cafelearn.__version__}"):
        run_console(Block("console", "$ cafe --version\ncafe 99\n", 1), page)
    with pytest.raises(AssertionError, match="there is no file"):
        run_console(Block("console", "$ cafe fit no.csv -k 2\n", 1), page)
    with pytest.raises(AssertionError, match="make nothing"):
        check_setup(Block("shell", "make nothing\n", 1))


def test_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_pictures_of_the_theory(tmp_path):
    """The script draws those that the page shows, and they are committed."""
    script = runpy.run_path(str(ROOT / "scripts" / "draw_theory.py"))
    script["main"](tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    text = (DOCS / "theory.md").read_text(encoding="utf-8")
    assert drawn == set(re.findall(r"images/(theory-[\w-]+\.png)", text))
    assert drawn <= {path.name for path in (DOCS / "images").iterdir()}


def public_names(module):
    module = importlib.import_module(module)
    return {name for name in module.__all__ if callable(getattr(module, name))}


def public_functions(module):
    """Functions and public methods, by name, of what a module defines."""
    for name in sorted(public_names(module)):
        thing = getattr(importlib.import_module(module), name)
        if not inspect.isclass(thing):
            yield name, thing
        for method, function in vars(thing).items() if inspect.isclass(thing) else ():
            function = getattr(function, "__func__", function)  # of a class method
            own = inspect.isfunction(function) and function.__module__ == thing.__module__
            if own and (method == "__init__" or not method.startswith("_")):
                yield f"{name}.{method}", function


@pytest.mark.parametrize("module", DOCUMENTED)
def test_public_functions_have_hints(module):
    """All of them; that they are right is for mypy."""
    for name, function in public_functions(module):
        signature = inspect.signature(function)
        hints = {key: value.annotation for key, value in signature.parameters.items()}
        for receiver in {"self", "cls"} & set(hints):
            del hints[receiver]
        if not name.endswith("__init__"):
            hints["return"] = signature.return_annotation
        missing = [key for key, hint in hints.items() if hint is inspect.Parameter.empty]
        assert not missing, f"{module}.{name}: {missing}"


def test_the_reference_lists_every_public_name():
    listed, module = {}, None
    for line in (DOCS / "api" / "index.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
            listed.setdefault(module, set())
        elif re.fullmatch(r"   \w+", line):
            listed[module].add(line.strip())
    assert listed == {module: public_names(module) for module in DOCUMENTED}


@pytest.mark.skipif(
    not all(map(find_spec, ("sphinx", "numpydoc", "myst_parser", "sphinx_gallery"))),
    reason="the documentation needs pip install 'cafelearn[docs]'",
)
def test_the_documentation_builds_without_warnings(tmp_path):
    """Build from a copy, without the files of earlier builds."""
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns(*GENERATED))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "html"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    html = tmp_path / "html"
    for example in (ROOT / "examples").glob("plot_*.py"):
        page = html / "auto_examples" / f"{example.stem}.html"
        assert "sphx-glr-script-out" in page.read_text(encoding="utf-8"), example.stem
    for page in html.rglob("*.html"):
        loaded = re.findall(r'(?:src|href)="(https?:[^"]+\.(?:js|css))', page.read_text())
        assert not loaded, f"{page.name} needs the network: {loaded}"
