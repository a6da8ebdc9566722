"""Public functions: leverage scores, effective dimension, and loading of models."""

from os import PathLike
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ridgemark import exact
from ridgemark.errors import ParameterError
from ridgemark.estimators import ExactKernelRidge, NystromClassifier, NystromRegressor, NystromRidge
from ridgemark.estimators.computing import as_numpy, library_of, on_device
from ridgemark.estimators.saving import load_model
from ridgemark.kernels import Kernel, Linear, make_kernel
from ridgemark.leverage import Bracket, ScoreBracket, exact_bracket
from ridgemark.parameters import positive_count, real_number
from ridgemark.passes import RowPasses, progress_callback
from ridgemark.rows import BaseRows, RowSource, is_dask, open_rows, refuse_large_integers
from ridgemark.sampling import make_generator
from ridgemark.selection.pilot import PILOT, draw_pilot
from ridgemark.tables import encoded_by_content
from ridgemark.tuning import choose_kernel


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
    device: str = "cpu",
    random_state: Any = None,
    progress: Any = False,
) -> ScoreBracket:
    """Return lower and upper bounds of the ridge leverage score of every row.

    `l_i = [K (K + n lambda I)^-1]_ii`. The approximate method is the paper's (section 3.5): p rows are drawn by `K_ii`;
    two passes take O(n p^2) time and O(p^2) memory besides the result.

    Parameters
    ----------
    X : array, sparse matrix, tensor, DataFrame, of Dask too, or RowSource
        The rows; columns that are not numbers are encoded as in `NystromRidge`.
    ridge : float
        Regularisation lambda; `ridge * n` is added to the diagonal of the kernel matrix.
    kernel : str, Kernel or callable, default="gaussian"
        The kernel; it is not tuned, since there are no targets.
    bandwidth : "median", float or array of shape (n_features,), default="median"
        The kernel's bandwidth.
    method : {"approximate", "exact"}
        "exact" needs the whole kernel matrix.
    n_landmarks : int, optional
        p, the number of rows in the pilot; by default 500. With all distinct rows the bracket is exact up to rounding.
    refine : int, default=0
        Number of times to redraw the pilot with the scores found; each time takes two more passes.
    sample_weight : array of shape (n,), optional
        Sample weights; a weight of 2 counts the row twice.
    device : str, default="cpu"
        As for `NystromRidge`: where blocks of rows are computed. The scores are NumPy arrays.
    random_state : int, RandomState, Generator or None
        Random seed.
    progress : bool or callable, default=False
        As for `NystromRidge`: whether to report the progress of each pass, or a callback for it.

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
    if not 0 < real_number(ridge) < np.inf:
        raise ParameterError(f"ridge must be a positive finite number (lambda), got {ridge!r}")
    if method not in ("approximate", "exact"):
        raise ParameterError(f'method must be "approximate" or "exact", got {method!r}')
    n_pilot = PILOT if n_landmarks is None else positive_count(n_landmarks, "n_landmarks")
    rounds = 0 if refine == 0 else positive_count(refine, "refine")
    with on_device(device, library_of(X)):
        source = _encoded(_open(as_numpy(X), as_numpy(sample_weight)), kernel)
        rng, told = make_generator(random_state), progress_callback(progress)
        passes = RowPasses(source, progress=told)
        distinct = passes.distinct_rows()
        made, _ = choose_kernel(kernel, bandwidth, passes, rng)
        scaled_ridge = float(ridge) * float(passes.row_counts().sum())
        if method == "exact":
            return _exact_scores(passes, made, scaled_ridge)
        passes = RowPasses(source, progress=told)  # counts the cost of the scores, without that of the bandwidth
        pilot = draw_pilot(passes, made, distinct, n_pilot, rng, smallest_ridge=scaled_ridge)
        return pilot.refined_scores(scaled_ridge, rounds, rng)


def _exact_scores(passes: RowPasses, kernel: Kernel, scaled_ridge: float) -> ScoreBracket:
    rows, counts = passes.take(np.arange(passes.source.n_rows)), passes.row_counts()
    if isinstance(kernel, Linear):  # its kernel matrix would lose small directions to rounding
        root = sparse.diags(np.sqrt(counts))
        spectrum = exact.kernel_spectrum(root @ kernel.moved(rows.features), Linear())
    else:
        spectrum = exact.spectrum(exact.weighted_kernel(exact.kernel_matrix(rows.features, kernel), counts))
    scores = exact.leverage_scores(spectrum, scaled_ridge)
    return exact_bracket(scores, scaled_ridge, float(spectrum.eigenvalues.sum()), passes.weights())


def effective_dimension(X: Any, **options: Any) -> Bracket:
    """Return bounds of `d_eff = tr K (K + n lambda I)^-1`; takes the arguments of `leverage_scores`."""
    return leverage_scores(X, **options).effective_dimension


def load(path: str | PathLike[str], kernel: Any = None, loss: Any = None) -> Any:
    """Return the fitted model that `save` wrote to a file; no code in the file is run.

    Parameters
    ----------
    path : str or path
        The file.
    kernel : callable or Kernel, optional
        The kernel of the model, required if it is or contains user code, which a file does not hold.
    loss : Loss or its class, optional
        The loss of a `NystromRegressor`, required if it is user code.
    """
    estimators = [NystromRidge, NystromClassifier, NystromRegressor, ExactKernelRidge]
    model, _ = load_model(path, estimators, kernel, loss)
    return model


def _encoded(source: RowSource, kernel: Any) -> RowSource:
    """Return rows of a table as features, encoded by their content; rows of numbers as they are."""
    if not isinstance(source, BaseRows) or source.encoder is not None or make_kernel(kernel).pairwise:
        return source
    if source.finite and not source.schema_options:
        return source
    return encoded_by_content(source)


def _open(X: Any, sample_weight: Any) -> RowSource:
    if isinstance(X, RowSource):
        if sample_weight is not None:
            raise ParameterError("a RowSource has its own weights; give `weight` to open_rows instead of sample_weight")
        return X
    refuse_large_integers(sample_weight, "sample_weight")
    given = sample_weight is None or is_dask(sample_weight)
    return open_rows(X, weight=sample_weight if given else np.asarray(sample_weight))
