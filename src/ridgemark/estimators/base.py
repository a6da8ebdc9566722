"""What every estimator here does with rows before the mathematics begins."""

from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ridgemark.errors import DataError, DataTypeError, ParameterError, RidgemarkError
from ridgemark.estimators.callbacks import TakesCallbacks, told_to_callbacks, with_callback_progress
from ridgemark.estimators.checkpoint import checkpointed
from ridgemark.estimators.computing import FittedName, at_once, computing, kind_of_rows
from ridgemark.estimators.hints import refuse_foreign, refuse_inner
from ridgemark.estimators.table_reader import TableReader
from ridgemark.fitted import Form, Targets
from ridgemark.fitting import Recipe
from ridgemark.kernels import make_kernel
from ridgemark.passes import RowPasses, progress_callback
from ridgemark.rows import BaseRows, RowSource, is_dask, open_rows, refuse_large_integers, text_labels, without_features
from ridgemark.rows.arrays import plain_rows
from ridgemark.rows.cells import is_finite
from ridgemark.rows.columns import as_array
from ridgemark.rows.groups import hashes_of
from ridgemark.rows.open import frame_columns, is_stream, lazy_remedy, opened, whole_table
from ridgemark.rows.places import Place, listed, shown
from ridgemark.rows.tables import as_objects, check_targets, is_records, refuse_series
from ridgemark.tables import warn_of_row_numbers

_NO_TARGETS = object()  # stands for y where rows alone are validated; None is a y that was not given


def labels_of_groups(groups, n_rows):
    """Return hashes of the labels of groups, one for each row; None for None."""
    return None if groups is None else hashes_of(groups, n_rows)


