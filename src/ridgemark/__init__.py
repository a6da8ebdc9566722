"""Kernel ridge regression from a few well-chosen landmarks, with its distance from exact."""

from ridgemark import bounds, certificates, errors, exact, kernels, selection
from ridgemark.estimators import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRidge
from ridgemark.functions import effective_dimension, leverage_scores, load
from ridgemark.rows import open_rows

__version__ = "0.1.0.dev0"

__all__ = [
    "ExactKernelRidge",
    "NystromClassifier",
    "NystromFeatures",
    "NystromRidge",
    "__version__",
    "bounds",
    "certificates",
    "effective_dimension",
    "errors",
    "exact",
    "kernels",
    "leverage_scores",
    "load",
    "open_rows",
    "selection",
]
