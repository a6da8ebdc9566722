"""Exact quantities from the whole kernel matrix, for n up to a few thousand: the reference for tests and experiments.

Functions take `scaled_ridge`, the paper's n lambda, and the kernel matrix K or (except `kernel_ridge` and
`weighted_kernel`) its `Spectrum`, to decompose K only once. An approximation L can replace K everywhere. With weights
w, pass `weighted_kernel(K, w)`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.fft
import scipy.linalg
from scipy import sparse

from ridgemark.backends import Floats
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels import Kernel, Linear, make_kernel
from ridgemark.kernels.base import count_rows
from ridgemark.linalg import check_range, numerical_rank, symmetric_eigen
from ridgemark.rows import dense

_MOST_ROWS = 20_000  # a kernel matrix of 3 GiB; larger problems are refused


@dataclass(frozen=True)
class Spectrum:
    """`K = U diag(eigenvalues) U'`, eigenvalues descending and at least 0; null directions may be omitted."""

    eigenvalues: Floats  # (r,)
    eigenvectors: Floats  # (n, r)

    @property
    def n_rows(self) -> int:
        """Number of rows of K."""
        return len(self.eigenvectors)


@dataclass(frozen=True)
class Risk:
    """In-sample risk of eq. (4): `E |f - f*|^2 / n = squared_bias + variance`."""

    squared_bias: float
    variance: float

    @property
    def total(self) -> float:
        """The risk."""
        return self.squared_bias + self.variance


@dataclass(frozen=True)
class KernelRidgeFit:
    """Exact kernel ridge regression: `f(x) = k(x, X) dual_coef + intercept`."""

    dual_coef: Floats
    intercept: Floats | float
    fitted: Floats

    def predict(self, cross_kernel: Floats) -> Floats:
        """Return predictions from the kernel between new rows (first axis) and the training rows."""
        return cross_kernel @ self.dual_coef + self.intercept


def kernel_matrix(X: Any, kernel: Any = "gaussian", bandwidth: Any = None) -> Floats:
    """Return K, exactly symmetric, computed in float64 also for rows in single precision."""
    made = make_kernel(kernel, bandwidth)
    _check_size(count_rows(X))
    return np.asarray(made(_in_double(made, X)), dtype=np.float64)


def kernel_spectrum(X: Any, kernel: Any = "gaussian", bandwidth: Any = None) -> Spectrum:
    """Return the spectrum of the kernel matrix of the rows; for a linear kernel, from the singular values of X.

    Squared singular values of X are relatively more accurate than eigenvalues of X X'.
    """
    made = make_kernel(kernel, bandwidth)
    if not isinstance(made, Linear):
        return spectrum(kernel_matrix(X, made))
    rows = dense(made.moved(_in_double(made, X)))
    left, singular, _ = scipy.linalg.svd(rows, full_matrices=False)
    with np.errstate(over="ignore"):
        return Spectrum(check_range(singular**2), left)


def spectrum(kernel_matrix: Any) -> Spectrum:
    """Return the eigendecomposition of a symmetric positive semidefinite matrix."""
    if isinstance(kernel_matrix, Spectrum):
        return kernel_matrix
    return Spectrum(*symmetric_eigen(_square(kernel_matrix), definite=True))


def weighted_kernel(kernel_matrix: Any, weights: Any) -> Floats:
    """Return `W^1/2 K W^1/2`, which replaces K in every statement about weighted rows."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != np.shape(kernel_matrix)[:1] or not (np.isfinite(w).all() and (w >= 0).all() and (w > 0).any()):
        raise DataError("weights need one finite number of at least 0 for each row, and at least one positive number")
    root = np.sqrt(w)
    return root[:, None] * _square(kernel_matrix) * root[None, :]


def leverage_scores(kernel_matrix: Any, scaled_ridge: float) -> Floats:
    """Return the ridge leverage scores `l_i = [K (K + n lambda I)^-1]_ii`, each in [0, 1] (eq. 8)."""
    s = spectrum(kernel_matrix)
    return np.clip(s.eigenvectors**2 @ _shrinkage(s, scaled_ridge), 0.0, 1.0)


