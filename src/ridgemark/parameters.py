"""Base class of objects defined by their constructor's arguments, for `clone` and `kernel__bandwidth`."""

import inspect
import math
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ridgemark.errors import ParameterError

_PRINTED_ENTRIES = 16  # of an array


class Parameterised:
    """An object that stores its constructor's arguments unchanged; they determine equality, repr and clones.

    This is scikit-learn's contract: `get_params`, `set_params` with `outer__inner` names, and a constructor that
    only stores its arguments. They are checked when the object is used. `BaseEstimator` is not the base, as estimators
    would then print these objects without arguments that are defaults, and with arrays of any size.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        if cls.__init__ is object.__init__:
            return []
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    get_params = BaseEstimator.get_params

    def set_params(self, **params: Any) -> Any:
        """Set arguments by name, those of nested objects as `outer__inner`; return self."""
        own, owner = self.get_params(deep=False), type(self).__name__
        for key in params:
            name, inner, _ = key.partition("__")
            if name not in own:
                raise ParameterError(f"{owner} has no parameter {name!r}; it has {', '.join(own) or 'none'}")
            part = params.get(name, own[name])
            if inner and not hasattr(part, "set_params"):
                raise ParameterError(f"{owner}.{name} is {part!r} and has no parameters of its own to set ({key})")
        return BaseEstimator.set_params(self, **params)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        theirs = other.get_params(deep=False)
        return all(_same(mine, theirs[name]) for name, mine in self.get_params(deep=False).items())

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(_hashable, self.get_params(deep=False).values())))

    def __repr__(self) -> str:
        optional = {p.name for p in inspect.signature(type(self)).parameters.values() if p.default is None}
        shown = {n: v for n, v in self.get_params(deep=False).items() if v is not None or n not in optional}
        arguments = ", ".join(f"{name}={_text(value)}" for name, value in shown.items())
        return f"{type(self).__name__}({arguments})"


def real_number(value: Any) -> float:
    """Return a real number as a float; NaN for anything else, including True and integers beyond the float range."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def positive_count(value: Any, name: str, otherwise: str = "") -> int:
    """Return a number of rows or rounds as an int; raise an error unless it is positive."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1:
        return int(value)
    raise ParameterError(f"{name} must be a positive integer{otherwise}, got {value!r}")


def check_flags(owner: Any, *names: str) -> None:
    """Raise an error unless these attributes are True or False."""
    for name in names:
        if not isinstance(getattr(owner, name), bool | np.bool_):
            raise ParameterError(f"{name} must be True or False, got {getattr(owner, name)!r}")


def _text(value: Any) -> str:
    """Return the repr of an argument on one line; of a large array, its shape."""
    try:
        n_dimensions = np.ndim(value) if isinstance(value, np.ndarray | list) else 0
    except ValueError:  # a list of lists of different lengths
        n_dimensions = 0
    if n_dimensions not in (1, 2):
        return repr(value)
    if np.size(value) > _PRINTED_ENTRIES:
        return f"<{'vector' if n_dimensions == 1 else 'matrix'} of shape {np.shape(value)}>"
    return repr(value) if isinstance(value, list) else f"array({value.tolist()})"


def _same(mine: Any, other: Any) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(mine, other)
    return bool(mine == other)


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray | list):
        return tuple(np.asarray(value).ravel().tolist())
    return value
