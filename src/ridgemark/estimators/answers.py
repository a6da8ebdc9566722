"""How an estimator answers: public names of what a fit knows, in the shape of its targets, and finite."""

import numpy as np

from ridgemark.errors import NumericalError


class FittedName(property):
    """A public name of what a fit knows: read from the estimator's record, and absent where that has none.

    Parameters
    ----------
    read : callable
        Takes the record.
    optional : bool, default=False
        Whether None means that the name is absent.
    reason : str, default=""
        Why a fit may leave none.
    """

    def __init__(self, read, optional=False, reason=""):
        super().__init__(self._get)
        self._read, self._optional, self._reason, self._name = read, optional, reason, "?"

    def __set_name__(self, owner, name):
        self._name = name

    def _get(self, estimator):
        record = getattr(estimator, "_model", None)
        value = None if record is None else self._read(record)
        if record is None or (self._optional and value is None):
            raise AttributeError(
                f"{type(estimator).__name__} has no attribute {self._name}: it is not fitted, or its fit left none"
                f"{self._reason}",
                name=self._name,
                obj=estimator,
            )
        return value


def in_form(model, values):
    """Return what has one entry per target, on its last axis, in the shape of the targets of the fit; None for None."""
    if values is None or not model.schema.targets.flat:
        return values
    return float(values[0]) if values.ndim == 1 else values[..., 0]


def check_coefficients(dual_coef, intercept, remedy="rescale the targets or choose a larger ridge"):
    """Refuse a function whose coefficients exceed the floating-point range."""
    if not (np.isfinite(dual_coef).all() and np.isfinite(intercept).all()):
        raise NumericalError(f"the coefficients exceed the floating-point range; {remedy}")


def in_range(values, what, remedy):
    """Return an array with one entry, or several, for each row; refuse it where one is not a finite number."""
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise NumericalError(f"{what} for row {row} exceeds the floating-point range; {remedy}")
    return values
