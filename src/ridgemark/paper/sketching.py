"""Columns drawn as in the paper, the approximation they give, and the scores of section 3.5."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark import exact
from ridgemark.backends import Floats
from ridgemark.exact import Risk, Spectrum
from ridgemark.sampling import Draw, draw_with_replacement


def sketch(indices: NDArray[np.intp], weights: Floats, n_rows: int) -> Any:
    """Return the sparse sketch S of distinct columns; the diagonal of `S S'` holds their weights."""
    entries = (np.sqrt(weights), (indices, np.arange(len(indices))))
    return sparse.csc_matrix(entries, shape=(n_rows, len(indices)))


def approximation(spectrum: Spectrum, draw: Draw, scaled_sketch_ridge: float = 0.0) -> Spectrum:
    """Return the spectrum of L, or of L_gamma, for columns drawn with replacement.

    Repeated columns are merged with weights `count/(p p_i)`, which changes neither `S S'` nor L_gamma.
    """
    return exact.nystrom_spectrum(spectrum, sketch(draw.indices, draw.weights, spectrum.n_rows), scaled_sketch_ridge)


def diagonal(spectrum: Spectrum) -> Floats:
    """Return `K_ii` of every row."""
    return spectrum.eigenvectors**2 @ spectrum.eigenvalues


def approximate_scores(
    spectrum: Spectrum, scaled_ridge: float, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, int]:
    """Return the scores of section 3.5 from columns drawn by `K_ii`, and the number of distinct columns drawn.

    `l~_i = B_i' (B'B + n lambda I)^-1 B_i` with `B B' = L`: the scores of L in place of K.
    """
    pilot = draw_with_replacement(diagonal(spectrum), n_draws, rng)
    return exact.leverage_scores(approximation(spectrum, pilot), scaled_ridge), len(pilot.indices)


def columns_risk(
    spectrum: Spectrum, indices: NDArray[np.intp], signal: Floats, noise_variance: float, scaled_ridge: float
) -> Risk:
    """Return the risk of the approximation from these distinct columns."""
    columns = sketch(indices, np.ones(len(indices)), spectrum.n_rows)
    return exact.risk(exact.nystrom_spectrum(spectrum, columns), signal, noise_variance, scaled_ridge)