def effective_dimension(kernel_matrix: Any, scaled_ridge: float) -> float:
    """Return `d_eff = tr K (K + n lambda I)^-1`, the sum of the scores."""
    return float(_shrinkage(spectrum(kernel_matrix), scaled_ridge).sum())


def max_degrees_of_freedom(
    kernel_matrix: Any, scaled_ridge: float, form: Literal["definition", "operator"] = "definition"
) -> float:
    """Return `d_mof = n max_i l_i`; as "operator", `n |K (K + n lambda I)^-1|_op`, which the paper's Table 1 prints."""
    s = spectrum(kernel_matrix)
    if form == "definition":
        return s.n_rows * float(leverage_scores(s, scaled_ridge).max())
    if form == "operator":
        return s.n_rows * float(_shrinkage(s, scaled_ridge).max(initial=0.0))
    raise ParameterError(f'form must be "definition" or "operator", got {form!r}')


def rank_leverage_scores(kernel_matrix: Any, rank: int) -> Floats:
    """Return the scores relative to the best rank-k subspace (Gittens and Mahoney), `sum_{j<=k} U_ij^2`."""
    s = spectrum(kernel_matrix)
    if not 1 <= rank <= s.n_rows:
        raise ParameterError(f"rank must lie between 1 and the number of rows, {s.n_rows}, got {rank!r}")
    return (s.eigenvectors[:, :rank] ** 2).sum(axis=1)


def kernel_ridge(
    kernel_matrix: Any, y: Any, scaled_ridge: float, weights: Any = None, fit_intercept: bool = False
) -> KernelRidgeFit:
    """Minimise `sum_i w_i (y_i - f(x_i))^2 + scaled_ridge |f|^2`, with an unpenalised joint intercept if asked.

    With `A = W^1/2 K W^1/2 + scaled_ridge I` and `P = W^1/2 A^-1 W^1/2`: dual_coef = P (y - c), and an intercept
    makes the dual coefficients sum to zero, c = 1'P y / 1'P 1.
    """
    K = _square(kernel_matrix)
    y = np.asarray(y, dtype=np.float64)
    w = np.ones(len(K)) if weights is None else np.asarray(weights, dtype=np.float64)
    if y.shape[:1] != (len(K),) or w.shape != (len(K),) or not np.isfinite(y).all():
        raise DataError(
            f"y and weights need one finite entry for each of the {len(K)} rows, got shapes {y.shape} and {w.shape}"
        )
    s = spectrum(weighted_kernel(K, w))
    root = np.sqrt(w)

    def apply(values: Floats) -> Floats:
        rotated = s.eigenvectors.T @ (root * values.T).T
        return (root * (s.eigenvectors @ (rotated.T / (s.eigenvalues + _positive(scaled_ridge))).T).T).T

    intercept: Floats | float = 0.0
    if fit_intercept:
        ones = apply(np.ones(len(K)))
        intercept = ones @ y / ones.sum()
    dual_coef = apply(y - intercept)
    return KernelRidgeFit(dual_coef, intercept, K @ dual_coef + intercept)


def risk(kernel_matrix: Any, signal: Any, noise_variance: float, scaled_ridge: float) -> Risk:
    """Return the in-sample risk of kernel ridge regression for a known signal f* and noise variance (eq. 4).

    `squared_bias = n lambda^2 |(K + n lambda I)^-1 f*|^2`, `variance = (noise_variance/n) tr K^2 (K + n lambda I)^-2`.
    """
    s = spectrum(kernel_matrix)
    signal = np.asarray(signal, dtype=np.float64)
    if signal.shape != (s.n_rows,) or not np.isfinite(signal).all():
        raise DataError(f"signal needs one finite value for each of the {s.n_rows} rows, got shape {signal.shape}")
    if not 0 <= noise_variance < np.inf:
        raise ParameterError(f"noise_variance must be at least 0 and finite, got {noise_variance!r}")
    kept = _shrinkage(s, scaled_ridge)
    inside = s.eigenvectors.T @ signal
    outside = signal - s.eigenvectors @ inside  # in null directions omitted from the spectrum the fit is zero
    missed = scaled_ridge / (s.eigenvalues + scaled_ridge)
    lost = float(missed**2 @ inside**2) + float(outside @ outside)
    return Risk(lost / s.n_rows, noise_variance * float(kept @ kept) / s.n_rows)


