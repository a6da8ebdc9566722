"""The page's sections with figures: Figure 1, the comparison, the theorems, L_gamma."""

import numpy as np

from ridgemark.paper.comparison import DIVIDE, LEVERAGE, UNIFORM
from ridgemark.paper.figure_1 import Figure1
from ridgemark.paper.reproduction import Reproduction
from ridgemark.paper.synthetic import SyntheticScores
from ridgemark.paper.theorem_3 import TOLERABLE
from ridgemark.report import page as html
from ridgemark.report.page import Column, Html
from ridgemark.report.plots import Chart, Series, draw


def figure_1_section(run: Reproduction) -> list[Html]:
    """Return Figure 1."""
    figure = run.figure_1
    return [
        html.side_by_side([_scores_figure(figure.scores), _risk_figure(figure)]),
        html.paragraph(
            "The signal is k(x, 1/2)/k(1/2, 1/2), the noise variance 0.005 (ours). Approximate scores come from a "
            f"pilot of {figure.pilot} rows drawn by K_ii (section 3.5): eq. (9) draws by the paper's scores, which are "
            "lowest where the pilot has no rows; approximate leverage draws by their upper bounds from the same "
            f"pilot, as ridgemark does. Rank-k leverage uses the {figure.rank} leading eigenvectors. The kernel's "
            "diagonal is constant here, so diagonal and uniform sampling are the same. The "
            f"approximate-leverage curve lies within {figure.approximation_gap:.1%} of the exact-leverage curve."
        ),
    ]


def _scores_figure(scores: SyntheticScores) -> Html:
    chart = Chart(
        "x",
        "leverage score",
        [Series("l_i(lambda epsilon)", scores.points.tolist(), scores.scores.tolist(), kind="points")],
    )
    return html.figure(
        draw(chart, "scores"),
        f"Scores of the {len(scores.points)} points of the synthetic design against x: low where points are dense at "
        f"both ends of the interval, up to {scores.scores.max():.2f} in the middle where points are rare.",
        f"Left: the scores at lambda epsilon. d_eff = {scores.effective_dimension:.1f}, d_mof = "
        f"{scores.max_degrees_of_freedom:.1f}.",
    )


def _risk_figure(figure: Figure1) -> Html:
    # The curves of diagonal and uniform coincide: dashes over a line show both, and one band is enough.
    series = [
        Series(c.method, c.columns, c.mean, kind="dashed")
        if c.method == "diagonal"
        else Series(c.method, c.columns, c.mean, c.low, c.high)
        for c in figure.curves
    ]
    levels = [("exact risk", figure.exact_risk)]
    chart = Chart("columns drawn, p", "risk", series, levels=levels, log_x=True, log_y=True)
    columns = figure.curves[0].columns
    first = ", ".join(f"{c.method} {c.mean[0] / figure.exact_risk:.2f}" for c in figure.curves)
    return html.figure(
        draw(chart, "risk"),
        f"Risk against the number of columns from {columns[0]} to {columns[-1]} for seven sampling methods, on "
        f"logarithmic axes. In units of the exact risk the curves begin at: {first}. All fall to the exact risk, "
        "uniform and diagonal last.",
        f"Right: mean risk over {figure.repeats} repeats, bands from the 10% to the 90% quantile.",
    )


