"""Parameters of estimators: stored as given; names in other packages are answered with the equivalent here."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec

from ridgemark.errors import UnknownParameterError

P = ParamSpec("P")

_EQUIVALENTS: dict[str, Callable[[Any], str]] = {
    "alpha": lambda value: "ridge = alpha/n, n the number of rows or the sum of weights",
    "gamma": lambda value: f"bandwidth = 1/sqrt(2 gamma) for a Gaussian kernel{_as_bandwidth(value)}",
    "length_scale": lambda value: f"bandwidth={value!r}",
    "n_components": lambda value: f"n_landmarks={value!r}",
}


class Absent(property):
    """The name of a method that other estimators have: absent, and the error says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(self._refuse)
        self._reason, self._name = reason, "?"

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _refuse(self, estimator: Any) -> Any:
        what = f"{type(estimator).__name__} has no {self._name}: {self._reason}"
        raise AttributeError(what, name=self._name, obj=estimator)


def stores_parameters(init: Callable[P, None]) -> Callable[P, None]:
    """Return an `__init__` of the same signature that stores every argument under its name, as scikit-learn asks.

    A parameter of another package is answered with the equivalent here.
    """
    signature = inspect.signature(init)

    @wraps(init)
    def stored(*args: P.args, **kwargs: P.kwargs) -> None:
        refuse_foreign(kwargs, signature.parameters, type(args[0]).__name__)
        init(*args, **kwargs)  # refuses arguments that do not fit the signature
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, value in list(given.arguments.items())[1:]:
            setattr(args[0], name, value)

    return stored


def refuse_foreign(given: Mapping[str, Any], known: Iterable[str], owner: str) -> None:
    """Raise the error that names the equivalent, for a parameter that is not known here but in other packages."""
    for name in given.keys() - set(known):
        if name in _EQUIVALENTS:
            raise UnknownParameterError(f"{owner} has no parameter {name!r}; give {_EQUIVALENTS[name](given[name])}")


def refuse_inner(given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse parameters such as `kernel__bandwidth` of a kernel or selection that is given by name or as a function."""
    for name in given:
        outer, within, inner = name.partition("__")
        value = given.get(outer, known.get(outer))
        if within and outer in known and not hasattr(value, "set_params"):
            raise UnknownParameterError(
                f"{outer}={value!r} has no parameter {inner!r}: give an object, as in kernel=Gaussian(bandwidth=1.0), "
                "or set the estimator's own parameters"
            )


def _as_bandwidth(gamma: Any) -> str:
    is_number = isinstance(gamma, int | float) and gamma > 0
    return f": bandwidth={(2.0 * gamma) ** -0.5:.6g}" if is_number else ""