def nystrom_approximation(kernel_matrix: Any, sketch: Any, scaled_sketch_ridge: float = 0.0) -> Floats:
    """Return `L = K S (S'KS)^+ S'K`, or with n gamma > 0 the regularised `L_gamma = K S (S'KS + n gamma I)^-1 S'K`.

    Computed as `K^1/2 Q diag(r^2/(r^2 + n gamma)) Q' K^1/2` from the singular vectors Q and values r of `K^1/2 S`.
    Then `L_gamma <= L <= K` holds despite rounding, which it would not after forming S'KS.
    """
    factor = _nystrom_factor(spectrum(kernel_matrix), sketch, scaled_sketch_ridge)
    return factor @ factor.T


def nystrom_spectrum(kernel_matrix: Any, sketch: Any, scaled_sketch_ridge: float = 0.0) -> Spectrum:
    """Return the spectrum of `nystrom_approximation` without forming it: O(n p^2) plus one product with K^1/2."""
    factor = _nystrom_factor(spectrum(kernel_matrix), sketch, scaled_sketch_ridge)
    left, singular, _ = scipy.linalg.svd(factor, full_matrices=False)
    return Spectrum(singular**2, left)


def psi(kernel_matrix: Any, scaled_sketch_ridge: float) -> Floats:
    """Return `Psi = Phi^1/2 U'` with `Phi = Sigma (Sigma + n gamma I)^-1`; column i has squared length l_i(gamma)."""
    s = spectrum(kernel_matrix)
    return np.sqrt(_shrinkage(s, scaled_sketch_ridge))[:, None] * s.eigenvectors.T


def spectral_error(kernel_matrix: Any, sketch: Any, scaled_sketch_ridge: float) -> float:
    """Return Theorem 1's `lambda_max(Phi - Phi^1/2 U' S S' U Phi^1/2)`: the t of a given sketch."""
    columns = psi(kernel_matrix, scaled_sketch_ridge)
    sketched = columns @ _sketch(sketch, columns.shape[1])
    return float(scipy.linalg.eigvalsh(columns @ columns.T - sketched @ sketched.T)[-1])


def column_sketch(indices: Any, probabilities: Any) -> Floats:
    """Return the sketch of p column draws: `S[i_j, j] = 1/sqrt(p p_{i_j})` (paper, Theorem 2).

    Parameters
    ----------
    indices : array of shape (p,)
        The columns drawn with replacement, including repeats.
    probabilities : array of shape (n,)
        The probability of every column; the sum is one, and drawn columns have positive probability.
    """
    indices = np.asarray(indices, dtype=np.intp)
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if abs(probabilities.sum() - 1.0) > 1e-8 or (probabilities < 0).any():
        raise ParameterError(f"probabilities must be at least 0 and sum to one, got a sum of {probabilities.sum():.6g}")
    if (probabilities[indices] <= 0).any():
        raise ParameterError("a drawn column has probability zero; indices and probabilities do not match")
    sketch = np.zeros((len(probabilities), len(indices)))
    sketch[indices, np.arange(len(indices))] = 1.0 / np.sqrt(len(indices) * probabilities[indices])
    return sketch


def gaussian_sketch(n: int, p: int, rng: np.random.Generator) -> Floats:
    """Return independent normal entries of variance 1/p."""
    return rng.standard_normal((n, p)) / np.sqrt(p)


def rademacher_sketch(n: int, p: int, rng: np.random.Generator) -> Floats:
    """Return independent random signs over sqrt(p)."""
    return rng.choice([-1.0, 1.0], size=(n, p)) / np.sqrt(p)


