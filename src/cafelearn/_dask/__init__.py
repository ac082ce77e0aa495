"""Methods of the estimators for Dask collections."""

try:
    import dask.array  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Dask collections need the packages dask and distributed: "
        "pip install 'cafelearn[dask]'."
    ) from error

from cafelearn._dask.cafe import fit_cafe
from cafelearn._dask.fitting import fit_mwkmeans, sample_rows
from cafelearn._dask.lazy import lazily, profile, score
from cafelearn._dask.moments import fit_range_scaler
from cafelearn._dask.tables import encode_parts, fit_encoder

__all__ = [
    "encode_parts",
    "fit_cafe",
    "fit_encoder",
    "fit_mwkmeans",
    "fit_range_scaler",
    "lazily",
    "profile",
    "sample_rows",
    "score",
]
