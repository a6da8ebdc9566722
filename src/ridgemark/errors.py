"""Every error and warning that the package raises intentionally.

A message says what is wrong, what is required, what was got, and the remedy. All errors derive from
`RidgemarkError`; those that are usually a `ValueError`, `TypeError` or `ImportError` in Python derive from it too.
"""

import sys
import warnings
from importlib import import_module
from typing import Any


class RidgemarkError(Exception):
    """Base of every error raised intentionally."""


class ParameterError(RidgemarkError, ValueError):
    """An option is outside its range, or two options contradict each other."""


class UnknownParameterError(ParameterError, TypeError):
    """A parameter has another name in this package; the message names it."""


class DataError(RidgemarkError, ValueError):
    """The rows cannot be used: wrong shape, a missing column, a cell that is not a finite number."""


class DataTypeError(DataError, TypeError):
    """The rows are of a type that does not hold numbers."""


class NotRestartableError(DataTypeError):
    """A source that can be read only once was given where several passes are needed."""


class SourceFileError(DataError, OSError):
    """A data file is missing, empty, truncated or of another format than its name says."""


class ModelFileError(RidgemarkError, ValueError, OSError):
    """A model file is missing, truncated, changed, of a newer or another format, or cannot be written."""


class CheckpointError(RidgemarkError, ValueError, OSError):
    """A checkpoint is of another fit, in use, damaged, or cannot be written."""


class NumericalError(RidgemarkError, ArithmeticError):
    """A computation exceeded the range or the accuracy of floating-point numbers."""


class MissingExtraError(RidgemarkError, ImportError):
    """An optional package is needed and not installed; the message names the extra."""

    def __init__(self, extra: str, package: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed; "
            f'install it with: pip install "ridgemark[{extra}]"'
        )


def require(extra: str, purpose: str, package: str, *modules: str) -> Any:
    """Return an optional package, with some of its modules imported, or raise the error that names its extra."""
    try:
        imported, *_ = [import_module(module) for module in (package, *modules)]
    except ImportError as error:
        raise MissingExtraError(extra, package, purpose) from error
    return imported


class RidgemarkWarning(UserWarning):
    """Base of every warning raised intentionally."""


class RidgeEdgeWarning(RidgemarkWarning):
    """The best ridge is the largest or smallest of those searched; a better one may lie outside the range."""


class LandmarkCountWarning(RidgemarkWarning):
    """More landmarks were requested than there are distinct rows; all distinct rows are used."""


class ColumnScaleWarning(RidgemarkWarning):
    """One bandwidth is used for columns of very different scales."""


class ColumnWarning(RidgemarkWarning):
    """A column was left out or holds row numbers, a target is constant, or there are values the fit has not seen."""


class ConvergenceWarning(RidgemarkWarning):
    """An iteration stopped before it reached its tolerance; the message says at what error, and why."""


class CoverageWarning(RidgemarkWarning):
    """Rows are in named sets with too few calibration rows for the coverage; they get the interval of all rows."""


class ConditioningWarning(RidgemarkWarning):
    """Rounding errors degrade the fit, e.g. when columns are far from zero; the message gives the evidence."""


# Modules whose frames lie between a user's line and the package: decorators, context managers, pipelines and searches.
_IN_BETWEEN = ("ridgemark", "contextlib", "functools", "numpy", "sklearn", "joblib")


def warn_user(message: str, category: type[RidgemarkWarning]) -> None:
    """Warn with the line of the user's code: that of the first frame outside the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _IN_BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
