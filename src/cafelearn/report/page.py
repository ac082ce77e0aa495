"""From a template and its data to one file that needs nothing but a browser.

The plots are drawn by a few hundred lines of our own instead of plotly.js: a report weighs some
hundred kilobytes instead of five megabytes, follows the theme of the page, prints as vectors
and runs under a policy that forbids the page everything but its own script.
"""

import base64
import hashlib
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import numpy as np
import sklearn

import cafelearn
from cafelearn._files import atomic_path, check_output
from cafelearn._words import shortened

ASSETS = files("cafelearn.report") / "assets"
SCRIPTS = ("theme.js", "tips.js", "tables.js", "scatter.js", "copy.js")
# Longer names are cut, so that no column name can make the file large.
LONGEST_NAME = 120


def write_page(template, content, path, *, title, force, caller) -> Path:
    """Render a template with `content` and put it at `path`.

    The script is allowed by its hash, so nothing else on the page can run; styles are
    inline because heat maps set the shade of each cell.
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
        # A lone surrogate in a name cannot be written as UTF-8; it becomes a question mark.
        Path(temporary).write_bytes(text.encode("utf-8", errors="replace"))
    return path


def check_ready(caller, path, force):
    """Raise before any work is done if the report could not be written after it."""
    environment(caller)
    check_output(path, force)


def environment(caller):
    """The Jinja environment: everything is escaped unless it is markup of our own."""
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
    # Only the files of this package are ever marked as safe.
    made.filters["own_code"] = Markup
    return made


def number(value, digits=3) -> str:
    """A number for reading: `digits` significant digits, nothing for a missing one."""
    if value is None or np.isnan(value):
        return ""
    if abs(value) >= 10**digits and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def count(value) -> str:
    """A count with separators of thousands."""
    return f"{int(value):,}"


def short(text, length=LONGEST_NAME) -> str:
    """Text of any object, cut to a length; a filter of the templates."""
    return shortened(text, length)


def join(words) -> str:
    """Words as a list in a sentence."""
    words = [str(word) for word in words]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def image(path) -> str:
    """A PNG or SVG file as the address of an image that holds it."""
    path = Path(path)
    kinds = {".png": "image/png", ".svg": "image/svg+xml"}
    if path.suffix.lower() not in kinds:
        raise ValueError(
            f"A figure of a report needs to be a .png or .svg file, got {path.name!r}."
        )
    return encoded(path.read_bytes(), kinds[path.suffix.lower()])


def encoded(content, kind) -> str:
    """Bytes as a data: address."""
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
