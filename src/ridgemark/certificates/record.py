"""The record of a certificate: its claim in words, its numbers, JSON and HTML."""

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np

from ridgemark import bounds
from ridgemark.backends import Floats
from ridgemark.certificates.rounding import primal_value
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.rows.places import as_written
from ridgemark.solvers import LandmarkFit

Kind = Literal["audit", "operator", "trace"]
Certainty = Literal["deterministic", "probability", "estimate"]

_VACUOUS = 0.5  # a bound above this share of what the training error alone implies is not informative
BEYOND_RANGE = "the distance to exact exceeds the floating-point range; rescale the targets or choose a larger ridge"
LARGEST_FACTOR = 10.0  # a larger risk factor is not informative, and left out of the claim


class _Inputs(TypedDict):
    """The inputs of a certificate that other code uses."""

    n_rows: Annotated[int, "> 0"]
    n_landmarks: Annotated[int, "> 0"]
    fit: Annotated[list[float], "any"]
    scaled_ridge: Annotated[list[float], "(t)", "> 0", "any"]
    effective_dimension: Annotated[list[float], "any"]
    target_rms: Annotated[list[float], "(t)", ">= 0", "any"]
    unmeasured: Annotated[list[float], "(t)", ">= 0", "any"]
    theorem_3: str | None
    duality_gap: NotRequired[Annotated[list[float], "(t)", "any"]]


class _Cost(TypedDict):
    """The part of the cost that other code uses."""

    kernel_entries: float


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far a fit is from exact kernel ridge regression on its own rows, with the certainty of the bound.

    Attributes
    ----------
    kind : {"audit", "operator", "trace"}
        How the bound was found.
    claim : str
        One sentence.
    bound : float or array of shape (n_targets,)
        Bound on the root mean square distance of the fitted values, over the weighted rows and in units of y.
    certainty : {"deterministic", "probability", "estimate"}
        Whether the claim holds always, or with probability 1 - `inputs["failure_probability"]`.
    risk_factor : float or None
        The in-sample risk is at most this times that of the exact solution, for every signal and for a ridge chosen
        without looking at y. None for an audit, which holds for this y only.
    inputs : mapping
        The numbers behind the claim; a list has one number for each target. `theorem_3` is a sentence, or None where
        the theorem gives no guarantee for any number of draws up to n.
    cost : mapping
        `kernel_entries` evaluated and `seconds` taken; of a loaded model without the seconds.
    """

    kind: Kind
    claim: str
    bound: Annotated[float, ">= 0", "any"] | Annotated[Floats, "(t)", ">= 0", "any"]
    certainty: Certainty
    risk_factor: Annotated[float | None, "any"]
    inputs: Annotated[Mapping[str, Any], _Inputs, "any"]
    cost: Annotated[Mapping[str, float], _Cost]

    @property
    def vacuous(self) -> bool:
        """Whether the bound exceeds half of `inputs["unmeasured"]`, the bound that the training error alone implies."""
        return _is_vacuous(np.atleast_1d(self.bound), np.asarray(self.inputs["unmeasured"]))

    def __str__(self) -> str:
        promise = self.inputs["theorem_3"]
        before = "" if promise is None else f"\nBefore any measurement: {promise}"
        return f"{self.claim}\n({self.kind}: {spent(self.cost)}){before}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, as `json` takes them."""
        bound = self.bound if isinstance(self.bound, float) else self.bound.tolist()
        nested = {"vacuous": self.vacuous, "inputs": dict(self.inputs), "cost": dict(self.cost)}
        return {**vars(self), "bound": bound, **nested}

    def to_json(self) -> str:
        """Return the record as JSON; infinities and NaN, which JSON does not have, become null."""
        finite = json.loads(json.dumps(self.as_dict()), parse_constant=lambda _: None)
        return json.dumps(finite)

    def to_html(self) -> str:
        """Return the record as one row of an HTML table: kind, claim, bound, certainty, risk factor, cost."""
        factor = "" if self.risk_factor is None else f"{self.risk_factor:.3g}"
        cells = (self.kind, self.claim, _numbers(self.bound), self.certainty, factor, spent(self.cost))
        return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"

    def meets(self, risk_tolerance: float, loo_rms: float | Floats | None = None) -> bool:
        """Return whether the fit is proved to be within `risk_tolerance`, the paper's epsilon, of exact.

        Trace and operator: the risk factor is at most `(1 + 2 epsilon)^2`, as Theorem 3 has it. Audit: the bound is at
        most epsilon times `loo_rms`, the root mean square of the leave-one-out residuals, of every target.
        """
        if not 0 < risk_tolerance < math.inf:
            raise ParameterError(f"risk_tolerance must be positive and finite, got {risk_tolerance!r}")
        if self.risk_factor is not None:
            return self.risk_factor <= bounds.theorem_3_risk_factor(risk_tolerance)
        if loo_rms is None:
            raise ParameterError(
                "an audit is compared with the leave-one-out residuals; give their root mean square as loo_rms"
            )
        return bool((np.atleast_1d(self.bound) <= risk_tolerance * np.asarray(loo_rms)).all())