def cosine_sketch(n: int, p: int, rng: np.random.Generator) -> Floats:
    """Return p random columns of the orthonormal cosine transform (DCT-II) with random row signs, times sqrt(n/p)."""
    return _subsampled(scipy.fft.dct(np.eye(n), norm="ortho", axis=0), p, rng)


def hadamard_sketch(n: int, p: int, rng: np.random.Generator) -> Floats:
    """Return p random columns of a Hadamard transform with random row signs; rows are padded to a power of two."""
    size = 1 << max(0, n - 1).bit_length()
    return _subsampled(scipy.linalg.hadamard(size)[:n] / np.sqrt(size), p, rng)


def _nystrom_factor(s: Spectrum, sketch: Any, scaled_sketch_ridge: float) -> Floats:
    """Return the n x rank factor of L or L_gamma."""
    if not 0 <= scaled_sketch_ridge < np.inf:
        raise ParameterError(f"scaled_sketch_ridge must be at least 0, got {scaled_sketch_ridge!r}")
    sketch = _sketch(sketch, s.n_rows)
    root = np.sqrt(s.eigenvalues)[:, None]
    left, singular, _ = scipy.linalg.svd(root * (s.eigenvectors.T @ sketch), full_matrices=False)
    rank = numerical_rank(singular)
    kept = np.sqrt(singular[:rank] ** 2 / (singular[:rank] ** 2 + scaled_sketch_ridge))
    return s.eigenvectors @ (root * left[:, :rank]) * kept


def _shrinkage(s: Spectrum, scaled_ridge: float) -> Floats:
    """Return `sigma/(sigma + n lambda)` for every eigenvalue."""
    return s.eigenvalues / (s.eigenvalues + _positive(scaled_ridge))


def _positive(scaled_ridge: float) -> float:
    if not 0 < scaled_ridge < np.inf:
        raise ParameterError(f"scaled_ridge (n times lambda) must be positive and finite, got {scaled_ridge!r}")
    return float(scaled_ridge)


def _square(kernel_matrix: Any) -> Floats:
    if isinstance(kernel_matrix, Spectrum):
        raise DataError("this function needs the kernel matrix, not its spectrum")
    K = np.asarray(kernel_matrix, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise DataError(f"a kernel matrix must be square and not empty, got shape {K.shape}")
    _check_size(len(K))
    single = getattr(kernel_matrix, "dtype", None) == np.float32
    with np.errstate(invalid="ignore"):
        asymmetry = float(np.abs(K - K.T).max())
    if not asymmetry <= (1e-5 if single else 1e-8) * float(np.abs(K).max()):
        raise DataError(
            f"a kernel matrix must be finite and symmetric, got one that differs from its transpose by {asymmetry:.3g}"
        )
    return (K + K.T) / 2


def _in_double(kernel: Kernel, X: Any) -> Any:
    return kernel._checked(X).astype(np.float64, copy=False)


def _check_size(n: int) -> None:
    if n > _MOST_ROWS:
        raise ParameterError(
            f"exact computations hold the {n} x {n} kernel matrix ({8 * n * n / 2**30:.1f} GiB) and take n^3 time; "
            f"they are meant for at most {_MOST_ROWS} rows; use NystromRidge, or a sample of the rows"
        )


def _sketch(sketch: Any, n: int) -> Any:
    """Return a sketch as a dense or sparse matrix of n rows; a column sketch is mostly zeros, so kept sparse."""
    S = sketch.astype(np.float64) if sparse.issparse(sketch) else np.asarray(sketch, dtype=np.float64)
    if S.ndim != 2 or S.shape[0] != n:
        raise DataError(f"a sketch needs shape ({n}, p), got {S.shape}")
    return S


def _subsampled(transform: Floats, p: int, rng: np.random.Generator) -> Floats:
    n, width = transform.shape
    if p > width:
        raise ParameterError(f"p must be at most {width}, the number of columns of the transform, got {p}")
    columns = rng.choice(width, size=p, replace=False)
    signs = rng.choice([-1.0, 1.0], size=(n, 1))
    return signs * transform[:, columns] * np.sqrt(width / p)
