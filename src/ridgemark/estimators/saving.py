"""Fitted models to files and back, through `ridgemark.persistence`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgemark import kernels, selection
from ridgemark.certificates import Certificate
from ridgemark.errors import ModelFileError
from ridgemark.fitting import Tolerance
from ridgemark.intervals import Calibration
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.moments import Moments
from ridgemark.nystrom import NystromFactor
from ridgemark.persistence import load_state, save_state
from ridgemark.selection import LandmarkCount, Selection
from ridgemark.solvers import LandmarkFit, RefinementStep
from ridgemark.tuning import KeptRows, LeaveOneOut, RidgePath

# The only classes a file can ask for.
TYPES = [
    *(
        one
        for module, base in ((kernels, Kernel), (selection, Selection))
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, base) and one is not base
    ),
    *(
        Bracket,
        Calibration,
        Certificate,
        KeptRows,
        LandmarkCount,
        LeaveOneOut,
        Moments,
        RefinementStep,
        RidgePath,
        ScoreBracket,
        Tolerance,
    ),
]


_NOT_SAVED = {"waiting_share_"}  # measured: two fits of the same bits are two files of the same bits


def save_model(model: Any, path: Any, overwrite: bool) -> Path:
    """Write a fitted estimator to one file, whole or not at all."""
    check_is_fitted(model, "dual_coef_")
    parameters = model.get_params(deep=False)
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None  # a generator goes on; a file cannot
    if callable(parameters.get("progress")):
        parameters["progress"] = True
    kept = (item for item in vars(model).items() if item[0] not in parameters.keys() | _NOT_SAVED)
    fitted = {name: _to_tree(value) for name, value in kept}
    state = {"estimator": type(model).__name__, "parameters": parameters, "fitted": fitted}
    return save_state(path, state, TYPES, overwrite)


def load_model(path: Any, estimators: Sequence[type], kernel: Any = None) -> Any:
    """Return the model saved at a path, one of the `estimators`; `kernel` where that is the user's own code."""
    state = load_state(path, TYPES, kernel)
    known = {one.__name__: one for one in estimators}
    try:
        model = known[state["estimator"]](**state["parameters"])
        fitted = state["fitted"]
        for name, value in fitted.items():
            setattr(model, name, _from_tree(value, fitted))
    except (KeyError, TypeError, AttributeError) as error:
        msg = f"{path} is a model file, but holds no model that this version knows; save the model again"
        raise ModelFileError(msg) from error
    return model


def _to_tree(value: Any) -> Any:
    """Return what a file holds of a fitted attribute."""
    if isinstance(value, CrossKernel):
        return {"cross kernel": True}  # of the landmarks, and made again
    if not isinstance(value, LandmarkFit):
        return value
    factor = value.factor
    return {
        "landmark fit": [factor.landmark_kernel, factor.kept, factor.triangle],
        "rest": [value.moments, value.fit_intercept, value.scaled_ridge, value.target_origin, value.weight_unit],
    }


def _from_tree(value: Any, fitted: dict[str, Any]) -> Any:
    if not (isinstance(value, dict) and ("landmark fit" in value or "cross kernel" in value)):
        return value
    kernel, landmarks, indices = (fitted[name] for name in ("kernel_", "landmarks_", "landmark_indices_"))
    cross_kernel = kernel.against(landmarks, indices)
    if "cross kernel" in value:
        return cross_kernel
    landmark_kernel, kept, triangle = value["landmark fit"]
    kept_kernel = kernel.against(landmarks[kept], None if indices is None else indices[kept])
    return LandmarkFit(NystromFactor(cross_kernel, landmark_kernel, kept, triangle, kept_kernel), *value["rest"])
