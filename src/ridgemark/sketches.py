"""Sketching matrices S of shape (n, p): weighted column draws and random projections, all with `E[S S'] = I`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
from numpy.typing import NDArray

from ridgemark.errors import ParameterError

Floats = NDArray[np.float64]


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
        msg = f"probabilities must be at least 0 and sum to one, got a sum of {probabilities.sum():.6g}"
        raise ParameterError(msg)
    if (probabilities[indices] <= 0).any():
        msg = "a drawn column has probability zero; indices and probabilities do not match"
        raise ParameterError(msg)
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


def _subsampled(transform: Floats, p: int, rng: np.random.Generator) -> Floats:
    n, width = transform.shape
    if p > width:
        msg = f"p must be at most {width}, the number of columns of the transform, got {p}"
        raise ParameterError(msg)
    columns = rng.choice(width, size=p, replace=False)
    signs = rng.choice([-1.0, 1.0], size=(n, 1))
    return signs * transform[:, columns] * np.sqrt(width / p)
