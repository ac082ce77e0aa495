"""Model files."""

from cafelearn.files.models import ModelFileError, load_model, save_model

__all__ = ["ModelFileError", "load_model", "save_model"]