def comparison_section(run: Reproduction) -> list[Html]:
    """Return the introduction's comparison."""
    comparison = run.comparison
    series = []
    for method in (LEVERAGE, UNIFORM, DIVIDE):
        points = sorted((p for p in comparison.points if p.method == method), key=lambda p: p.kernel_evaluations)
        ratios = np.array([[p.risk, p.lowest, p.highest] for p in points]) / comparison.exact_risk
        series.append(
            Series(method, [p.kernel_evaluations for p in points], *(ratios[:, k].tolist() for k in range(3)))
        )
    chart = Chart(
        "kernel evaluations",
        "risk ratio to exact",
        series,
        levels=[("as good as exact", 1.0)],
        log_x=True,
        log_y=True,
    )
    rows = [
        [method, f"{comparison.orders[method]:,.0f}", _count(comparison.evaluations_needed(method))]
        for method in (LEVERAGE, UNIFORM, DIVIDE)
    ]
    columns = [
        Column("method"),
        Column("the introduction's order", numeric=True),
        Column(f"measured for ratio {TOLERABLE}", numeric=True),
    ]
    words = "; ".join(f"{row[0]} {row[2]}" for row in rows)
    return [
        html.paragraph(
            f"The synthetic design with {comparison.n_rows} points at lambda = 1e-6: d_eff(lambda) = "
            f"{comparison.effective_dimension:.1f}, d_mof(lambda) = {comparison.max_degrees_of_freedom:.1f}. Leverage "
            "Nystrom counts the columns of the pilot and as many columns of the draw; divide and conquer averages "
            "fits on m random parts with the same lambda and counts n^2/m. Exact kernel ridge regression takes "
            f"{comparison.n_rows**2:,} evaluations. The order of uniform sampling is a worst case over signals."
        ),
        html.figure(
            draw(chart, "comparison"),
            f"Risk over exact risk against kernel evaluations, logarithmic axes. Evaluations to reach {TOLERABLE}: "
            f"{words}.",
            f"Means over {run.settings.repeats} repeats; bands from the smallest to the largest.",
        ),
        html.table("Kernel evaluations", columns, rows),
    ]


def theorem_3_section(run: Reproduction) -> list[Html]:
    """Return the section on Theorem 3 and the open question."""
    columns = [
        Column("row"),
        *html.number_columns(
            "n", "promised", "promised uniform", "used", "needed", "distinct columns", "lambda", "lambda required"
        ),
    ]
    rows = [
        [
            c.row,
            str(c.n_rows),
            f"{c.promised:,}",
            f"{c.promised_uniform:,}",
            str(c.used),
            f"{c.needed:g}",
            f"{c.needed_columns:g}",
            f"{c.ridge:g}",
            f"{c.condition_on_lambda:.2g}",
        ]
        for c in run.theorem_3
    ]
    return [
        html.paragraph(
            "Draws for which Theorem 3 guarantees the risk with epsilon = 0.01 and rho = 0.05 and exact scores (beta "
            "= 1), and for uniform draws; the paper's p; and the fewest draws by the scores with risk ratio at most "
            f"{TOLERABLE} for the protocol prior, the median over repeats. The last column is the smallest lambda "
            "that the printed theorem allows; the same bound on the risk holds without that condition "
            "(docs/theory.md). Where lambda is so large that the exact fit is near zero, one column is enough."
        ),
        html.table("Theorem 3: columns promised, used, needed", columns, rows),
        html.heading("Is d_eff also a lower bound?"),
        _open_question(run),
        html.paragraph(
            "The answer depends on the signal: for f* = 0 one column is enough, since the variance only decreases. For "
            "signals drawn from N(0, K) with noise variance n lambda, the columns needed mostly lie between "
            "d_eff(lambda) and d_eff(lambda epsilon), with (1 + 2 epsilon)^2 = 1.05. Gaussian kernel with the "
            "median bandwidth, Bernoulli kernel for the synthetic points; lambdas of 1e-1 to 1e-5 times the "
            "kernel's mean diagonal."
        ),
    ]


def _open_question(run: Reproduction) -> Html:
    sources = dict.fromkeys(point.source for point in run.open_question)
    charts = []
    for name, attribute, label in (
        ("plain", "effective_dimension", "d_eff(lambda)"),
        ("sharp", "sharp_effective_dimension", "d_eff(lambda epsilon)"),
    ):
        series = [
            Series(
                source,
                [getattr(p, attribute) for p in run.open_question if p.source == source],
                [p.leverage for p in run.open_question if p.source == source],
                kind="points",
            )
            for source in sources
        ]
        chart = Chart(label, "columns needed", series, log_x=True, log_y=True, diagonal="columns = d_eff")
        above = sum(p.leverage >= getattr(p, attribute) for p in run.open_question)
        charts.append(
            html.figure(
                draw(chart, f"needed-{name}"),
                f"Columns needed for risk ratio {TOLERABLE} against {label}, one point for each set and lambda, "
                f"logarithmic axes. {above} of {len(run.open_question)} points lie on or above the line columns = "
                "d_eff.",
                f"Columns needed against {label}, drawn by the exact scores.",
            )
        )
    return html.side_by_side(charts)


