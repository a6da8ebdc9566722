"""Statements of the paper, our measurements, and whether they agree."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ridgemark.paper.comparison import DIVIDE, LEVERAGE, UNIFORM
from ridgemark.paper.reproduction import Reproduction
from ridgemark.paper.table_1 import Row
from ridgemark.paper.theorem_3 import TOLERABLE

Same = Literal["yes", "no", "in part", "open", "not run"]

_GROUPS = ("Bern Synth", "Linear Gas", "Linear Pum", "RBF Gas", "RBF Pum")
_LARGER = 1.05  # ratio of errors above which a difference is mentioned


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and its measurement."""

    place: str
    paper: str
    measured: str
    same: Same


def claims(run: Reproduction) -> tuple[Claim, ...]:
    """Return all statements checked by this run."""
    rows = [row for row in run.table_1 if row.printed.in_paper]
    groups = {name: [row for row in rows if row.printed.name.startswith(name)] for name in _GROUPS}
    return (
        *(_dimension(name, members) for name, members in groups.items()),
        _max_degrees_of_freedom(rows),
        *(_risk_ratio(name, members) for name, members in groups.items()),
        _much_smaller(rows),
        _cross_validation(run),
        _high_leverage(run),
        _curves(run),
        _approximate(run),
        _introduction(run),
        _theorem_3(run),
        _theorem_4(run),
        _open_question(run),
    )


def _dimension(name: str, rows: list[Row]) -> Claim:
    place, printed = f"Table 1, d_eff, {name}", _listed(row.printed.effective_dimension for row in rows)
    pairs = [(row.printed.effective_dimension, row.effective_dimension) for row in rows]
    available = [(said, got) for said, got in pairs if got is not None]
    if not available:
        return Claim(place, printed, "data missing", "not run")
    if name == "Bern Synth":  # its points are random: the standard deviation of d_eff over draws is 0.7
        agreeing = sum(abs(said - got) <= 3 * 0.7 for said, got in available)
    else:
        agreeing = sum(_prints_as(got, said) for said, got in available)
    measured = _listed(f"{got:.1f}" for _, got in available) + _stand_in(rows)
    return Claim(place, printed, measured, _judge(agreeing, len(available)))


def _max_degrees_of_freedom(rows: list[Row]) -> Claim:
    place, printed = "Table 1, d_mof", _listed(row.printed.max_degrees_of_freedom for row in rows)
    available = [row for row in rows if row.max_degrees_of_freedom_operator is not None]
    operator = _listed(f"{row.max_degrees_of_freedom_operator:.1f}" for row in available)
    definition = _listed(f"{row.max_degrees_of_freedom:.1f}" for row in available)
    agreeing = sum(
        _prints_as(row.max_degrees_of_freedom_operator or 0.0, row.printed.max_degrees_of_freedom) for row in available
    )
    measured = f"as n |K (K + n lambda epsilon)^-1|_op: {operator}. By the paper's definition, n max l_i: {definition}"
    return Claim(place, printed, measured, "in part" if agreeing else "no")


def _risk_ratio(name: str, rows: list[Row]) -> Claim:
    place = f"Table 1, risk ratio, {name}"
    printed = _listed(f"{row.printed.risk_ratio:.2f}" for row in rows)
    available = [row for row in rows if row.ratios]
    if not available:
        return Claim(place, printed, "data missing", "not run")
    ranges = []
    agreeing = 0
    # Ratios vary in their second decimal with signal and draw, except where L = K.
    allowed = 0.005 if name.startswith("Linear") else 0.015
    for row in available:
        low, high = (f(ratio.mean for ratio in row.ratios) for f in (min, max))
        said = row.printed.risk_ratio
        agreeing += low - allowed <= said <= high + allowed
        ranges.append(f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}")
    measured = f"{_listed(ranges)}, by protocol{_stand_in(rows)}"
    if name.startswith("Linear"):
        measured += "; the drawn columns span all of K, so L = K and the ratio is 1 for any signal and noise"
    elif name == "RBF Gas" and agreeing:
        measured += "; the printed values are possible for some signal and noise, which the paper does not state"
    same: Same = _judge(agreeing, len(available))
    return Claim(place, printed, measured, "in part" if name == "RBF Gas" and same == "yes" else same)


def _much_smaller(rows: list[Row]) -> Claim:
    available = [row for row in rows if row.effective_dimension and row.max_degrees_of_freedom]
    ratios = [(row.max_degrees_of_freedom or 0.0) / (row.effective_dimension or 1.0) for row in available]
    often = sum(ratio > 2 for ratio in ratios)
    spread = " to ".join(dict.fromkeys((f"{min(ratios):.1f}", f"{max(ratios):.1f}")))
    measured = f"by the definition d_mof/d_eff is {spread}, above 2 in {often} of {len(available)} rows"
    same: Same = "yes" if 2 * often > len(available) else "in part" if often else "no"
    return Claim("Experiments", "it is often the case that d_eff << d_mof", measured, same)


