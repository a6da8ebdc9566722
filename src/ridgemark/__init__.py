"""Kernel ridge regression from a few well-chosen landmarks, with its distance from exact."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgemark import bounds, certificates, errors, evaluate, exact, kernels, losses, selection
    from ridgemark.checks import check
    from ridgemark.estimators import (
        ExactKernelRidge,
        NystromClassifier,
        NystromFeatures,
        NystromRegressor,
        NystromRidge,
    )
    from ridgemark.functions import effective_dimension, leverage_scores, load
    from ridgemark.rows import open_rows

__version__ = "0.3.0"

__all__ = [
    "ExactKernelRidge",
    "NystromClassifier",
    "NystromFeatures",
    "NystromRegressor",
    "NystromRidge",
    "__version__",
    "bounds",
    "certificates",
    "check",
    "effective_dimension",
    "errors",
    "evaluate",
    "exact",
    "kernels",
    "leverage_scores",
    "load",
    "losses",
    "open_rows",
    "selection",
]
_HOMES = {
    **dict.fromkeys(
        ("ExactKernelRidge", "NystromClassifier", "NystromFeatures", "NystromRegressor", "NystromRidge"), "estimators"
    ),
    **dict.fromkeys(("effective_dimension", "leverage_scores", "load"), "functions"),
    "check": "checks",
    "open_rows": "rows",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        """Import a public name, or a module of the package, when it is first used: scikit-learn takes a second."""
        if not name.startswith("_"):
            module = f"{__name__}.{_HOMES.get(name, name)}"
            try:
                imported = import_module(module)
            except ModuleNotFoundError as error:
                if error.name != module:
                    raise
            else:
                globals()[name] = getattr(imported, name) if name in _HOMES else imported
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
