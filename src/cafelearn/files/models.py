"""Save and load fitted models. Loading a file never executes code from it."""

import io
import json
import zipfile
from copy import copy
from os import PathLike
from pathlib import Path

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.typing import Estimator
from cafelearn.base.words import listed
from cafelearn.data.validation import is_dask
from cafelearn.estimators.cafe import CAFE
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.estimators.scaling import RangeScaler
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.extraction.table import EXTRACTORS, extractor_class
from cafelearn.files.archive import UnsoundModel, check_archive
from cafelearn.files.atomic import MODEL_SUFFIXES, atomic_path, check_suffix
from cafelearn.files.checks import check_model
from cafelearn.mixture.model import Mixture

__all__ = ["ModelFileError", "load_model", "save_model"]

FORMAT = 2
HEADER, SCHEMA = "cafelearn.json", "schema.json"
ZIP = b"PK\x03\x04"
MODELS = (CAFE, MinkowskiWeightedKMeans, Mixture, TabularCAFE, RangeScaler)

# The only types allowed in a file; skops by itself would trust more. None of them is a function
# or a method: they contain only numbers, text and each other.
TRUSTED = frozenset(
    {f"builtins.{name}" for name in ("bool", "dict", "float", "int", "list", "str", "tuple")}
    | {"numpy.dtype", "numpy.ndarray", "numpy.random.mtrand.RandomState"}
    | {f"numpy.{np.dtype(kind).type.__name__}" for kind in ("f4", "f8", "i4", "i8", "u4", "u8")}
    | {"numpy.bool", "numpy.bool_", "numpy.str_"}
    | {"sklearn.decomposition._truncated_svd.TruncatedSVD", "sklearn.pipeline.Pipeline"}
    | {
        f"sklearn.preprocessing._data.{name}"
        for name in ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")
    }
    | {"cafelearn.tables.encoding.TableEncoder"}
    | {
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in (
            *MODELS,
            *(extractor_class(name) for name, of in EXTRACTORS.items() if of.shapes),
        )
    }
)
# The only kinds of nodes allowed in the schema of a file; the kind selects a loader of skops.
LOADERS = frozenset(
    f"{name}Node"
    for name in ("Dict", "DType", "Json", "List", "NdArray", "Object", "RandomState", "Tuple")
) | {"TypeNode", "CachedNode"}


class ModelFileError(ValueError):
    """Error raised if a model cannot be saved, or a file cannot be loaded as a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cafelearn.persistence import ModelFileError, load_model
    >>> path = Path(tempfile.mkdtemp()) / "model.skops"
    >>> _ = path.write_text("not a model")
    >>> try:
    ...     load_model(path)
    ... except ModelFileError:
    ...     "refused"
    'refused'
    """


def save_model(model: Estimator, path: str | PathLike[str], force: bool = False) -> Path:
    """Save a fitted model.

    Parameters
    ----------
    model : CAFE, TabularCAFE, MinkowskiWeightedKMeans, Mixture or RangeScaler
        The model. Its scalers and extractors must be among those that :func:`load_model`
        trusts: the built-in ones except UMAP, and a few of scikit-learn's. The lazy
        ``labels_`` of a fit to a Dask collection are not saved; use ``predict`` instead.
    path : str or Path
        The file to write, with the suffix ``.skops``.
    force : bool, default=False
        Whether an existing file may be replaced.

    Returns
    -------
    path : Path
        The file.

    See Also
    --------
    load_model : Load a saved model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.persistence import load_model, save_model
    >>> X = load("iris").data
    >>> cafe = CAFE(3, n_components=2, n_init=2, random_state=0).fit(X)
    >>> path = save_model(cafe, Path(tempfile.mkdtemp()) / "iris.skops")
    >>> bool((load_model(path).transform(X) == cafe.transform(X)).all())
    True
    """
    if not isinstance(model, MODELS):
        raise TypeError(
            f"save_model needs a {', '.join(kind.__name__ for kind in MODELS[:-1])} or "
            f"{MODELS[-1].__name__}, got {type(model).__name__}."
        )
    check_is_fitted(model)
    check_suffix("save_model", path, MODEL_SUFFIXES)
    data = _pack_soundly(_without_ranges(without_lazy_labels(model)))
    unknown = _untrusted(_schema(zipfile.ZipFile(io.BytesIO(data))))
    if unknown:
        raise ModelFileError(
            f"save_model cannot save a {type(model).__name__} with {listed(unknown, str)}: "
            "load_model would reject it."
        )
    with atomic_path(path, force) as temporary:
        temporary.write_bytes(data)
    return Path(path)


def _without_ranges(model):
    """Return the model with `range` objects and feature groups replaced by lists.

    `load_model` would reject `range` objects and some types of feature groups.
    """
    changes = {}
    groups = getattr(model, "feature_groups", None)
    if groups is not None and not isinstance(groups, str):
        changes["feature_groups"] = [str(label) for label in groups]
    if hasattr(model, "models_"):
        chosen = model.models_.index(model.model_)
        changes["models_"] = [_without_ranges(part) for part in model.models_]
        changes["model_"] = changes["models_"][chosen]
    if isinstance(getattr(model, "n_clusters", None), range):
        changes["n_clusters"] = list(model.n_clusters)
    for name in ("cafe", "cafe_"):
        if (part := getattr(model, name, None)) is not None:
            changes[name] = _without_ranges(part)
    if not changes:
        return model
    changed = copy(model)
    vars(changed).update(changes)
    return changed


