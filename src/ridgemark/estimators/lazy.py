"""Methods of rows that stay lazy on Dask collections."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from sklearn.utils.validation import check_is_fitted

from ridgemark.estimators.computing import computing
from ridgemark.fitted import FittedModel
from ridgemark.rows import computed, is_dask, open_rows
from ridgemark.rows.dask_lazy import lazy_rows

P = ParamSpec("P")
Result = TypeVar("Result")
_PLAIN = {"predict", "predict_proba", "predict_log_proba", "decision_function"}  # need coefficients only


def lazy_on_dask(method: Callable[P, Result]) -> Callable[P, Result]:
    """Return the method, which for a Dask collection gives Dask arrays: each partition is computed when it is needed.

    The model at the time of the call is used, whatever becomes of the estimator.
    """
    compute: Callable[..., Any] = computing(method)

    @wraps(method)
    def wrapped(self: Any, *arguments: Any, **options: Any) -> Any:
        X, *more = arguments or (options.get("X"),)
        if not is_dask(X):
            return compute(self, *arguments, **options)
        check_is_fitted(self)
        options.pop("X", None)
        name = method.__name__
        return lazy_rows(partial(_call, _light(self, name, more or options), name, more, options), X)

    return cast(Callable[P, Result], wrapped)


def at_once(rows, *values):
    """Return rows whose predictions are computed when they are asked for, and values without Dask."""
    return open_rows(rows) if is_dask(rows) else rows, *(computed([one])[0] if is_dask(one) else one for one in values)


def _light(estimator, name, asked):
    """Return a copy of the estimator without what the method does not need: it is sent to every worker."""
    light = copy.copy(estimator)
    model = light._model
    if isinstance(model, FittedModel):
        model = replace(model, left_out=None, choice=replace(model.choice, scores=None))
        model = replace(model, sums=None if name in _PLAIN and not asked else estimator._model.expanded)
        known = estimator._model.calibrated if name == "predict_interval" else None
        light._model = replace(model, calibration=known, drawn=None)
    return light


def _call(model, name, arguments, options, rows):
    return getattr(model, name)(rows, *arguments, **options)
