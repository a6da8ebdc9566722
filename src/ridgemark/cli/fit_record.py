"""Convert a fitted model to the record that its page is drawn from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark import __version__
from ridgemark.cli.estimate import spoken
from ridgemark.cli.measures import COVERAGE, CRITERIA, kernel_words, landmark_words, leave_one_out_error
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_page import FitRecord, PathCurves, Predictions, SortedScores, TargetErrors

_POINTS = 200  # points in a scatter plot
_TOP = 10


def fit_record(model: Any, run: RunRecord, title: str | None = None) -> FitRecord:
    """Return what a page shows of a fitted `NystromRidge` and its run; what they do not know is left out."""
    certificate = None if model.certificate_ is None else json.loads(model.certificate_.to_json())
    names = list(run.target_names or []) or [f"target {k}" for k in range(np.size(model.intercept_))]
    spread = [None] * len(names) if certificate is None else certificate["inputs"]["target_rms"]
    diagnosis = model.diagnose() if hasattr(model, "loo_residuals_") else None
    held_out, sample = run.held_out, run.sample
    calibration = getattr(model, "calibration_", None)
    return FitRecord(
        title=title or ("A fit from landmarks" if run.data is None else f"Fit of {run.data}"),
        facts=_facts(model, run, names),
        feature_names=[str(name) for name in model.feature_names_in_] if hasattr(model, "feature_names_in_") else None,
        n_rows=run.n_rows or (None if certificate is None else certificate["inputs"]["n_rows"]),
        n_landmarks=model.n_landmarks_,
        effective_dimension=tuple(model.effective_dimension_),
        errors=_errors(names, spread, leave_one_out_error(model), held_out),
        held_out_rows=None if held_out is None else held_out["n_rows"],
        certificate=certificate,
        path=_path(model, spread),
        scores=_scores(model, diagnosis),
        verdict=None if diagnosis is None or diagnosis.scores is None else diagnosis.verdict,
        influential=[] if diagnosis is None else diagnosis.to_record(_TOP)["top"],
        predictions=_predictions(held_out or sample),
        predicted_rows="held-out rows" if held_out else "training rows, each predicted from the others",
        interval_coverage=COVERAGE,
        interval_promise=None if calibration is None else _promise(calibration),
        costs=_costs(model, run),
    )


def _facts(model: Any, run: RunRecord, names: list[str]) -> list[tuple[str, str]]:
    path = getattr(model, "ridge_path_", None)
    lower, upper = model.effective_dimension_
    chosen = "given" if path is None else f"chosen among {len(path.ridges)} by {CRITERIA[path.criterion]}"
    ridges = ", ".join(f"{ridge:.4g}" for ridge in np.atleast_1d(model.ridge_))
    facts = [
        ("target", ", ".join(names)),
        ("kernel", kernel_words(model)),
        ("lambda", f"{ridges} ({chosen})"),
        ("landmarks", landmark_words(model)),
        ("effective dimension", f"{lower:.4g} to {upper:.4g}"),
        ("features", str(model.n_features_in_)),
        ("intercept", "yes" if model.fit_intercept else "no"),
        ("solver", model.solver_),
        ("seed", str(model.random_state)),
        ("ridgemark", __version__),
    ]
    if hasattr(model, "coherence_"):
        facts.insert(5, ("coherence", "{:.3g} to {:.3g}".format(*model.coherence_)))
    return facts if run.data is None else [("data", run.data), *facts]


def _errors(names: list[str], spread: Any, loo: Any, held_out: Mapping[str, Any] | None) -> list[TargetErrors]:
    return [
        TargetErrors(
            name,
            spread[k],
            None if loo is None else loo[k],
            None if held_out is None else held_out["rms"][k],
            None if held_out is None or held_out["coverage"] is None else held_out["coverage"][k],
        )
        for k, name in enumerate(names)
    ]


def _path(model: Any, spread: Any) -> PathCurves | None:
    path = getattr(model, "ridge_path_", None)
    if path is None or len(path.ridges) < 2:
        return None
    variance = np.array([s**2 if s else 1.0 for s in spread])

    def relative(errors: NDArray[np.float64]) -> list[float]:
        return [float(value) for value in np.sqrt((errors / variance).mean(axis=1))]

    return PathCurves(
        path.ridges.tolist(),
        CRITERIA[path.criterion],
        relative(path.gcv if path.loo_error is None else path.loo_error),
        relative(path.training_error),
        path.chosen.tolist(),
    )


def _scores(model: Any, diagnosis: Any) -> SortedScores | None:
    """Return the scores by which landmarks were drawn, or the leverage if they were not drawn by scores."""
    scores = getattr(model, "leverage_scores_", None)
    if scores is None and diagnosis is None:
        return None
    what, values = (
        ("leverage", diagnosis.leverage) if scores is None else ("upper bound of the leverage score", scores.upper)
    )
    order = np.argsort(-values, kind="stable")
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.arange(len(values))
    shown = np.unique(np.geomspace(1, len(values), _POINTS).round().astype(np.intp)) - 1
    shown = shown[values[order[shown]] > 0]  # a logarithmic axis needs positive values
    indices = model.landmark_indices_
    landmarks = np.array([], dtype=np.intp) if indices is None else np.sort(place[np.asarray(indices, dtype=np.intp)])
    landmarks = landmarks[values[order[landmarks]] > 0]
    if len(landmarks) > _POINTS:
        landmarks = landmarks[np.linspace(0, len(landmarks) - 1, _POINTS).astype(np.intp)]
    if not len(shown):
        return None
    return SortedScores(
        what,
        len(values),
        (shown + 1).tolist(),
        values[order[shown]].tolist(),
        (landmarks + 1).tolist(),
        values[order[landmarks]].tolist(),
    )


def _predictions(rows: Mapping[str, Any] | None) -> list[Predictions]:
    if rows is None:
        return []
    none = [None] * len(rows["observed"])
    columns = (rows["observed"], rows["predicted"], rows.get("lower", none), rows.get("upper", none))
    return [Predictions(*of_target) for of_target in zip(*columns, strict=True)]


def _promise(calibration: Any) -> str:
    if calibration.guaranteed:
        return f"coverage of at least {2 * COVERAGE - 1:.0%} is proved, since {calibration.reason}."
    return f"coverage near {COVERAGE:.0%} in practice, without a proof, since {calibration.reason}."


def _costs(model: Any, run: RunRecord) -> list[tuple[str, str]]:
    costs = [
        ("passes over the rows", str(model.n_passes_)),
        ("kernel entries", f"{model.n_kernel_evaluations_:,}"),
    ]
    if run.waiting_share is not None:
        costs.insert(1, ("of their time, waiting for rows", f"{run.waiting_share:.0%}"))
    if run.peak_bytes:
        costs.insert(0, ("memory, at most", f"{run.peak_bytes / 2**20:,.0f} MiB (the whole process)"))
    if run.seconds:
        costs.insert(0, ("time", spoken(run.seconds)))
    return costs
