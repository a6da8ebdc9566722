"""What is promised of a fit, in words: its distance to exact, and intervals."""

from typing import Any, NamedTuple

import numpy as np

from ridgemark.certificates.record import rounded_up
from ridgemark.errors import ParameterError
from ridgemark.intervals import Calibration, rows_needed
from ridgemark.intervals.of_loss import loss_intervals
from ridgemark.losses import Loss
from ridgemark.report.fit_words import predicts, transform_of
from ridgemark.report.quality import COVERAGE, fitted_error

EXACT = {
    "numbers": "exact kernel ridge regression",
    "classes": "exact kernel logistic regression",
    "losses": "exact kernel regression by this loss",
}


class Nearness(NamedTuple):
    """How close to exact a fit is proved to be."""

    short: str
    subject: str  # of a sentence that goes on with the distance
    close: bool
    negligible: bool  # more landmarks would not change the predictions noticeably
    label: str  # of the bound
    bound: str


def distance_words(model: Any) -> str | None:
    """Return the distance to exact, as a share of the leave-one-out error too, or how to measure it."""
    certificate, errors = getattr(model, "certificate_", None), fitted_error(model)
    if certificate is None and not hasattr(model, "history_"):
        return None
    if certificate is not None and certificate.vacuous:
        remedy = "`ridgemark certify` measures it" if certificate.kind == "trace" else "more landmarks would help"
        return f"not known (the {certificate.kind} bound is not informative for this fit); {remedy}"
    bounds = model.history_[-1].returned if certificate is None else np.atleast_1d(certificate.bound)
    risk = None if certificate is None else certificate.inputs.get("failure_probability")
    probably = "" if risk is None else f" (with probability {1 - risk:g})"
    if (kind := predicts(model)) == "losses":
        percents = ", ".join(f"{rounded_up(100 * bound)}%" for bound in bounds)
        return f"loses at most {percents} of the gain over the best constant that {EXACT[kind]} achieves{probably}"
    beside = ""
    if errors is not None and min(errors) > 0:
        percent = 100 * float((bounds / errors).max())
        beside = f", {rounded_up(percent, 2)}% of the error" if percent >= 0.1 else ", below 0.1% of the error"
    of_what = "" if transform_of(model) is None else ", for the mapped target"
    return f"within RMS {', '.join(map(rounded_up, bounds))} of {EXACT[kind]}{beside}{probably}{of_what}"


def reached(model: Any) -> str:
    """Return the distance to exact of a fit of all rows, of the worst target."""
    return rounded_up(float(np.max(model.history_[-1].returned)))


def without_certificate(model: Any) -> str:
    """Return why a model has no certificate, and what gives one."""
    if getattr(model, "solver_", "") == "gradient":
        return "the gradient solver keeps no sums to compute one"
    return "`certify` with the rows of the fit computes one"


def interval_shortage(model: Any) -> str | None:
    """Return why there are no intervals of the coverage shown, such as too few distinct rows; or else None."""
    calibration = getattr(model, "calibration_", None)
    if predicts(model) == "losses":
        return None if calibration is None else _loss_shortage(model.loss_, calibration)
    if not isinstance(calibration, Calibration) or calibration.n_distinct >= rows_needed(COVERAGE):
        return None
    units = "distinct rows of features" if calibration.groups is None else "groups"
    return (
        f"left out, as coverage {COVERAGE:g} needs at least {rows_needed(COVERAGE)} {units}, and there are "
        f"{calibration.n_distinct}"
    )


def _loss_shortage(loss: Loss, judged: Any) -> str | None:
    try:
        loss_intervals(loss, judged.predictors[:1], judged.targets, judged.weights, judged.predictors, COVERAGE)
    except ParameterError as error:
        return f"not made: {error}"
    return None