class LandmarkEstimator(TakesCallbacks, TableReader):
    """Opens and checks rows: arrays as scikit-learn does, and row sources."""

    _supervised = True  # whether a fit needs targets
    _takes_exposure = False  # whether rows may have an exposure beside their target
    n_passes_ = FittedName(lambda model: model.cost.n_passes)
    n_kernel_evaluations_ = FittedName(lambda model: model.cost.n_kernel_evaluations)
    encoded_names_ = FittedName(lambda model: list(model.schema.encoded_names))

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a kernel or selection as `kernel__bandwidth`; returns self."""
        refuse_foreign(params, self._get_param_names(), type(self).__name__)
        refuse_inner(params, self.get_params(deep=False))
        return super().set_params(**params)

    @contextmanager
    def _changing(self):
        """Refuse copies while a method changes the fit; where it fails, the columns are those of the last fit again."""
        self._running = True
        try:
            yield
        except BaseException:
            known = self._model.schema if hasattr(self, "_model") else None
            self._note_columns(*((None, None) if known is None else (known.n_features, known.feature_names)))
            raise
        finally:
            with suppress(AttributeError):  # another thread was in a method too
                del self._running

    def _require_fit(self):
        """Raise the error of scikit-learn where there is no fit yet."""
        if not hasattr(self, "_model"):
            check_is_fitted(self, "_model")

    def _note_columns(self, n_features, names):
        """Keep number and names of the features under the names that scikit-learn reads; None removes one."""
        names = None if names is None else np.array(names, dtype=object)
        for name, value in (("n_features_in_", n_features), ("feature_names_in_", names)):
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)

    def _form(self, source, targets):
        """Return the form of the rows that were opened last."""
        names, encoder = getattr(self, "feature_names_in_", None), getattr(source, "encoder", None)
        names = None if names is None else names.copy()
        table = None if encoder is None else encoder.schema
        return Form(self.n_features_in_, names, targets, source.n_features, table, kind_of_rows.get() or "numpy")

    def __getstate__(self):
        """Return the attributes to copy or pickle; refuse while a method is changing them."""
        state = dict(super().__getstate__())  # a copy, taken in one step: another thread may be in fit
        if "_running" in state:
            raise RidgemarkError(
                f"a fit of this {type(self).__name__} is running; copy, pickle or save it when the fit has ended"
            )
        return state

    @computing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, checkpoint: Any = None, *, groups: Any = None
    ) -> Self:
        """Fit the model to rows and their targets.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, n_features), Arrow stream, or RowSource
            The rows; for all estimators but `ExactKernelRidge` also Dask collections. A RowSource has its own weights
            and targets (one target for a classifier).
        y : array of shape (n,) or (n, n_targets), or str
            The targets; of a classifier the labels, shape (n,): text, booleans or whole numbers. For an Arrow stream or
            dataset y and sample_weight are the names of columns.
        sample_weight : array of shape (n,), optional
            Relative weights: a weight of 2 counts the row twice, a weight of zero leaves it out, and a factor on all
            weights changes nothing.
        checkpoint : path, optional
            File that keeps what the fit has computed. If the process dies, the same call resumes from this file and
            ends with the same model. The file is removed when the fit has ended.
        groups : array of shape (n,), optional
            The label of each row's group, such as a patient, a shop or a day: text, numbers or dates. Rows of one group
            leave together: in tuning, in the search for lambda, in `loo_residuals_` and in intervals, so that errors
            and intervals are those of rows of new groups.

        Returns
        -------
        self
        """
        rows = X, y, sample_weight, checkpoint, groups
        if getattr(self, "_skl_callbacks", None):
            told_to_callbacks(self, X, y, partial(self._fit, *rows))
        else:
            self._fit(*rows)
        return self

    def _fit(self, *rows):
        with self._changing():
            self._model = self._fitted(*rows)

    def _recipe(self):
        """Return the parameters, checked; those that an estimator does not have are the recipe's own."""
        return Recipe(**{name: getattr(self, name) for name in Recipe.__dataclass_fields__ if hasattr(self, name)})

    def _fitted(self, X, y, sample_weight, checkpoint, groups):
        """Return the model of these rows."""
        recipe = self._recipe()
        source, form = self._open(X, y, sample_weight, groups=groups)
        kept = None, self.random_state
        with nullcontext(kept) if checkpoint is None else checkpointed(self, checkpoint, source) as (journal, seed):
            return self._model_of(recipe, self._training_passes(source, journal), form, seed)

    def _open(self, X, y, sample_weight, reset=True, keep_constant=False, groups=None):
        """Return training rows as a RowSource of features, checked, and their form.

        With `reset` they say what columns there are; without, they must have those of the fit. `keep_constant` says
        whether columns of one value are kept.
        """
        target = y if self._supervised else None
        plain = None if target is None and self._supervised else plain_rows(X, target, sample_weight, groups)
        if plain is None:
            source, flat, single = self._open_as_given(X, y, sample_weight, reset, groups)
        else:
            source, flat, single = plain, np.ndim(y) == 1, X.dtype == getattr(y, "dtype", None) == np.float32
            if reset:
                self._note_columns(X.shape[1], None)
            else:
                validate_data(self, X, skip_check_array=True, reset=False)  # the number of columns
        targets = Targets(source.n_targets, flat, bool(single))
        if not reset:
            self._check_targets(targets)
        if reset and self._supervised and not keep_constant and source.n_rows == 1:
            raise DataError("a fit needs two rows or more, got one (n_samples=1); give more rows")
        source = self._encoded(source, reset, keep_constant)
        if isinstance(source, BaseRows) and source.reads_ahead:
            source = source.staying(self.memory_budget)
        return source, self._form(source, targets)

    def _open_as_given(self, X, y, sample_weight, reset, groups=None):
        """Return training rows of any kind as a RowSource of the user's columns, and the form of their targets.

        Of the form it is whether they are an array of shape (n,), and whether rows and targets have single precision.
        """
        X, y, sample_weight, groups = opened(X, y, sample_weight, groups)
        if is_records(X):
            X, y, sample_weight, groups = self._of_records(X, y, sample_weight, groups), None, None, None
        if isinstance(X, RowSource):
            self._check_source(X, reset, target=y, weight=sample_weight, group=groups)
            return X, X.n_targets == 1, False
        if isinstance(X, str | Path):
            raise DataTypeError(
                f"fit takes arrays, DataFrames or a RowSource; for a file use open_rows({str(X)!r}, target=...)"
            )
        if isinstance(X, np.memmap) or is_dask(X):
            # Checked and converted block by block, never read whole.
            if y is None and self._supervised:
                raise DataError(f"{type(self).__name__}.fit requires y to be passed, but the target y is None")
            weights = sample_weight if is_dask(X) else self._weights(sample_weight, X.shape[0])
            source = open_rows(X, target=y, weight=weights, group=groups)
            self._check_source(source, reset)
        else:
            X, y = self._validate(X, y if self._supervised else _NO_TARGETS, reset=reset)
            weights, labels = self._weights(sample_weight, X.shape[0]), labels_of_groups(groups, X.shape[0])
            source = open_rows(X, target=y, weight=weights, group=labels)
        return source, np.ndim(y) == 1, getattr(X, "dtype", source.dtype) == getattr(y, "dtype", None) == np.float32

    def _of_records(self, X, y, sample_weight, groups):
        """Return records, such as a structured array, as rows with targets, weights and groups."""
        target = None if y is None or not self._supervised else np.asarray(y)
        check_targets(y if self._supervised else None, "the target")
        weights, labels = self._weights(sample_weight, len(X)), labels_of_groups(groups, len(X))
        return open_rows(X, target=target, weight=weights, group=labels)

    def _check_source(self, source, reset, **values):
        """Refuse a RowSource that an estimator of this kind cannot fit; `values` are given besides, or None."""
        if given := [name for name, value in values.items() if value is not None]:
            own, names = " and ".join(f"{name}s" for name in given), " and ".join(given)
            raise ParameterError(f"a RowSource brings its own {own}; give {names} to open_rows instead")
        if getattr(source, "has_exposure", False) and not self._takes_exposure:
            raise DataError(
                f"the RowSource has an exposure, which {type(self).__name__} has no use for; open it without, or "
                'fit a NystromRegressor("poisson")'
            )
        if source.n_targets == 0 and self._supervised:
            raise DataError(
                "the RowSource has no targets to fit; name them when opening it: open_rows(..., target=...)"
            )
        if (labels := text_labels(source)) is not None and self._supervised and not is_classifier(self):
            raise DataTypeError(
                f"the target {listed(source.target_names or ())}".rstrip()
                + f" holds text, such as {shown(labels[0])}; a target of regression must be a number; convert it, "
                "or fit a NystromClassifier (command line: --classify)"
            )
        if reset:
            self._note_columns(source.n_features, source.feature_names)
        else:
            self._check_features(source)

    def _weights(self, sample_weight, n_rows):
        """Return the weights as floats, or say what was got."""
        if sample_weight is None:
            return None
        weights = as_array(sample_weight, "sample_weight")
        if weights.ndim == 0 and weights.dtype.kind in "fiu":  # one for all rows
            weights = np.full(n_rows, weights)
        if weights.dtype.kind not in "fiub" or weights.shape != (n_rows,):
            raise DataError(
                f"sample_weight must be an array of one number for each of the {n_rows} rows, got "
                f"{weights.dtype} of shape {weights.shape}; give numpy.asarray(sample_weight, dtype=float)"
            )
        refuse_large_integers(weights, "sample_weight")
        return weights.astype(np.float64)

    def _check_targets(self, targets):
        """Refuse further targets of another number than those of the fit."""
        known = self._model.schema.targets.count
        if targets.count != known:
            raise DataError(f"the model was fitted on {known} targets, got {targets.count}")

    def _check_features(self, source):
        """Refuse a RowSource whose features are not those of the fit."""
        if source.n_features != self.n_features_in_:
            raise DataError(f"the model was fitted on {self.n_features_in_} features, got rows of {source.n_features}")
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is not None and source.feature_names is not None and list(fitted) != list(source.feature_names):
            raise DataError(
                f"the model was fitted on the features {', '.join(map(str, fitted))}, in this order, got "
                f"{', '.join(source.feature_names)}; choose them with open_rows(..., columns=[...])"
            )

    def _validate(self, X, y=_NO_TARGETS, *, reset):
        """Return rows, and targets or None, as arrays, checked as scikit-learn does; a table to be encoded as it is."""
        for name, values in (("X", X), ("y", y)):
            if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
                raise DataError(f"{name} has masked values, which hold no number; fill them in or drop the rows")
        check_targets(y, "the target")
        if getattr(getattr(y, "dtype", None), "kind", None) == "U":  # numbers written as text
            y = y.astype(object)
        refuse_large_integers(y, "y")
        refuse_series(X)
        X = as_objects(whole_table(X))
        alone, frame = y is _NO_TARGETS, frame_columns(X)
        if frame is None and not hasattr(X, "__array__") and (remedy := lazy_remedy(X)):
            raise DataTypeError(f"X must have its values, got a {type(X).__name__}; {remedy}")
        given = {"X": X} if alone else {"X": X, "y": y}
        if frame is not None:
            frame.header.check_names()
        plain = self._categories_by_type() if reset else self._model.schema.table is None
        if frame is None or (frame.numeric and plain):
            if (kind := getattr(getattr(X, "dtype", None), "kind", None)) in ("M", "m"):
                raise Place("X", None, str).wrong_kind(kind, X.dtype)
            refuse_large_integers(X, "X")
            rows = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
            numeric = {} if alone else {"multi_output": True, "y_numeric": True}
            try:
                found = validate_data(self, **given, **rows, **numeric, reset=reset)
            except (TypeError, ValueError) as error:
                if frame is None and not sparse.issparse(X) and as_array(X, "X").dtype.kind in "OSUVMm":
                    raise DataTypeError(
                        f"X cannot be read as numbers ({error}); give dates as a DataFrame, and a dict of columns as "
                        "open_rows(X, target=y)"
                    ) from error
                raise
            found = (found, None) if alone else found
            if frame is None or is_finite(found[0]):
                if reset and frame is not None and frame.names is not None:
                    warn_of_row_numbers(frame.names, frame.whole())
                return found
        validate_data(self, **given, skip_check_array=True, reset=reset)  # names and number of the columns
        return X, None if alone else check_array(y, ensure_2d=False, dtype="numeric", input_name="y")

    def _rows(self, X):
        """Return rows to be transformed or predicted as a RowSource with the features of the fit."""
        if (plain := plain_rows(X)) is not None:
            if X.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_"):
                validate_data(self, X, skip_check_array=True, reset=False)  # says what is wrong with the columns
            return plain if self._model.schema.table is None else self._encoded(plain, reset=False)
        if (frame := self._frame_rows(X)) is not None:
            return frame
        X = open_rows(X) if is_records(X) or is_stream(X) else X
        if isinstance(X, RowSource):
            if getattr(X, "encoder", None) is not None or getattr(X, "encoded", False):
                return X
            self._check_features(X)
        elif isinstance(X, np.memmap) or is_dask(X):
            return self._rows(open_rows(X))
        else:
            X = open_rows(self._validate(X, reset=False)[0])
        return self._encoded(X, reset=False)

    def _judged(self, X, y, sample_weight):
        """Return rows, targets and weights to compare predictions with; a RowSource brings its own."""
        X, y, sample_weight, _ = opened(X, y, sample_weight)
        if isinstance(X, RowSource) and y is None:
            if X.n_targets == 0:
                raise DataError(
                    "the RowSource has no targets to compare with; name them on opening: open_rows(..., target=...)"
                )
            passes = self._passes(without_features(X))
            y, sample_weight = passes.targets(), passes.weights()
        return at_once(X, y, sample_weight)

    def _passes(self, source, weight_unit=1.0, journal=None):
        wanted = getattr(self, "progress", False)
        progress = None if wanted is False else progress_callback(wanted)
        if hasattr(self, "_callback_fit_ctx"):
            progress = with_callback_progress(self, progress)
        return RowPasses(source, self.memory_budget, progress, weight_unit, journal)

    def _training_passes(self, source, journal=None):
        """Return passes over the rows of a new fit, their weights in a unit of their own."""
        passes = self._passes(source, journal=journal)
        passes.normalise_weights()
        return passes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        try:
            made = make_kernel(self.kernel)
            tags.input_tags.pairwise, tags.input_tags.sparse = made.pairwise, made.accepts_sparse
            tags.input_tags.allow_nan = tags.input_tags.string = not made.pairwise
        except ParameterError:  # fit says what is wrong with the kernel
            pass
        return tags
