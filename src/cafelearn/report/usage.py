"""Write the code shown in a fit report: it repeats the fit and applies it to new rows."""

import inspect
import re
import textwrap

import numpy as np
from sklearn.base import BaseEstimator

# Parameters that do not change the result and are omitted.
SILENT = ("n_jobs", "verbose")
# Types whose repr is code.
PLAIN = (type(None), bool, int, float, str)
# Largest number of characters in a line of a long list or comment.
WIDTH = 88
# Patterns in the expression that reads the table, and the imports that they require.
IMPORTS = {
    r"\bpd\.": "import pandas as pd",
    r"\bpl\.": "import polars as pl",
    r"\bdd\.": "import dask.dataframe as dd",
    r"\bda\.": "import dask.array as da",
    r"\bfrom_npy\(": "from cafelearn.distributed import from_npy",
}


def snippet(facts, read=None) -> str:
    """Write code that repeats the fit and applies it to new rows.

    `read` is an expression that reads the table. If it is None, the code assumes a variable
    `X`.
    """
    code = Code()
    name, model = _model_code(facts, code)
    rows = _rows_code(facts, code, read)
    is_cafe = facts.cafe is not None
    fit = f"features = {name}.fit_transform" if is_cafe else f"labels = {name}.fit_predict"
    applied = [("new_features", "transform", "their features")]
    if facts.is_mixture:
        applied.append(("shares", "predict_proba", "probability of each cluster"))
    applied.append(("margin", "assignment_margin", "near 0: doubtful"))
    if not is_cafe:
        applied = [("distances", "transform", "distances to each centre")]
    steps = [
        f"{name} = {model}",
        "",
        (f"{fit}({rows})", "the rows of this report"),
        (f"profile = {name}.profile_frame({rows})", "cluster profiles"),
        (f"weights = {name}.weights_frame()", "feature weights of each cluster"),
        "",
        (f"new_rows = {rows}", "any rows with the same columns"),
        (f"new_labels = {name}.predict(new_rows)", "their clusters"),
        *((f"{what} = {name}.{method}(new_rows)", note) for what, method, note in applied),
    ]
    return code.text(steps)


class Code:
    """Parts of the code: `imports`, and lines that come `before` the steps."""

    def __init__(self):
        self.imports, self.before = set(), []

    def text(self, steps):
        """Join imports, preceding lines and steps.

        A step is a line, or a line and a comment; the comments are aligned.
        """
        pairs = [step for step in steps if isinstance(step, tuple)]
        column = max(len(line) for line, _ in pairs) + 2
        lines = [
            f"{step[0]:<{column}}# {step[1]}" if isinstance(step, tuple) else step
            for step in steps
        ]
        before = [*self.before, ""] if self.before else []
        # Sort "import" lines before "from" lines, as formatters do.
        imports = sorted(self.imports, key=lambda line: (line.startswith("from"), line))
        return "\n".join([*imports, "", *before, *lines]) + "\n"

    def literal(self, value):
        """Write a value as code; return None if that is not possible."""
        if isinstance(value, np.bool_ | np.number):
            value = value.item()
        if isinstance(value, BaseEstimator):
            return self._estimator(value)
        if isinstance(value, list | tuple):
            parts = [self.literal(item) for item in value]
            if None in parts:
                return None
            inside = ", ".join(parts)
            if isinstance(value, list):
                return f"[{inside}]"
            return f"({inside},)" if len(parts) == 1 else f"({inside})"
        if isinstance(value, float) and not np.isfinite(value):
            return f'float("{value}")'
        return repr(value) if isinstance(value, PLAIN) else None

    def _estimator(self, value):
        kind = type(value)
        parts = kind.__module__.split(".")
        public = parts[: next((i for i, p in enumerate(parts) if p[0] == "_"), len(parts))]
        self.imports.add(f"from {'.'.join(public)} import {kind.__name__}")
        changed = self.changed(value)
        return f"{kind.__name__}({', '.join(line.strip() for line in changed)})"

    def changed(self, estimator, always=(), never=()):
        """Write arguments for the parameters that differ from their defaults."""
        lines = []
        for name, parameter in inspect.signature(type(estimator)).parameters.items():
            value = getattr(estimator, name)
            if name in never or (name not in always and _same(value, parameter.default)):
                continue
            shown = self.literal(value)
            if shown is None:
                lines.append(f"# {name}: a {type(value).__name__}, as given to the fit")
            else:
                lines.append(f"{name}={shown}")
        return lines


def _same(value, default):
    if isinstance(value, np.ndarray) or isinstance(default, np.ndarray):
        return value is default
    return repr(value) == repr(default)


def _model_code(facts, code):
    """Return the variable name of the model and the code that makes the model."""
    # For a TabularCAFE, show its CAFE as given: the fitted copy also has `feature_groups`.
    given = facts.estimator.cafe if facts.is_table else None
    inner = facts.inner if given is None else given
    kind = type(inner).__name__
    code.imports.add(f"from cafelearn import {kind}")
    settings = code.changed(inner, always=("n_clusters",), never=SILENT)
    seeded = inner.random_state is not None
    note = "" if seeded else "  # without random_state, results may differ"
    if not facts.is_table:
        made = f"{kind}(\n{_block(settings, 1)}){note}"
        return ("cafe" if facts.cafe is not None else "model"), made
    code.imports.add("from cafelearn import TabularCAFE")
    columns = code.changed(facts.estimator, never=("cafe",))
    made = f"    {kind}(\n{_block(settings, 2)}    ),{note}\n"
    return "model", f"TabularCAFE(\n{made}{_block(columns, 1)})"


def _block(lines, depth):
    """Indent lines of arguments and end them with commas, except comments."""
    indent = "    " * depth
    return "".join(f"{indent}{line}{'' if line[0] == '#' else ','}\n" for line in lines)


def _rows_code(facts, code, read):
    """Add the code that makes the rows; return the name of their variable."""
    names = getattr(facts.inner, "feature_names_in_", None)
    if read is not None:
        code.imports.update(line for start, line in IMPORTS.items() if re.search(start, read))
        code.before.append(f"table = {read}")
        if facts.is_table:
            return "table"
        columns = ".to_numpy()" if names is None else f"[{_listed(names)}]"
        code.before.append(f"X = table{columns}")
        return "X"
    if facts.is_table:
        names = getattr(facts.estimator, "feature_names_in_", None)
    if names is not None:
        code.before += _comment("X has the columns " + ", ".join(map(repr, map(str, names))))
    else:
        code.before.append(f"# X has {facts.estimator.n_features_in_} columns")
    return "X"


def _listed(names):
    """Write a list of names, on several lines if it is long."""
    shown = [repr(str(name)) for name in names]
    if sum(map(len, shown)) + 2 * len(shown) < WIDTH - 12:
        return f"[{', '.join(shown)}]"
    lines, line = [], "   "
    for name in shown:
        if len(line) + len(name) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {name},"
    return "[\n" + "\n".join([*lines, line]) + "\n]"


def _comment(text, most=6):
    """Wrap a comment, and cut it after `most` lines."""
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines if len(lines) <= most else [*lines[:most], "# and more"]
