"""The page of a run: statements of the paper and our measurements, tables, figures and settings."""

from collections.abc import Sequence

from ridgemark.paper.claims import Claim, claims
from ridgemark.paper.page_figures import (
    comparison_section,
    figure_1_section,
    sketch_ridge_section,
    theorem_3_section,
    theorem_4_section,
)
from ridgemark.paper.protocols import PROTOCOLS
from ridgemark.paper.reproduction import Reproduction
from ridgemark.paper.table_1 import Row
from ridgemark.report import page as html
from ridgemark.report.page import Column, Html

_TITLE = "Fast randomized kernel methods with statistical guarantees: reproduced"
_TONES: dict[str, html.Tone] = {"yes": "good", "no": "bad", "in part": "open", "open": "open", "not run": "open"}


def reproduction_page(run: Reproduction) -> str:
    """Return the page as one HTML document."""
    parts = [
        ("Table 1", "table-1", _table_1(run)),
        ("Lambda and bandwidth by cross validation", "cross-validation", _cross_validation(run)),
        ("Figure 1", "figure-1", figure_1_section(run)),
        ("The introduction's comparison", "comparison", comparison_section(run)),
        ("Theorem 3 and the open question", "theorem-3", theorem_3_section(run)),
        ("Theorem 4", "theorem-4", theorem_4_section(run)),
        ("L_gamma compared with L", "sketch-ridge", sketch_ridge_section(run)),
        ("This run", "run", _run(run)),
    ]
    return html.page(
        _TITLE,
        [
            html.paragraph(
                "El Alaoui and Mahoney's experiments, repeated with ridgemark. d_eff is the effective dimension, the "
                "sum of the leverage scores l_i; d_mof is n times the largest score; p is the number of columns drawn. "
                "Every number on this page is also in the CSV files and in records.json in the same folder."
            ),
            *(
                [html.note("A quick run: grids, designs and repeats are smaller than in a full run.")]
                if run.settings.quick
                else []
            ),
            _summary(claims(run)),
            html.contents([(title, anchor) for title, anchor, _ in parts]),
            *(html.section(title, anchor, blocks) for title, anchor, blocks in parts),
        ],
    )


def _summary(statements: Sequence[Claim]) -> Html:
    rows = [[c.place, c.paper, c.measured, html.badge(c.same, _TONES[c.same])] for c in statements]
    columns = [Column("where"), Column("the paper says"), Column("we measured"), Column("same?")]
    return html.table("The paper says, we measured", columns, rows, stacked=True)


def _table_1(run: Reproduction) -> list[Html]:
    dimensions = [
        Column("row"),
        Column("inputs from"),
        *html.number_columns(
            "n",
            "features",
            "bandwidth",
            "lambda",
            "d_eff printed",
            "d_eff",
            "difference",
            "d_mof printed",
            "d_mof operator norm",
            "d_mof definition",
        ),
    ]
    ratios = [
        Column("row"),
        Column("signal and noise"),
        *html.number_columns("p", "columns", "printed", "measured", "difference", "noise only", "noise free"),
    ]
    reasons = dict.fromkeys(row.missing for row in run.table_1 if row.missing)
    missing = [
        f"{', '.join(row.printed.name for row in run.table_1 if row.missing == reason)}: {reason}" for reason in reasons
    ]
    return [
        html.paragraph(
            "The table does not state its conventions. These reproduce its d_eff column: epsilon = 0.01 and d_eff = "
            "tr K (K + n lambda epsilon I)^-1; RBF rows on standardised columns with the kernel exp(-|x - "
            "z|^2/b^2); linear rows on raw columns, computed from the singular values of X. The printed d_mof is "
            "not the paper's definition, n times the largest score, but n |K (K + n lambda epsilon I)^-1|_op; both "
            "are shown."
        ),
        html.table("Table 1: dimensions", dimensions, [_dimension_cells(row) for row in run.table_1]),
        html.paragraph(
            "Risk ratios risk(f_L)/risk(f_K) need a signal f* and a noise variance, which the paper does not "
            "state. The ones used here are ours:"
        ),
        html.bullets([f"{name}: {text}." for name, text in PROTOCOLS.items()]),
        html.paragraph(
            "The p of the paper is drawn with replacement by the exact scores at lambda epsilon, "
            f"{run.settings.repeats} times; mean and standard deviation are over draws. Noise only and noise free are "
            "the ratios of the variances and of the squared biases: for the same signals any other noise level "
            "gives a ratio between the two."
        ),
        html.table("Table 1: risk ratios", ratios, [cells for row in run.table_1 for cells in _ratio_cells(row)]),
        *([html.heading("What is missing and why"), html.bullets(missing)] if missing else []),
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
            f"{ratio.mean - said.risk_ratio:+z.2f}",
            f"{ratio.noise_only:.2f}",
            f"{ratio.noise_free:.2f}",
        ]
        for ratio in row.ratios
    ]


def _cross_validation(run: Reproduction) -> list[Html]:
    columns = [
        Column("kernel"),
        Column("set"),
        *html.number_columns(
            "n", "printed b", "printed lambda", "error there", "chosen b", "chosen lambda", "error", "d_eff there"
        ),
        Column("remark"),
    ]
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
            "Exact leave-one-out in closed form over half decades of lambda and, for the RBF kernel, over "
            "bandwidths, on every set with its own targets (pumadyn-32nm is not one of the paper's sets). "
            "Errors are mean squared residuals in units of the targets' variance; d_eff is computed at the chosen "
            "lambda times 0.01. The targets of the synthetic set are ours."
        ),
        html.table("Leave-one-out choices", columns, rows),
    ]


def _run(run: Reproduction) -> list[Html]:
    settings = run.settings
    return [
        html.key_numbers(
            [
                ("seed", str(settings.seed)),
                ("repeats", str(settings.repeats)),
                ("data sets available", str(len(run.sets))),
            ]
        ),
        html.table(
            "Versions", [Column("package"), Column("version")], [[name, text] for name, text in run.versions.items()]
        ),
        html.paragraph(
            "All statements are about the risk on the training rows, for a lambda chosen independently of the "
            f"targets. Data sets: {', '.join(run.sets) or 'none; the rows above say which files are missing'}."
        ),
    ]


def _fixed(value: float | None, digits: int = 1, sign: bool = False) -> str:
    return "-" if value is None else f"{value:{'+' if sign else ''}z.{digits}f}"