def load_model(path: str | PathLike[str]) -> Estimator:
    """Load a model that :func:`save_model` has written.

    Nothing in the file is executed. The file may contain numbers, text, the estimators of this
    package and some estimators of scikit-learn. A file with any other type is rejected.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    model : CAFE, TabularCAFE, MinkowskiWeightedKMeans, Mixture or RangeScaler
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, has another format version, contains untrusted
        types or inconsistent arrays, or would unpack to far more than its size.

    See Also
    --------
    save_model : Write such a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cafelearn import RangeScaler
    >>> from cafelearn.persistence import load_model, save_model
    >>> path = Path(tempfile.mkdtemp()) / "scaler.skops"
    >>> _ = save_model(RangeScaler().fit([[0.0], [4.0]]), path)
    >>> load_model(path).transform([[3.0]])
    array([[0.25]])
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"load_model needs a file, but {path} is a directory.")
    if not path.exists():
        raise FileNotFoundError(f"load_model cannot find {path}.")
    # Read the file once, so that the checks and the loader see the same bytes even if the file
    # changes meanwhile.
    with open(path, "rb") as file:
        data = file.read(len(ZIP))
        if data != ZIP:
            raise ModelFileError(f"{path} is not a model: it is not a skops file.")
        data += file.read()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if HEADER not in archive.namelist():
                raise ModelFileError(f"{path} is not a model that save_model has written.")
            check_archive(archive, len(data), (HEADER, SCHEMA))
            _check_header(path, archive)
            unknown = _untrusted(_schema(archive))
    except ModelFileError:
        raise
    except UnsoundModel as error:
        raise ModelFileError(f"{path} was not loaded: {_short(error)}.") from error
    except Exception as error:  # a damaged file can raise any exception
        raise ModelFileError(f"{path} is damaged or truncated: {_short(error)}.") from error
    if unknown:
        raise ModelFileError(
            f"{path} was not loaded: it contains types that are not trusted, "
            f"{listed(unknown, str)}."
        )
    return _unpack(path, data)


def _skops():
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "Saving and loading models needs the package skops: pip install 'cafelearn[cli]'."
        ) from error
    return skops.io


def without_lazy_labels(model):
    """Return a copy of the model and its parts without lazy labels."""
    model = copy(model)
    if is_dask(getattr(model, "labels_", None)):
        del model.labels_
    if hasattr(model, "models_"):
        chosen = model.models_.index(model.model_)
        model.models_ = [without_lazy_labels(m) for m in model.models_]
        model.model_ = model.models_[chosen]
    if hasattr(model, "cafe_"):
        model.cafe_ = without_lazy_labels(model.cafe_)
    return model


def _pack_soundly(model):
    """Pack a model so that `load_model` accepts it.

    A model that compresses too well would be rejected as a zip bomb, so it is stored
    uncompressed.
    """
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        data = _pack(model, compression)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                check_archive(archive, len(data), (HEADER, SCHEMA))
            return data
        except UnsoundModel as error:
            problem = error
    raise ModelFileError(
        f"save_model cannot save this {type(model).__name__}: {problem}; load_model would "
        "reject it."
    )


def _pack(model, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    try:
        _skops().dump(model, buffer, compression=compression)
    except (AttributeError, TypeError, NotImplementedError, RecursionError) as error:
        parts = {
            type(part).__name__
            for part in (getattr(model, "extractor_", None), getattr(model, "scaler_", None))
            if part is not None
        }
        inside = f" with {' and '.join(sorted(parts))}" if parts else ""
        raise ModelFileError(
            f"save_model cannot save this {type(model).__name__}{inside}: {_short(error)}."
        ) from error
    import cafelearn

    header = {
        "format": FORMAT,
        "cafelearn": cafelearn.__version__,
        "scikit-learn": sklearn.__version__,
    }
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(HEADER, json.dumps(header))
    return buffer.getvalue()


def _unpack(path, data):
    skops_io = _skops()
    try:
        model = skops_io.loads(data, trusted=sorted(TRUSTED))
        if not isinstance(model, MODELS):
            raise UnsoundModel(f"it contains a {type(model).__name__}, not a model")
        check_is_fitted(model)
        check_model(model)
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: {_short(error)}.") from error
    return model


def _check_header(path, archive):
    header = json.loads(archive.read(HEADER))
    if header["format"] != FORMAT:
        raise ModelFileError(
            f"{path} was written by cafelearn {header['cafelearn']} in format "
            f"{header['format']}; this version reads format {FORMAT}. Use that version, or fit "
            "and save the model again."
        )


def _schema(archive):
    return json.loads(archive.read(SCHEMA))


def _untrusted(schema):
    """Return the names of the types and nodes in a skops schema that are not allowed."""
    found, todo = set(), [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if "__class__" in node or "__loader__" in node:
                name = f"{node.get('__module__')}.{node.get('__class__')}"
                if name not in TRUSTED:
                    found.add(name)
                elif node.get("__loader__") not in LOADERS:
                    found.add(f"{name} ({node.get('__loader__')})")
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return sorted(found)


def _short(error):
    """Return the first line of an exception's message, at most 200 characters."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")
