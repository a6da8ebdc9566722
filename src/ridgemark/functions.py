"""The surface without estimators: scores and dimensions of rows."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np

from ridgemark import exact
from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import ParameterError
from ridgemark.leverage import Bracket, ScoreBracket, exact_bracket
from ridgemark.passes import RowPasses, row_weights
from ridgemark.rows import RowSource, open_rows
from ridgemark.sampling import make_generator
from ridgemark.selection import pilot_scores
from ridgemark.selection.base import positive_count
from ridgemark.selection.leverage import PILOT
from ridgemark.tuning import choose_kernel


@one_blas_thread()
def leverage_scores(
    X: Any,
    *,
    ridge: float,
    kernel: Any = "gaussian",
    bandwidth: Any = "median",
    method: Literal["approximate", "exact"] = "approximate",
    n_landmarks: int | None = None,
    refine: int = 0,
    sample_weight: Any = None,
    random_state: Any = None,
) -> ScoreBracket:
    """Return the ridge leverage scores of every row, from both sides.

    `l_i = [K (K + n lambda I)^-1]_ii`. The approximate method is the paper's (section 3.5): p rows drawn by `K_ii`, and
    two passes of O(n p^2) time and O(p^2) memory beside the answer.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame or RowSource
        The rows.
    ridge : float
        The paper's lambda.
    kernel, bandwidth
        As for `NystromRidge`.
    method : {"approximate", "exact"}
        "exact" needs the whole kernel matrix.
    n_landmarks : int, optional
        p, the rows drawn for the pilot; by default 500. All distinct rows make the bracket exact to rounding.
    refine : int, default=0
        How many times to draw the pilot again, by the scores found; two more passes each.
    sample_weight : array of shape (n,), optional
        How many rows each row counts for.
    random_state : int, RandomState, Generator or None
        Seed of the draw.

    Returns
    -------
    ScoreBracket
        `lower` and `upper` for every row, `effective_dimension` and `coherence` as brackets, `verdict()`.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import leverage_scores
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> scores = leverage_scores(X, ridge=1e-3, n_landmarks=200, random_state=0)
    >>> bool((scores.lower <= scores.upper).all())
    True
    """
    if not isinstance(ridge, Real) or isinstance(ridge, bool) or not 0 < float(ridge) < np.inf:
        msg = f"ridge must be a positive finite number (the paper's lambda), got {ridge!r}"
        raise ParameterError(msg)
    source = _open(X, sample_weight)
    rng = make_generator(random_state)
    passes = RowPasses(source)
    distinct = passes.distinct_rows()
    made = choose_kernel(kernel, bandwidth, source, distinct, rng)
    weights = passes.weights()
    scaled_ridge = float(ridge) * (source.n_rows if weights is None else float(weights.sum()))
    if method == "exact":
        rows = source.take(np.arange(source.n_rows))
        K = exact.weighted_kernel(exact.kernel_matrix(rows.features, made), row_weights(rows))
        return exact_bracket(exact.leverage_scores(K, scaled_ridge), scaled_ridge, float(np.trace(K)), weights)
    if method != "approximate":
        msg = f'method must be "approximate" or "exact", got {method!r}'
        raise ParameterError(msg)
    pilot = PILOT if n_landmarks is None else positive_count(n_landmarks, "n_landmarks")
    rounds = 0 if refine == 0 else positive_count(refine, "refine")
    passes = RowPasses(source)  # counts what the scores cost, without the look for a bandwidth
    return pilot_scores(passes, made, scaled_ridge, pilot, rounds, rng, distinct)


def effective_dimension(X: Any, **options: Any) -> Bracket:
    """Return `d_eff = tr K (K + n lambda I)^-1` from both sides; takes what `leverage_scores` takes."""
    return leverage_scores(X, **options).effective_dimension


def _open(X: Any, sample_weight: Any) -> RowSource:
    if isinstance(X, RowSource):
        if sample_weight is not None:
            msg = "a RowSource brings its own weights; give `weight` to open_rows instead of sample_weight"
            raise ParameterError(msg)
        return X
    return open_rows(X, weight=None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64))
