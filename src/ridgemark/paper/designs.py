"""Rows of Table 1 opened: the spectrum of the kernel matrix and the targets, each computed once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ridgemark import exact
from ridgemark.exact import Spectrum
from ridgemark.kernels import Kernel
from ridgemark.paper.data import DataSet, Sets, how_to_get, standardised
from ridgemark.paper.printed import MOST_ROWS, PrintedRow
from ridgemark.paper.synthetic import N_ROWS, NOISE_VARIANCE, synthetic_points, synthetic_signal

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Design:
    """What an experiment on one row of Table 1 works on."""

    source: str  # the set the inputs come from
    spectrum: Spectrum
    targets: Floats | None  # None where the set at hand is a stand-in

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.spectrum.n_rows


@dataclass(frozen=True, eq=False)
class Designs:
    """Opens rows of Table 1 from the sets at hand."""

    sets: Sets
    seed: int
    _spectra: dict[tuple[str, str], Spectrum] = field(default_factory=dict)

    def source(self, row: PrintedRow) -> str | None:
        """Return the name of the set that the row's inputs are taken from; None where there is none."""
        if row.file is None:
            return "synthetic"
        return next((name for name in (row.file, row.stand_in) if name in self.sets), None)

    def open(self, row: PrintedRow) -> Design | None:
        """Return the row's design, or None where no data are at hand."""
        source = self.source(row)
        if source is None:
            return None
        inputs, targets = self.rows(source)
        own = source in (row.file, "synthetic")
        spectrum = self._spectrum(source, inputs, row.make_kernel(), raw=row.kernel != "RBF")
        return Design(source, spectrum, targets if own else None)

    def rows(self, source: str) -> tuple[Floats, Floats]:
        """Return raw inputs and targets of a set: all rows of it, the first 2,000 of a longer one.

        There is no intercept in the paper: targets of real data are measured from their mean.
        """
        if source == "synthetic":
            return synthetic_rows(N_ROWS, self.seed)
        found: DataSet = self.sets[source]
        targets = found.y[:MOST_ROWS]
        return found.X[:MOST_ROWS], targets - targets.mean()

    def missing(self, row: PrintedRow) -> str:
        """Say what of the row is missing and why; empty where nothing is."""
        source = self.source(row)
        if row.file is None or source == row.file:
            return ""
        if source is None:
            return how_to_get(row.stand_in or row.file)
        return (
            f"Inputs are those of {source}, which have the same distribution: d_eff, d_mof and the ratios shown depend "
            "on inputs alone. The ratios that take the signal from this set's targets are missing. "
            f"{how_to_get(row.file)}"
        )

    def _spectrum(self, source: str, inputs: Floats, kernel: Kernel, raw: bool) -> Spectrum:
        key = (source, repr(kernel))
        if key not in self._spectra:
            self._spectra[key] = exact.kernel_spectrum(inputs if raw else standardised(inputs), kernel)
        return self._spectra[key]


def synthetic_rows(n_rows: int, seed: int) -> tuple[Floats, Floats]:
    """Return the synthetic design's points and targets drawn around its signal."""
    points = synthetic_points(n_rows, seed)
    noise = np.random.default_rng([seed, n_rows]).standard_normal(n_rows)
    return points[:, None], synthetic_signal(points) + np.sqrt(NOISE_VARIANCE) * noise