def issue(
    kind: Kind,
    fit: LandmarkFit,
    bound: Floats,
    cost: Mapping[str, float],
    inputs: Mapping[str, Any],
    risk_factor: float | None = None,
) -> Certificate:
    """Return the certificate with its claim put into words, true with a probability where the inputs have one."""
    if not np.isfinite(bound).all():
        raise NumericalError(BEYOND_RANGE)
    claim, own = _claim(bound, inputs.get("failure_probability"), risk_factor), np.sqrt(fit.centred.target_variance)
    implied = np.sqrt(primal_value(fit)), "the training error"
    facts = {"target_rms": own.tolist(), **inputs}
    return stated(kind, fit, bound, claim, implied, facts, cost, risk_factor)


def stated(
    kind: Kind,
    fit: LandmarkFit,
    bound: Floats,
    claim: str,
    implied: tuple[Floats, str],
    inputs: Mapping[str, Any],
    cost: Mapping[str, float],
    risk_factor: float | None = None,
) -> Certificate:
    """Return the certificate of a claim; `implied` is the bound without any measurement, and what implies it."""
    (unmeasured, by), failure_probability = implied, inputs.get("failure_probability")
    recorded = {
        "n_rows": fit.moments.n_rows,
        "n_landmarks": fit.factor.cross_kernel.n_landmarks,
        "fit": fingerprint(fit),
        "scaled_ridge": fit.scaled_ridge.tolist(),
        "effective_dimension": list(fit.effective_dimension),
        "unmeasured": unmeasured.tolist(),
        "theorem_3": theorem_3_promise(fit, failure_probability or 0.05),
        **inputs,
    }
    if _is_vacuous(bound, unmeasured):
        already = f"{by} alone already implies {_numbers(unmeasured)}"
        claim += f" This bound is not informative: {already}. {what_would_help(fit, kind)}"
    certainty: Certainty = "deterministic" if failure_probability is None else "probability"
    value = float(bound[0]) if len(bound) == 1 else bound
    return Certificate(kind, claim, value, certainty, risk_factor, recorded, cost)


def fingerprint(fit: LandmarkFit) -> list[float]:
    """Return a few numbers that identify the fit of a certificate."""
    return [*fit.scaled_ridge.tolist(), *np.abs(fit.dual_coef).sum(axis=0).tolist(), *fit.intercept.tolist()]


def spent(cost: Mapping[str, float]) -> str:
    """Return a cost in words; without seconds where the time is not recorded."""
    entries = f"{as_written(cost['kernel_entries'], 3)} kernel entries"
    return f"{entries}, {cost['seconds']:.2g} s" if "seconds" in cost else entries


def check_failure_probability(value: float) -> None:
    """Raise an error unless the value lies between 0 and 0.5, both excluded, as Theorem 3 has it."""
    if not 0 < value < 0.5:
        raise ParameterError(f"failure_probability must lie between 0 and 0.5, got {value!r}")


