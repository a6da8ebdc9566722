"""The target: a skewed one, whose errors grow with its size, and labels of few rows."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import skew, spearmanr

from ridgemark.checks.quick_fit import quick_fit, some_rows
from ridgemark.checks.record import Finding, share
from ridgemark.checks.table import Table
from ridgemark.rows.places import as_written, listed, shown

_FEWEST, _FEWEST_VALUES = 50, 15  # rows, and different values
SKEWED = 1.0  # skewness, after the few largest values are drawn in
FANS_OUT = 0.2  # rank correlation of the prediction and the size of its error
_CLIPPED = 0.002
_FEW_ROWS, _SMALL_SHARE = 10, 0.1  # of a label


def find_in_target(table: Table) -> Iterator[Finding]:
    """Look for a target that is missing in some rows, constant or skewed, and for labels of few rows."""
    if table.n_skipped:
        yield Finding(
            "missing target",
            (),
            f"{table.n_skipped:,} of {table.n_rows + table.n_skipped:,} rows have no target",
            "a fit needs it in every row",
            'open_rows(..., missing_target="skip") leaves them out, as the command line does',
            {"n_skipped": table.n_skipped},
        )
    target = table.target
    if target is None:
        return
    if target.n_different < 2:
        yield Finding(
            "constant target", (), "the target has one value in all rows", "nothing can be learned", "check the target"
        )
    elif table.is_classes:
        yield from _rare_classes(table)
    else:
        yield from _skewed(table)


def _skewed(table: Table) -> Iterator[Finding]:
    """Look for a long tail on one side, with errors of a quick fit that grow towards it."""
    target = table.target
    assert target is not None
    if table.n_looked_at < _FEWEST or target.n_different < _FEWEST_VALUES:
        return
    rng = np.random.default_rng(0)
    part = table.only(some_rows(table, rng))
    assert part.target is not None
    y = np.clip(part.target.values, *np.quantile(target.present, [_CLIPPED, 1 - _CLIPPED]))
    skewness = float(skew(y))
    if abs(skewness) < SKEWED:
        return
    columns = [column for column in part.columns if column.n_different > 1 and not column.identifies]
    errors = quick_fit(columns, y[:, None], rng).left_out[:, 0]
    predicted = y - errors
    fan = float(spearmanr(predicted, np.abs(errors)).statistic) * np.sign(skewness) if predicted.std() > 0 else 0.0
    if fan < FANS_OUT:
        return
    low, middle, high = np.quantile(target.present, [0.05, 0.5, 0.95])
    tail = "above" if skewness > 0 else "below"
    yield Finding(
        "skewed target",
        (),
        f"the target has a long tail {tail} (skewness {skewness:.1f}; 90% of its values lie between "
        f"{as_written(low, 6)} and {as_written(high, 6)}, half below {as_written(middle, 6)}), and errors of a "
        "quick fit grow towards it",
        "a few large values weigh most in the fit, and intervals are too wide for the others",
        'target_transform="auto"; command line: --target-transform auto',
        {"skewness": skewness, "fan": fan},
    )


def _rare_classes(table: Table) -> Iterator[Finding]:
    target = table.target
    assert target is not None
    counts, values = target.counts, np.unique(target.present)
    names = [target.example(value).strip("'") for value in values]
    least, most = int(counts.argmin()), int(counts.argmax())
    tiny = [name for name, count in zip(names, counts, strict=True) if count < _FEW_ROWS]
    if tiny:
        yield Finding(
            "rare class",
            (),
            f"of the labels {listed(tiny)} there are fewer than {_FEW_ROWS} rows",
            "so few rows hardly say where a class lies, and errors on them are a matter of chance",
            "join them with another label, or leave these rows out",
            {"labels": tiny},
        )
    elif counts[least] < min(_SMALL_SHARE, 0.5 / len(counts)) * counts.sum():
        yield Finding(
            "rare class",
            (),
            f"the label {shown(names[least])} has {counts[least]:,} of {int(counts.sum()):,} rows, and the most "
            f"frequent one {shown(names[most])} has {share(float(counts[most]), float(counts.sum()))}",
            "always naming the most frequent label is right that often, so the share of right labels tells little",
            "judge by log loss and average precision; class_weight='balanced'; command line: --class-weight balanced",
            {"n_rows": int(counts[least]), "majority": float(counts[most] / counts.sum())},
        )
