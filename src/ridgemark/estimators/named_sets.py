"""Labels of named sets of rows, and density ratios, as `calibrate` and `predict_interval` take them."""

from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import DataError, ParameterError
from ridgemark.rows.columns import as_array
from ridgemark.rows.groups import Hashes, hashes_of
from ridgemark.rows.open import frame_columns


def column_of(X: Any, by: Any, features: Any) -> tuple[Any, Any]:
    """Return the rows and the labels of their sets; of a name the column of a DataFrame.

    A column that is none of the features of the fit is taken out of the rows.
    """
    if not isinstance(by, str):
        return X, by
    frame = frame_columns(X)
    if frame is None or by not in (frame.labels or ()):
        raise ParameterError(f"by={by!r} must be a column of X, a DataFrame, or an array of one label for each row")
    labels = X[by]
    if by in list(() if features is None else features):
        return X, labels
    return (X.drop(columns=[by]) if hasattr(X, "iloc") else X.drop([by])), labels


def labels_of_sets(by: Any, n_rows: int) -> Hashes | None:
    """Return hashes of the labels of sets, one for each row; None for None."""
    return None if by is None else hashes_of(by, n_rows, "by")


def ratios_of(density_ratio: Any, n_rows: int) -> Floats | None:
    """Return density ratios, one for each row, finite and not negative; None for None."""
    if density_ratio is None:
        return None
    ratios = as_array(density_ratio, "density_ratio")
    if ratios.shape != (n_rows,) or ratios.dtype.kind not in "fiub":
        raise DataError(
            f"density_ratio must be one number for each of the {n_rows} rows, got {ratios.dtype} of shape "
            f"{ratios.shape}"
        )
    ratios = ratios.astype(np.float64)
    if (wrong := ~(np.isfinite(ratios) & (ratios >= 0.0))).any():
        row = int(np.argmax(wrong))
        raise DataError(f"density_ratio of row {row} is {ratios[row]}; it must be a finite number, 0 or more")
    return ratios
