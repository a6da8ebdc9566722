"""`ridgemark bench`: time a fit on this machine against its bare arithmetic and against scikit-learn."""

import click

from ridgemark.cli import options as shared
from ridgemark.cli.output import print_result

_BANDWIDTH, _RIDGE = 6.0, 1e-6


@shared.command("bench", "--rows 100000 --landmarks 1000")
@shared.count_option("--rows", "Number of synthetic rows.", 50_000, 1000)
@shared.count_option("--features", "Number of features.", 20, 3)
@shared.count_option("--landmarks", "Number of landmarks.", 500)
@shared.count_option("--repeats", "Repeats; medians are shown.", 5)
@shared.json_option
def command(rows: int, features: int, landmarks: int, repeats: int, as_json: bool) -> None:
    """Time a fit against its bare arithmetic and scikit-learn.

    Times a fit and a prediction on synthetic rows; each repeat runs all contenders in turn, with the same kernel, ridge
    and number of landmarks. The bare arithmetic is the least that a fit in one pass must do: one matrix product for
    the kernel, its exponential, and one symmetric update.
    """
    if landmarks > rows:
        raise click.UsageError(f"--landmarks must be at most --rows, got {landmarks} and {rows}")
    # Imported here: scikit-learn's estimators take longer to import than the rest of the command.
    from ridgemark.cli.contenders import compare_fits, compare_predictions, synthetic_rows

    given = (*synthetic_rows(rows, features), landmarks, _BANDWIDTH, _RIDGE, repeats)
    found = {"fit": compare_fits(*given), "predict": compare_predictions(*given)}
    record = {"rows": rows, "features": features, "landmarks": landmarks, "repeats": repeats, **found}
    about = f"{rows:,} x {features}, {landmarks} landmarks, medians of {repeats}"
    print_result(as_json, record, [("rows", about), *((what, _line(times)) for what, times in found.items())])


def _line(found: dict[str, float]) -> str:
    parts = [f"{found['ridgemark_seconds']:.3g} s", f"{found['over_bare']:.2f} times the bare arithmetic"]
    if "times_faster" in found:
        parts.append(f"{found['times_faster']:.2f} times faster than scikit-learn")
    return ", ".join(parts)