def what_would_help(fit: LandmarkFit, kind: Kind = "audit") -> str:
    """Return advice after a bound of this kind that is not informative: another kind, more landmarks, refinement.

    Two landmarks for every effective dimension, taken as the geometric mean of its bracket; at least twice the present
    number.
    """
    have = fit.factor.cross_kernel.n_landmarks
    lower, upper = fit.effective_dimension
    wanted = math.ceil(2.0 * math.sqrt(max(lower, 1.0) * max(upper, 1.0)))
    wanted = min(max(wanted, 2 * have), fit.moments.n_rows)
    advice = [] if kind == "audit" else ["an audit, which measures the distance for these targets"]
    advice += [f"about {wanted} landmarks in place of {have}"] if wanted > have else []
    return (
        f"What would help: {', '.join([*advice, 'or refinement to the exact solution' if advice else 'refinement'])}."
    )


def theorem_3_promise(fit: LandmarkFit, failure_probability: float = 0.05) -> str | None:
    """Return what Theorem 3 guarantees, before any measurement, for as many draws as there are landmarks.

    None where it gives no guarantee for this or any number of draws up to n.

    With `d_eff(lambda epsilon) <= d_eff(lambda)/epsilon` its count `8 (d_eff(lambda epsilon) + 1/6) log(n/rho)` is met
    by `epsilon = d_eff(lambda)/(p/(8 log(n/rho)) - 1/6)`; d_eff is its upper bound, and the paper's condition on
    lambda, which is not needed, is left out.
    """
    p, n = fit.factor.cross_kernel.n_landmarks, fit.moments.n_rows
    upper = fit.effective_dimension.upper
    if not upper > 0:
        return "Theorem 3 does not apply: the kernel is constant on these rows, d_eff is 0."
    epsilon = bounds.theorem_3_epsilon(n, p, upper, failure_probability)
    head = f"Theorem 3, for {p} draws by exact leverage scores and d_eff at most {upper:.4g}"
    if epsilon > 1.0:
        needed = bounds.theorem_3_count(n, upper / 0.1, failure_probability)
        if needed > n:
            return None
        return f"{head}: no promise (a risk within 1.44 times the exact one would take {needed:,} draws)."
    return (
        f"{head}: in-sample risk within {bounds.theorem_3_risk_factor(epsilon):.3g} times that of exact kernel ridge "
        f"regression with probability {1 - failure_probability:g}, for a lambda chosen without looking at y."
    )


def _is_vacuous(bound: Floats, unmeasured: Floats) -> bool:
    # Where the residual is zero, as for a constant target, the bound is rounding error and the fit is exact.
    return bool(((bound > _VACUOUS * unmeasured) & (unmeasured > 0)).any())


def in_words(said: str, failure_probability: float | None) -> str:
    """Return what is claimed as a sentence, with its probability where it is not certain."""
    said = said if failure_probability is None else f"with probability {1 - failure_probability:g} {said}"
    return f"{said[0].upper()}{said[1:]}."


def _claim(bound: Floats, failure_probability: float | None, risk_factor: float | None) -> str:
    each = "" if len(bound) == 1 else ", one for each target"
    said = (
        f"fitted values are within {_numbers(bound)} (RMS, in units of y{each}) of exact kernel ridge "
        "regression on these rows"
    )
    if risk_factor is not None and risk_factor <= LARGEST_FACTOR:
        said += (
            f", and the in-sample risk is at most {rounded_up(risk_factor, 4)} times the exact one for a lambda "
            "chosen without looking at y"
        )
    return in_words(said, failure_probability)


def _numbers(values: float | Floats) -> str:
    return ", ".join(rounded_up(float(value)) for value in np.atleast_1d(values))


def rounded_up(value: float, digits: int = 3) -> str:
    """Return the value rounded up to some digits, so that a printed bound still holds."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    value = max(value, float(np.finfo(np.float64).tiny))  # below it the unit would be zero
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return as_written(math.ceil(value / unit * (1 - 1e-12)) * unit, digits)
