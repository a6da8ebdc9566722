"""Lambda and bandwidth by cross validation, as stated in the paper: exact leave-one-out over a grid."""

from dataclasses import dataclass

import numpy as np

from ridgemark import exact
from ridgemark.backends import Floats
from ridgemark.exact import Spectrum
from ridgemark.kernels import Linear
from ridgemark.paper.data import standardised
from ridgemark.paper.designs import Designs
from ridgemark.paper.printed import PrintedRow, gaussian
from ridgemark.paper.synthetic import RISK_TOLERANCE

BANDWIDTHS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_DECADES = 10
_DECADES_LOW_RANK = 18  # singular values of raw columns are accurate over a much wider range


@dataclass(frozen=True)
class ChosenRidge:
    """The choice of leave-one-out on one set with one kernel, and the printed values.

    Errors are mean squared leave-one-out residuals in units of the targets' variance.
    """

    kernel: str
    source: str
    n_rows: int
    printed_bandwidth: float | None
    printed_ridge: float
    printed_error: float
    bandwidth: float | None
    ridge: float
    error: float
    effective_dimension: float  # at the chosen lambda times epsilon
    on_edge: bool  # whether the best value is at the end of the grid


def fitted(spectrum: Spectrum, targets: Floats, scaled_ridge: float) -> Floats:
    """Return `K (K + n lambda I)^-1 y`."""
    shrinkage = spectrum.eigenvalues / (spectrum.eigenvalues + scaled_ridge)
    return spectrum.eigenvectors @ (shrinkage * (spectrum.eigenvectors.T @ targets))


def leave_one_out_errors(spectrum: Spectrum, targets: Floats, scaled_ridges: Floats) -> Floats:
    """Return for every n lambda the mean of `((y_i - f_i)/(1 - l_i))^2`, exact leave-one-out at that n lambda."""
    shrinkage = spectrum.eigenvalues[:, None] / (spectrum.eigenvalues[:, None] + scaled_ridges)
    squares = spectrum.eigenvectors**2
    fits = spectrum.eigenvectors @ (shrinkage * (spectrum.eigenvectors.T @ targets)[:, None])
    # 1 - l_i is at least n lambda/(n lambda + K_ii), also where rounding makes it zero.
    floor = scaled_ridges / (scaled_ridges + (squares @ spectrum.eigenvalues)[:, None])
    residuals = (targets[:, None] - fits) / np.maximum(1.0 - squares @ shrinkage, floor)
    return np.mean(residuals**2, axis=0)


def leave_one_out_error(spectrum: Spectrum, targets: Floats, scaled_ridge: float) -> float:
    """Return the leave-one-out error at one n lambda."""
    return float(leave_one_out_errors(spectrum, targets, np.array([scaled_ridge]))[0])


def leave_one_out_ridge(spectrum: Spectrum, targets: Floats) -> float:
    """Return the n lambda of the grid with the smallest leave-one-out error."""
    ridges = scaled_ridges(spectrum)
    return float(ridges[np.argmin(leave_one_out_errors(spectrum, targets, ridges))])


def scaled_ridges(spectrum: Spectrum) -> Floats:
    """Return the grid of n lambda: half decades down from 10 tr K, over 10 decades (18 for a low-rank kernel)."""
    low_rank = len(spectrum.eigenvalues) < spectrum.n_rows
    decades = _DECADES_LOW_RANK if low_rank else _DECADES
    return 10.0 ** np.arange(-decades, 1.01, 0.5) * float(spectrum.eigenvalues.sum())


def cross_validate(designs: Designs, row: PrintedRow, bandwidths: tuple[float, ...] = BANDWIDTHS) -> ChosenRidge | None:
    """Choose lambda, and for the RBF kernel the bandwidth, on the set of a row; None if the set has no targets."""
    design = designs.open(row)
    if design is None or design.targets is None:
        return None
    n, y = design.n_rows, design.targets
    tried = _spectra(designs, row, bandwidths)
    errors = np.array([leave_one_out_errors(s, y, scaled_ridges(s)) for s in tried.values()])
    best, at = np.unravel_index(np.argmin(errors), errors.shape)
    bandwidth, spectrum = list(tried.items())[best]
    scaled_ridge = float(scaled_ridges(spectrum)[at])
    edges = [at in (0, errors.shape[1] - 1), len(tried) > 1 and best in (0, len(tried) - 1)]
    return ChosenRidge(
        row.kernel,
        design.source,
        n,
        row.bandwidth,
        row.ridge,
        leave_one_out_error(design.spectrum, y, n * row.ridge) / float(y.var()),
        bandwidth,
        scaled_ridge / n,
        float(errors[best, at]) / float(y.var()),
        exact.effective_dimension(spectrum, RISK_TOLERANCE * scaled_ridge),
        any(edges),
    )


def _spectra(designs: Designs, row: PrintedRow, bandwidths: tuple[float, ...]) -> dict[float | None, Spectrum]:
    source = designs.source(row)
    assert source is not None
    inputs, _ = designs.rows(source)
    if row.kernel != "RBF":
        return {None: exact.kernel_spectrum(inputs, Linear() if row.kernel == "Linear" else row.make_kernel())}
    columns = standardised(inputs)
    return {b: exact.kernel_spectrum(columns, gaussian(b)) for b in bandwidths}
