"""What to mistrust in a fit: what was seen in its data and its errors, each in one sentence."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.report.quality import COVERAGE
from ridgemark.report.writing import printable, shortened
from ridgemark.rows.places import as_written, shown

_WORSE = 1.15  # errors on held-out rows over those left out, from which on it is said
_LIKE = 0.97  # error over that of a simpler model, from which on there is hardly a difference
_ALONE = 0.9  # importance of a column on which nearly everything rests
_REPEATED = 0.02  # share of held-out rows that have the features of training rows
_FAR = 0.1  # share of held-out rows that are farther than 95% of the rows of the fit: twice what is expected
_SURE = 3.0  # standard errors that are not chance


class Caution(NamedTuple):
    """What to mistrust, in a few words and in a sentence."""

    label: str
    sentence: str


def cautions(fit: Any) -> list[Caution]:
    """Return what to mistrust; findings about the table come first."""
    table = [Caution(label, f"{said[:1].upper()}{said[1:]}.") for label, said in (fit.run.findings or {}).items()]
    seen = [*table, *_errors(fit), *_held_out(fit), *_promises(fit), *_columns(fit)]
    return [Caution(*map(printable, caution)) for caution in seen]


def _errors(fit: Any) -> Iterator[Caution]:
    """Say where the fit is hardly better than a simpler model, or errors depend on what is left out."""
    if fit.rows is None and fit.loo[0] is None:
        said = "Errors on rows are not known here: give rows and their target, as in report(path, X, y) or --test."
        yield Caution("unknown errors", said)
    compared = quality.baselines(fit.model)
    for simpler in compared[:0:-1]:
        if compared[0].judged >= _LIKE * simpler.judged:
            yield Caution(
                "little gain",
                f"On rows that none was fitted to, the error is about that of {simpler.name}: the kernel finds hardly "
                "anything more.",
            )
            break
    yield from fit.parts.cautions(fit)


def _held_out(fit: Any) -> Iterator[Caution]:
    """Say how held-out rows differ from those of the fit."""
    rows = fit.run.held_out
    if rows is None:
        return
    if (ratio := fit.parts.held_out_ratio(fit)) is not None and ratio > _WORSE:
        yield Caution(
            "held-out rows",
            f"The error on the held-out rows is {ratio:.2f} times that of rows of the fit left out: the held-out rows "
            "differ from these, or leave-one-out is too optimistic here, as when rows come in groups.",
        )
    if rows.get("repeated", 0) > _REPEATED * rows["n_rows"]:
        yield Caution(
            "repeated rows",
            f"{rows['repeated']:,} of the {rows['n_rows']:,} held-out rows have the features of training rows: expect "
            "a larger error on others.",
        )
    if rows.get("far", 0.0) > _FAR:
        yield Caution(
            "rows far from the data",
            f"{rows['far']:.0%} of the held-out rows are farther from the data than 95% of the rows of the fit: their "
            "predictions extrapolate.",
        )


def _promises(fit: Any) -> Iterator[Caution]:
    """Say where intervals or the certificate promise less than they seem to."""
    if (shortage := promises.interval_shortage(fit.model)) is not None:
        yield Caution("no intervals", f"Intervals are {shortage}.")
    inside = quality.coverage_by_group(fit.rows)
    worst = min(inside, key=lambda group: group.share, default=None)
    if worst is not None and worst.share < COVERAGE - _SURE * worst.error:
        place = {0: "lowest", len(inside) - 1: "highest"}.get(inside.index(worst))
        which = f"{place} predictions" if place else f"predictions around {as_written(worst.middle)}"
        said = f"For the {which}, intervals of {COVERAGE:.0%} hold only {worst.share:.0%} of the rows."
        yield Caution("uneven intervals", said)
    certificate = fit.certificate
    if certificate is not None and certificate.vacuous:
        yield Caution("exactness", "How far the fit is from exact is not known, as its bound is too large.")
    elif certificate is not None and not fit.parts.nearness(fit).close:
        yield Caution("exactness", "The fit may be far from exact: more landmarks may change the predictions.")


def _columns(fit: Any) -> Iterator[Caution]:
    """Say where predictions rest on one column, and which columns have no part in them."""
    if (largest := words.important_columns(fit.model, 1)) and largest[0][1] > _ALONE:
        yield Caution(
            "one column",
            f"Nearly everything rests on the column {shortened(largest[0][0])}, with {largest[0][1]:.0%} of the "
            "importance: make sure that it is known when predictions are made.",
        )
    labels = " ".join(fit.run.findings or ())
    without = [shortened(name) for name in words.unused_names(fit.model) if shown(name) not in labels]
    if without:
        said = (
            f"These columns have no part in the predictions: {', '.join(without)}. The table of all columns says why."
        )
        yield Caution("columns left out", said)
