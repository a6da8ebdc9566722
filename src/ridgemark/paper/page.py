"""The page of a run: what the paper says beside what was measured, tables, figures, and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ridgemark.paper.claims import Claim, claims
from ridgemark.paper.comparison import DIVIDE, LEVERAGE, UNIFORM
from ridgemark.paper.protocols import PROTOCOLS
from ridgemark.paper.reproduction import Reproduction
from ridgemark.paper.table_1 import Row
from ridgemark.paper.theorem_3 import TOLERABLE
from ridgemark.report import page as html
from ridgemark.report.page import Column, Html
from ridgemark.report.plots import Chart, Series, draw

_TITLE = "Fast randomized kernel methods with statistical guarantees: reproduced"
_TONES: dict[str, html.Tone] = {"yes": "good", "no": "bad", "in part": "open", "not run": "open"}


def reproduction_page(run: Reproduction) -> str:
    """Return the page as one HTML document."""
    parts = [
        ("Table 1", "table-1", _table_1(run)),
        ("Lambda and bandwidth by cross validation", "cross-validation", _cross_validation(run)),
        ("Figure 1", "figure-1", _figure_1(run)),
        ("The introduction's comparison", "comparison", _comparison(run)),
        ("Theorem 3 and the open question", "theorem-3", _theorem_3(run)),
        ("Theorem 4", "theorem-4", _theorem_4(run)),
        ("L_gamma beside L", "sketch-ridge", _sketch_ridge(run)),
        ("This run", "run", _run(run)),
    ]
    return html.page(
        _TITLE,
        [
            html.paragraph(
                "El Alaoui and Mahoney's experiments, run again with ridgemark. Every number on this page is also in the "
                "CSV files and in records.json beside it."
            ),
            *([html.note("A quick look: grids, designs and repeats are smaller than in a full run.")] if run.settings.quick else []),
            _summary(claims(run)),
            html.contents([(title, anchor) for title, anchor, _ in parts]),
            *(html.section(title, anchor, blocks) for title, anchor, blocks in parts),
        ],
    )


def _summary(found: Sequence[Claim]) -> Html:
    rows = [[c.place, c.paper, c.measured, html.badge(c.same, _TONES[c.same])] for c in found]
    columns = [Column("where"), Column("the paper says"), Column("we measured"), Column("same?")]
    return html.table("The paper says, we measured", columns, rows)


# --- Table 1 --------------------------------------------------------------------------------------------------


def _table_1(run: Reproduction) -> list[Html]:
    dimensions = [Column("row"), Column("inputs from")] + [
        Column(name, numeric=True)
        for name in ("n", "features", "bandwidth", "lambda", "d_eff printed", "d_eff", "difference", "d_mof printed",
                     "d_mof operator norm", "d_mof definition")
    ]  # fmt: skip
    ratios = [Column("row"), Column("signal and noise")] + [
        Column(name, numeric=True)
        for name in ("p", "columns", "printed", "measured", "difference", "noise only", "noise free")
    ]
    missing = [f"{row.printed.name}: {row.missing}" for row in run.table_1 if row.missing]
    return [
        html.paragraph(
            "The table does not state its conventions. These reproduce its d_eff column: epsilon = 0.01 and d_eff = tr K (K "
            "+ n lambda epsilon I)^-1; RBF rows on standardised columns with the kernel exp(-|x - z|^2/b^2); linear rows on "
            "raw columns, computed from the singular values of X. The printed d_mof is not the paper's definition, n times "
            "the largest score, but n |K (K + n lambda epsilon I)^-1|_op; both are shown."
        ),
        html.table("Table 1: dimensions", dimensions, [_dimension_cells(row) for row in run.table_1]),
        html.paragraph(
            "Risk ratios risk(f_L)/risk(f_K) need a signal f* and a noise variance, which the paper states for no set. The "
            "ones used here are ours:"
        ),
        html.bullets([f"{name}: {text}." for name, text in PROTOCOLS.items()]),
        html.paragraph(
            f"The p of the paper is drawn with replacement by the exact scores at lambda epsilon, {run.settings.repeats} "
            "times; mean and standard deviation over these. Noise only and noise free are the ratios of the variances and of "
            "the squared biases: for the same signals any other noise level gives a ratio between the two."
        ),
        html.table(
            "Table 1: risk ratios", ratios, [cells for row in run.table_1 for cells in _ratio_cells(row)]
        ),
        *([html.heading("What is missing, and why"), html.bullets(missing)] if missing else []),
    ]


def _dimension_cells(row: Row) -> list[str]:
    said = row.printed
    difference = None if row.effective_dimension is None else row.effective_dimension - said.effective_dimension
    return [
        said.name,
        row.source or "missing",
        f"{row.n_rows or said.n_rows}",
        "-" if said.n_features is None else str(said.n_features),
        "-" if said.bandwidth is None else f"{said.bandwidth:g}",
        f"{said.ridge:g}",
        str(said.effective_dimension),
        _fixed(row.effective_dimension),
        _fixed(difference, sign=True),
        str(said.max_degrees_of_freedom),
        _fixed(row.max_degrees_of_freedom_operator),
        _fixed(row.max_degrees_of_freedom),
    ]


def _ratio_cells(row: Row) -> list[list[str]]:
    said = row.printed
    if not row.ratios:
        return [[said.name, "data missing", str(said.n_draws), "-", f"{said.risk_ratio:.2f}", "-", "-", "-", "-"]]
    return [
        [
            said.name,
            ratio.protocol,
            str(row.n_draws),
            _fixed(row.mean_columns, 0),
            f"{said.risk_ratio:.2f}",
            f"{ratio.mean:.3f} ± {ratio.standard_deviation:.3f}",
            f"{ratio.mean - said.risk_ratio:+.2f}",
            f"{ratio.noise_only:.2f}",
            f"{ratio.noise_free:.2f}",
        ]
        for ratio in row.ratios
    ]


def _cross_validation(run: Reproduction) -> list[Html]:
    columns = [Column("kernel"), Column("set")] + [
        Column(name, numeric=True)
        for name in ("n", "printed b", "printed lambda", "error there", "chosen b", "chosen lambda", "error", "d_eff there")
    ] + [Column("remark")]  # fmt: skip
    rows = [
        [
            c.kernel,
            c.source,
            str(c.n_rows),
            "-" if c.printed_bandwidth is None else f"{c.printed_bandwidth:g}",
            f"{c.printed_ridge:.1e}",
            f"{c.printed_error:.3g}",
            "-" if c.bandwidth is None else f"{c.bandwidth:g}",
            f"{c.ridge:.1e}",
            f"{c.error:.3g}",
            f"{c.effective_dimension:.1f}",
            "at the end of the grid" if c.on_edge else "",
        ]
        for c in run.choices
    ]
    return [
        html.paragraph(
            "Exact leave-one-out in closed form over half decades of lambda and, for the RBF kernel, over bandwidths, on every "
            "set whose own targets are at hand (pumadyn-32nm is none of the paper's sets). Errors are mean squared residuals "
            "in units of the targets' variance; d_eff is taken at the chosen lambda times 0.01. The targets of the synthetic "
            "set are ours."
        ),
        html.table("Leave-one-out choices", columns, rows),
    ]


# --- Figure 1 -------------------------------------------------------------------------------------------------


def _figure_1(run: Reproduction) -> list[Html]:
    figure = run.figure_1
    scores = figure.scores
    left = Chart(
        "x", "leverage score", [Series("l_i(lambda epsilon)", scores.points.tolist(), scores.scores.tolist(), kind="points")]
    )
    right = Chart(
        "columns drawn, p",
        "risk",
        [
            Series(c.method, c.columns, c.mean, c.low, c.high, kind="dashed" if c.method == "diagonal" else "line")
            for c in figure.curves
        ],
        levels=[("exact risk", figure.exact_risk)],
        log_x=True,
        log_y=True,
    )
    first = ", ".join(f"{c.method} {c.mean[0] / figure.exact_risk:.2f}" for c in figure.curves)
    at_last = figure.curves[0].columns[-1]
    return [
        html.side_by_side(
            [
                html.figure(
                    draw(left, "scores"),
                    f"Scores of the {len(scores.points)} points of the synthetic design against x: low where points crowd at "
                    f"both ends of the interval, up to {scores.scores.max():.2f} in the middle where points are rare.",
                    f"Left: the scores at lambda epsilon. d_eff = {scores.effective_dimension:.1f}, d_mof = "
                    f"{scores.max_degrees_of_freedom:.1f}.",
                ),
                html.figure(
                    draw(right, "risk"),
                    f"Risk against the number of columns from {figure.curves[0].columns[0]} to {at_last} for seven ways to draw "
                    f"them, on logarithmic axes. In units of the exact risk the curves begin at: {first}. All fall to the "
                    "exact risk; uniform and diagonal last.",
                    f"Right: mean risk over {figure.repeats} repeats, bands from the 10% to the 90% quantile.",
                ),
            ]
        ),
        html.paragraph(
            f"The signal is k(x, 1/2)/k(1/2, 1/2), the noise variance 0.005 (ours). Approximate scores come "
            f"from a pilot of {figure.pilot} rows drawn by K_ii (section 3.5): eq. (9) draws by the paper's own, which are lowest "
            "where the pilot saw nothing; approximate leverage draws, as ridgemark does, by their upper bound from the same "
            f"pilot. Rank-k leverage uses the {figure.rank} leading eigenvectors. "
            "The kernel's diagonal is constant here, so diagonal and uniform sampling are the same and share random numbers. "
            f"The approximate-leverage curve lies within {figure.approximation_gap:.1%} of the exact-leverage curve."
        ),
    ]


def _comparison(run: Reproduction) -> list[Html]:
    found = run.comparison
    series = []
    for method in (LEVERAGE, UNIFORM, DIVIDE):
        points = sorted((p for p in found.points if p.method == method), key=lambda p: p.kernel_evaluations)
        ratios = np.array([[p.risk, p.lowest, p.highest] for p in points]) / found.exact_risk
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
        [method, f"{found.orders[method]:,.0f}", _count(found.evaluations_needed(method))]
        for method in (LEVERAGE, UNIFORM, DIVIDE)
    ]
    columns = [
        Column("method"),
        Column("the introduction's order", numeric=True),
        Column(f"measured to ratio {TOLERABLE}", numeric=True),
    ]
    words = "; ".join(f"{row[0]} {row[2]}" for row in rows)
    return [
        html.paragraph(
            f"The synthetic design with {found.n_rows} points at lambda = 1e-6: d_eff(lambda) = "
            f"{found.effective_dimension:.1f}, d_mof(lambda) = {found.max_degrees_of_freedom:.1f}. Leverage Nystrom counts the "
            "columns of the pilot, as many as it draws, and those it draws; divide and conquer averages fits on m random "
            "parts with the same lambda and counts n^2/m. Exact kernel ridge regression takes "
            f"{found.n_rows**2:,} evaluations. The order of uniform sampling is a worst case over signals."
        ),
        html.figure(
            draw(chart, "comparison"),
            f"Risk over exact risk against kernel evaluations, logarithmic axes. Evaluations to reach {TOLERABLE}: {words}.",
            f"Means over {run.settings.repeats} repeats; bands from the least to the largest.",
        ),
        html.table("Kernel evaluations", columns, rows),
    ]


# --- Theorems -------------------------------------------------------------------------------------------------


def _theorem_3(run: Reproduction) -> list[Html]:
    columns = [Column("row")] + [
        Column(name, numeric=True)
        for name in ("n", "promised", "promised uniform", "used", "needed", "columns among them", "lambda", "lambda asked for")
    ]  # fmt: skip
    rows = [
        [c.row, str(c.n_rows), f"{c.promised:,}", f"{c.promised_uniform:,}", str(c.used), f"{c.needed:g}",
         f"{c.needed_columns:g}", f"{c.ridge:g}", f"{c.condition_on_lambda:.2g}"]
        for c in run.theorem_3
    ]  # fmt: skip
    return [
        html.paragraph(
            "Draws for which Theorem 3 promises the risk with epsilon = 0.01 and rho = 0.05 and exact scores (beta = 1), and "
            f"for uniform draws; the paper's p; and the fewest draws by the scores with risk ratio at most {TOLERABLE} for the "
            "protocol prior, the median over repeats. The last column is the least lambda for which the theorem as printed "
            "speaks; the same bound on the risk holds without that condition (docs/theory.md)."
        ),
        html.table("Theorem 3: columns promised, used, needed", columns, rows),
        html.heading("Is d_eff also a lower bound?"),
        _open_question(run),
        html.paragraph(
            "The answer depends on the signal: for f* = 0 one column does, since the variance only falls. For signals drawn "
            "from N(0, K) with noise variance n lambda, the columns needed mostly lie between d_eff(lambda) and "
            "d_eff(lambda epsilon), with (1 + 2 epsilon)^2 = 1.05. Gaussian kernel with the median bandwidth, Bernoulli kernel "
            "for the synthetic points; lambdas of 1e-1 to 1e-5 times the kernel's mean diagonal."
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
                f"Columns needed for risk ratio {TOLERABLE} against {label}, one point for each set and lambda, logarithmic "
                f"axes. {above} of {len(run.open_question)} points lie on or above the line columns = d_eff.",
                f"Columns needed against {label}, drawn by the exact scores.",
            )
        )
    return html.side_by_side(charts)


def _theorem_4(run: Reproduction) -> list[Html]:
    figures = []
    for number, found in enumerate(run.theorem_4):
        seen = [e for e in found.errors if e.largest > 1e-9]  # what is below is rounding
        said = [e for e in found.errors if e.bound is not None]
        series = [
            Series("largest l_i - l~_i", [e.n_draws for e in seen], [max(e.mean, 1e-9) for e in seen], None, None),
            Series("largest over repeats", [e.n_draws for e in seen], [e.largest for e in seen], kind="dashed"),
        ]
        if said:
            series.append(Series("bound, 2 epsilon", [e.n_draws for e in said], [e.bound or 0.0 for e in said]))
        chart = Chart(
            "draws for the pilot, p", "score", series, levels=[("largest score", found.largest_score)], log_x=True, log_y=True
        )
        promise = f"Theorem 4 promises something from {found.draws_for_any_promise:,} draws"
        figures.append(
            html.figure(
                draw(chart, f"theorem-4-{number}"),
                f"Error of the approximate scores against the number of draws, {found.design}, logarithmic axes: from "
                f"{found.errors[0].mean:.2g} at {found.errors[0].n_draws} draws to {found.errors[-1].mean:.1g} at "
                f"{found.errors[-1].n_draws}. {promise}.",
                f"{found.design[0].upper()}{found.design[1:]}: n = {found.n_rows}, lambda = {found.ridge:g}, d_eff = "
                f"{found.effective_dimension:.1f}. {promise}.",
            )
        )
    return [
        html.paragraph(
            "The approximate scores never exceed the exact ones, and lie below them by at most 2 epsilon with probability 1 - "
            "rho when p = 8 (tr K/(n lambda epsilon) + 1/6) log(n/rho), rho = 0.05. Left a design where few rows carry the "
            "trace and the bound comes to say something; for rows of equal K_ii, as on the right, 2 epsilon stays above every "
            "score, K_ii/(n lambda) at most, until p exceeds 16 n log(n/rho)."
        ),
        html.side_by_side(figures),
    ]


def _sketch_ridge(run: Reproduction) -> list[Html]:
    series = [
        Series("L" if c.tolerance == 0 else f"L_gamma, gamma = {c.tolerance:g} lambda", c.columns, c.mean)
        for c in run.sketch_ridge
    ]
    chart = Chart("columns drawn, p", "risk ratio to exact", series, levels=[("exact", 1.0)], log_x=True)
    last = ", ".join(f"{s.label} {s.y[-1]:.3f}" for s in series)
    return [
        html.paragraph(
            "With L_gamma = K S (S'KS + n gamma I)^-1 S'K in place of L, Theorem 3 needs no condition on lambda. On the "
            "synthetic design the two hardly differ for gamma = 0.01 lambda; a larger gamma shrinks the fit a little more, "
            "which lowers the variance and raises the bias."
        ),
        html.figure(
            draw(chart, "sketch-ridge"),
            f"Risk ratio against the number of columns for L and for L_gamma. At {run.sketch_ridge[0].columns[-1]} columns: {last}.",
            f"Means over {4 * run.settings.repeats} repeats, the same draws for every gamma.",
        ),
    ]


def _run(run: Reproduction) -> list[Html]:
    settings = run.settings
    return [
        html.key_numbers(
            [("seed", str(settings.seed)), ("repeats", str(settings.repeats)), ("data sets at hand", str(len(run.sets)))]
        ),
        html.table(
            "Versions", [Column("package"), Column("version")], [[name, text] for name, text in run.versions.items()]
        ),
        html.paragraph(
            "All statements are about the risk on the training rows, for a lambda fixed before the targets are seen. Data "
            f"sets: {', '.join(run.sets) or 'none; the rows above say which files are missing'}."
        ),
    ]


def _fixed(value: float | None, digits: int = 1, sign: bool = False) -> str:
    return "-" if value is None else f"{value:{'+' if sign else ''}.{digits}f}"


def _count(value: float | None) -> str:
    return "not reached" if value is None else f"{value:,.0f}"