def theorem_4_section(run: Reproduction) -> list[Html]:
    """Return the section on Theorem 4: errors of the approximate scores."""
    figures = []
    for number, record in enumerate(run.theorem_4):
        seen = [e for e in record.errors if e.largest > 1e-9]  # smaller errors are rounding
        said = [e for e in record.errors if e.bound is not None]
        series = [
            Series("largest l_i - l~_i", [e.n_draws for e in seen], [max(e.mean, 1e-9) for e in seen], None, None),
            Series("largest over repeats", [e.n_draws for e in seen], [e.largest for e in seen], kind="dashed"),
        ]
        if said:
            series.append(Series("bound, 2 epsilon", [e.n_draws for e in said], [e.bound or 0.0 for e in said]))
        chart = Chart(
            "draws for the pilot, p",
            "score",
            series,
            levels=[("largest score", record.largest_score)],
            log_x=True,
            log_y=True,
        )
        promise = f"Theorem 4 applies from {record.draws_for_any_promise:,} draws"
        figures.append(
            html.figure(
                draw(chart, f"theorem-4-{number}"),
                f"Error of the approximate scores against the number of draws, {record.design}, logarithmic axes: from "
                f"{record.errors[0].mean:.2g} at {record.errors[0].n_draws} draws to {record.errors[-1].mean:.1g} at "
                f"{record.errors[-1].n_draws}. {promise}.",
                f"{record.design[0].upper()}{record.design[1:]}: n = {record.n_rows}, lambda = {record.ridge:g}, "
                f"d_eff = {record.effective_dimension:.1f}. {promise}.",
            )
        )
    return [
        html.paragraph(
            "The approximate scores never exceed the exact ones, and lie below them by at most 2 epsilon with "
            "probability 1 - rho when p = 8 (tr K/(n lambda epsilon) + 1/6) log(n/rho), rho = 0.05. In the first "
            "design few rows carry the trace, and the bound becomes informative. For rows of equal K_ii, as in the "
            "second, 2 epsilon stays above K_ii/(n lambda), which no score exceeds, until p > 16 n log(n/rho)."
        ),
        html.side_by_side(figures),
    ]


def sketch_ridge_section(run: Reproduction) -> list[Html]:
    """Return the comparison of L_gamma with L."""
    series = [
        Series("L" if c.tolerance == 0 else f"L_gamma, gamma = {c.tolerance:g} lambda", c.columns, c.mean)
        for c in run.sketch_ridge
    ]
    chart = Chart("columns drawn, p", "risk ratio to exact", series, levels=[("exact", 1.0)], log_x=True)
    last = ", ".join(f"{s.label} {s.y[-1]:.3f}" for s in series)
    return [
        html.paragraph(
            "With L_gamma = K S (S'KS + n gamma I)^-1 S'K in place of L, Theorem 3 needs no condition on lambda. On "
            "the synthetic design the two hardly differ for gamma = 0.01 lambda; a larger gamma shrinks the fit a "
            "little more, which lowers the variance and raises the bias."
        ),
        html.figure(
            draw(chart, "sketch-ridge"),
            f"Risk ratio against the number of columns for L and for L_gamma. At {run.sketch_ridge[0].columns[-1]} "
            f"columns: {last}.",
            f"Means over {4 * run.settings.repeats} repeats, the same draws for every gamma.",
        ),
    ]


def _count(value: float | None) -> str:
    return "not reached" if value is None else f"{value:,.0f}"
