"""How estimators read tables: their columns become features by the schema of the fit."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator

from ridgemark.errors import ColumnWarning, ParameterError, warn_user
from ridgemark.fitted import Form
from ridgemark.kernels import make_kernel
from ridgemark.kernels.given import check_square
from ridgemark.rows import ArrayRows, BaseRows, RowSource, dense
from ridgemark.rows.arrays import plain_rows
from ridgemark.rows.cells import LARGEST_EXACT
from ridgemark.rows.open import frame_columns
from ridgemark.tables import Schema, SchemaEncoder, encoded_by_content, schema_of_numbers

_AT_ONCE = 256  # rows of a frame that are encoded at once
_of_numbers: WeakKeyDictionary[Form, Schema] = WeakKeyDictionary()  # schemas of fits to numbers, for later gaps


def encoded_source(model: Any, source: RowSource) -> RowSource:
    """Return rows of the user's columns as rows of the features that the model's kernel sees."""
    return model._rows(source)


def encoded_rows(features: Any, weights: Any = None) -> RowSource:
    """Return features taken from an `encoded_source` as rows that the model predicts as they are."""
    rows = ArrayRows(features, None, weights)
    rows.encoded = True
    return rows


def warn_of_unseen(source: Any) -> None:
    """Say, once for each fit and column, what rows that were encoded have that the fit has not seen."""
    encoder = getattr(source, "encoder", None)
    if encoder is not None and (said := encoder.warnings()):
        msg = f"{'; '.join(said)}; an unseen level counts as none of the known ones, a missing number as the median"
        warn_user(msg, ColumnWarning)


class TableReader(BaseEstimator):
    """Learns the schema of the rows of a fit, and applies it to later rows."""

    def _encoded(self, source, reset, keep_constant=False):
        """Return rows whose columns are features as the schema says: learned with `reset`, otherwise that of the fit.

        Columns that are finite numbers are features as they are.
        """
        kernel = make_kernel(self.kernel) if reset else self.kernel_  # parameters may have been set after the fit
        if kernel.pairwise and reset:
            check_square((source.n_rows, source.n_features))
        if not isinstance(source, BaseRows) or kernel.pairwise:
            return source
        if reset:
            if source.finite and self._categories_by_type() and not source.schema_options:
                return source
            return encoded_by_content(source, categorical=self.categorical_features, keep_constant=keep_constant)
        table = self._model.schema.table
        if table is None and not source.finite:  # gaps are filled by the medians of the points kept
            form = self._model.schema
            if form not in _of_numbers:
                _of_numbers[form] = schema_of_numbers(form.feature_names, np.median(self._points(), axis=0))
            table = _of_numbers[form]
        return source if table is None else source.encoded_by(SchemaEncoder(table))

    def _frame_rows(self, X):
        """Return the rows of a frame whose columns have the names of the fit, read at once; None for all others.

        Checks of columns, and blocks, would take longer than a prediction of a few rows. Of a frame that is not numbers
        few rows are encoded at once, as features may take far more memory than columns.
        """
        names = list(getattr(self, "feature_names_in_", ()))
        frame = frame_columns(X) if names else None
        if frame is None or frame.labels != names or self.kernel_.pairwise:
            return None
        table = self._model.schema.table
        if table is None:
            array = frame.as_array()  # of integers beside other numbers, pandas makes floats
            beyond = array is None or max(-float(array.min(initial=0)), float(array.max(initial=0))) > LARGEST_EXACT
            return None if beyond else plain_rows(array)
        if frame.n_rows > _AT_ONCE:
            return None
        encoder = SchemaEncoder(table)
        features = encoder(0, frame.whole(), frame.place(slice(0, frame.n_rows)))
        rows = ArrayRows(features.astype(frame.dtype) if encoder.keeps_columns else features)
        rows.encoder = encoder
        return rows

    def _categories_by_type(self):
        """Tell whether no list names the categorical columns; refuse what is neither a list nor a known word."""
        given = self.categorical_features
        if isinstance(given, str) and given != "from_dtype":
            raise ParameterError(
                f'categorical_features must be "from_dtype", None, a list of column names or positions, or a mask, '
                f"got {given!r}"
            )
        return given is None or isinstance(given, str)

    def _points(self):
        """Return the rows that the model keeps, dense."""
        points = next(getattr(self, name) for name in ("landmarks_", "X_fit_", "components_") if hasattr(self, name))
        return dense(points)

    _warn_of_unseen = staticmethod(warn_of_unseen)
