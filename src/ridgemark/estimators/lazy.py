"""Methods of rows that stay lazy on Dask collections."""

import copy
from functools import partial, wraps

from ridgemark.rows.dask import is_dask, lazy_rows


def lazy_on_dask(method):
    """Return the method, which for a Dask collection gives Dask arrays: each partition is computed when it is needed.

    The model at the time of the call is used, whatever becomes of the estimator.
    """

    @wraps(method)
    def wrapped(self, *arguments, **options):
        X, *more = arguments or (options.get("X"),)
        if not is_dask(X):
            return method(self, *arguments, **options)
        options.pop("X", None)
        return lazy_rows(partial(_call, copy.copy(self), method.__name__, more, options), X)

    return wrapped


def _call(model, name, arguments, options, rows):
    return getattr(model, name)(rows, *arguments, **options)
