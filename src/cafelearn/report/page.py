"""Render a template into one self-contained HTML file.

The plots use a few hundred lines of JavaScript in this package instead of plotly.js. A report
therefore takes a few hundred kilobytes instead of five megabytes. Its plots follow the theme of
the page and print as vector graphics, and its content security policy allows no other script.
"""

import base64
import hashlib
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import numpy as np
import sklearn

import cafelearn
from cafelearn.base.words import shortened
from cafelearn.files.atomic import PAGE_SUFFIXES, atomic_path, check_output, check_suffix

ASSETS = files("cafelearn.report") / "assets"
SCRIPTS = ("theme.js", "tips.js", "tables.js", "scatter.js", "copy.js")
# Longer names are shortened, so that a very long column name does not make the file large.
LONGEST_NAME = 120


def write_page(template, content, path, *, title, force, caller) -> Path:
    """Render a template with `content` and write it to `path`.

    The content security policy identifies the script by its hash, so no other script can run.
    It allows inline styles, because heat maps set the shade of each cell.
    """
    page = environment(caller).get_template(template)
    script = "\n".join(_asset(name) for name in SCRIPTS)
    text = page.render(
        **content,
        title=short(title, 200),
        style=_asset("report.css"),
        script=script,
        script_hash=_hash(script),
        made_with=_made_with(),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    path = Path(path)
    with atomic_path(path, force=force) as temporary:
        # Lone surrogates in names cannot be encoded, and become question marks.
        Path(temporary).write_bytes(text.encode("utf-8", errors="replace"))
    return path


def check_ready(caller, path, force):
    """Raise before the computation if the report cannot be written."""
    environment(caller)
    check_suffix(caller, path, PAGE_SUFFIXES)
    check_output(path, force)


def environment(caller):
    """Make the Jinja environment, which escapes everything except the package's own markup."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(
            f"{caller} needs the package jinja2: pip install 'cafelearn[report]'."
        ) from error
    made = Environment(
        loader=PackageLoader("cafelearn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "count": count, "short": short}
    # Only files of this package are marked as safe.
    made.filters["own_code"] = Markup
    return made


def number(value, digits=3) -> str:
    """Format a number with `digits` significant digits; return "" if it is missing."""
    if value is None or np.isnan(value):
        return ""
    if abs(value) >= 10**digits and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def count(value) -> str:
    """Format a count with thousands separators."""
    return f"{int(value):,}"


def short(text, length=LONGEST_NAME) -> str:
    """Convert an object to text of at most `length` characters."""
    return shortened(text, length)


def encoded(content, kind) -> str:
    """Encode bytes as a data: URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _asset(name):
    return (ASSETS / name).read_text(encoding="utf-8")


def _hash(script):
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _made_with():
    return (
        f"cafelearn {cafelearn.__version__}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