def _cross_validation(run: Reproduction) -> Claim:
    near = sum(abs(c.ridge / c.printed_ridge - 1) < 4 and c.bandwidth == c.printed_bandwidth for c in run.choices)
    worse = max(c.printed_error / c.error for c in run.choices)
    measured = (
        f"leave-one-out chooses lambda within a factor of 5 and the same bandwidth on {near} of {len(run.choices)} "
        "sets and kernels"
    )
    if worse > _LARGER:
        measured += f"; the printed choice has an error up to {worse:.3g} times as large"
    same: Same = "yes" if near == len(run.choices) else "in part" if near else "no"
    return Claim("Experiments", "lambda and bandwidth are determined by cross validation", measured, same)


def _high_leverage(run: Reproduction) -> Claim:
    scores = run.figure_1.scores
    middle = abs(scores.points - 0.5) < 0.3
    share = float(scores.scores[middle].sum()) / scores.effective_dimension
    measured = f"the {middle.sum()} of {len(middle)} points with 0.2 < x < 0.8 carry {share:.0%} of d_eff"
    return Claim(
        "Figure 1, left",
        "few points have high leverage: those in the region that is rare in the data",
        measured,
        "yes" if share > 3 * float(middle.mean()) else "no",
    )


def _curves(run: Reproduction) -> Claim:
    figure = run.figure_1
    leverage, uniform = figure.curve("exact leverage"), figure.curve("uniform")
    small = [k for k, p in enumerate(leverage.columns) if p <= 2 * figure.scores.effective_dimension]
    below = all(leverage.mean[k] < uniform.mean[k] for k in small)
    ratios = [(curve.mean[0] / figure.exact_risk) for curve in (leverage, uniform)]
    measured = (
        f"at p = {leverage.columns[0]}: {ratios[0]:.2f} times the exact risk by leverage, {ratios[1]:.2f} uniform; "
        f"leverage is {'below' if below else 'not below'} uniform at every p up to 2 d_eff"
    )
    return Claim(
        "Figure 1, right", "sampling by leverage needs fewer columns than uniform sampling", measured, _yes(below)
    )


def _approximate(run: Reproduction) -> Claim:
    gap = run.figure_1.approximation_gap
    return Claim(
        "Section 3.5",
        "approximate scores work as well as exact ones",
        f"risk within {gap:.1%} of the exact-leverage curve at every p (pilot of {run.figure_1.pilot} rows, drawn by "
        "the upper bounds of the scores)",
        _yes(gap <= 0.05),
    )


def _introduction(run: Reproduction) -> Claim:
    needed = {method: run.comparison.evaluations_needed(method) for method in (LEVERAGE, UNIFORM, DIVIDE)}
    words = _listed(f"{method} {'never' if n is None else format(n, ',.0f')}" for method, n in needed.items())
    ours = needed[LEVERAGE]
    best = ours is not None and all(other is None or ours < other for other in needed.values() if other != ours)
    return Claim(
        "Introduction",
        "O(n d_eff) kernel evaluations by leverage, against O(n d_eff^2) by divide and conquer and O(n d_mof) uniform",
        f"evaluations to reach risk ratio {TOLERABLE}, including the pilot of the scores: {words}",
        _yes(best),
    )


def _theorem_3(run: Reproduction) -> Claim:
    speaks = sum(count.promised < count.n_rows for count in run.theorem_3)
    met = sum(count.ridge >= count.condition_on_lambda for count in run.theorem_3)
    enough = sum(count.needed <= count.used for count in run.theorem_3)
    total = len(run.theorem_3)
    return Claim(
        "Theorem 3",
        "8 (d_eff/beta + 1/6) log(n/rho) columns are enough if lambda is not too small; Table 1 uses d_eff or 2 d_eff",
        f"the count is below n in {speaks} of {total} rows and lambda meets the condition in {met}; the columns used "
        f"were enough for risk ratio {TOLERABLE} in {enough} of {total}",
        _judge(enough, total),
    )


def _theorem_4(run: Reproduction) -> Claim:
    speaking = sum(e.bound is not None for t in run.theorem_4 for e in t.errors)
    holds = all(t.holds for t in run.theorem_4)
    return Claim(
        "Theorem 4",
        "l_i - 2 epsilon <= l~_i <= l_i with probability 1 - rho",
        f"never above l_i; below by much less than the bound wherever it applies (pilots: {speaking})",
        _yes(holds),
    )


def _open_question(run: Reproduction) -> Claim:
    fewer = sum(point.leverage < point.effective_dimension for point in run.open_question)
    total = len(run.open_question)
    more = sum(point.leverage > point.sharp_effective_dimension for point in run.open_question)
    return Claim(
        "Conclusion",
        "open: is d_eff also a lower bound on p?",
        f"risk ratio {TOLERABLE} needed fewer than d_eff(lambda) columns in {fewer} of {total} cases, and more than "
        f"d_eff(lambda epsilon) in {more}",
        "open",
    )


def _prints_as(value: float, whole: int) -> bool:
    """Whether the table's whole number is this value, rounded (like most of its numbers) or truncated."""
    shown = round(value, 1)
    return whole in (round(shown), math.floor(shown))


def _stand_in(rows: list[Row]) -> str:
    """Name the sets whose inputs replace missing ones."""
    taken = {row.source: row for row in rows if row.source is not None and row.source == row.printed.stand_in}
    return "".join(f" (on the inputs of {source}, of the same distribution)" for source in taken)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)


def _yes(holds: bool) -> Same:
    return "yes" if holds else "no"


def _judge(agreeing: int, total: int) -> Same:
    return "yes" if agreeing == total else "in part" if agreeing else "no"
