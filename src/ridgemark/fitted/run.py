"""What the command line keeps with a model: where the rows came from and what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from ridgemark.fitted.frozen import not_saved
from ridgemark.measured import BoostingRecord, Measured, ThresholdRecord


@dataclass(frozen=True)
class RunRecord:
    """What the command line knows of a fit beside the model: where the rows came from and what was measured."""

    data: str | None = None  # name of the file
    n_rows: Annotated[int | None, "> 0"] = None
    target: Annotated[Sequence[str | int] | None, "any"] = None  # columns as asked for; so are the next three
    weight: Annotated[str | int | None, "any"] = None
    exposure: Annotated[str | int | None, "any"] = None
    group: Annotated[str | int | None, "any"] = None
    columns: Annotated[Sequence[str | int] | None, "any"] = None
    target_names: Annotated[Sequence[str] | None, "(t)"] = None
    csv_form: Mapping[str, str] | None = None  # delimiter, decimal mark and labels; None where no CSV file was read
    sample: Measured = None  # training rows, observed and predicted
    held_out: Measured = None  # other rows, observed and predicted, with their errors
    threshold: ThresholdRecord = None  # chosen for a cost or a rate
    boosting: BoostingRecord = None  # errors of boosting by cross-validation
    findings: Mapping[str, str] | None = None  # of `check` about the rows of the fit: what it is about, and a sentence
    seconds: float | None = not_saved()
    peak_bytes: int | None = not_saved()
    waiting_share: float | None = not_saved()
