"""Issue warnings that point to the line of user code that called this package."""

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

# Stack frames in the directories of these packages are skipped.
PACKAGES = tuple(
    str(Path(directory)) + os.sep
    for directory in (Path(__file__).parent, sklearn.__path__[0], joblib.__path__[0])
)
# Name of the variable in the caller's module that holds the warnings already shown.
WARNED = "__cafelearn_warned__"


def warn_caller(message, category=UserWarning, once=False):
    """Warn at the innermost line outside of this package, scikit-learn and joblib.

    With `once`, a message is shown once per line, as with Python's action "default". Python's
    own record of shown warnings does not suffice: scikit-learn's checks change the warning
    filters, which clears the record.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGES):
        frame, level = frame.f_back, level + 1
    if once and _action(message, category, frame) == "default":
        key = (message, category, frame.f_code.co_filename, frame.f_lineno)
        warned = frame.f_globals.setdefault(WARNED, set())
        if key in warned:
            return
        warned.add(key)
    warnings.warn(message, category, stacklevel=level)


def _action(message, category, frame):
    """Return the action of the first of Python's warning filters that matches."""
    module = frame.f_globals.get("__name__", "<unknown>")
    for action, text, kind, where, line in warnings.filters:
        applies = issubclass(category, kind) and line in (0, frame.f_lineno)
        if applies and all(
            pattern is None or pattern.match(value)
            for pattern, value in ((text, message), (where, module))
        ):
            return action
    return warnings.defaultaction
