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
    for directory in (Path(__file__).parents[1], sklearn.__path__[0], joblib.__path__[0])
)


def warn_caller(message, category=UserWarning):
    """Warn at the innermost line outside of this package, scikit-learn and joblib."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
