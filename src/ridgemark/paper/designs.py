"""Spectrum of the kernel matrix and targets for rows of Table 1, each computed once."""

from dataclasses import dataclass, field

import numpy as np

from ridgemark import exact
from ridgemark.backends import Floats
from ridgemark.exact import Spectrum
from ridgemark.kernels import Kernel
from ridgemark.paper.data import DataSet, Sets, how_to_get, standardised
from ridgemark.paper.printed import MOST_ROWS, PrintedRow
from ridgemark.paper.synthetic import N_ROWS, NOISE_VARIANCE, synthetic_points, synthetic_signal


@dataclass(frozen=True, eq=False)
class Design:
    """The data of an experiment on one row of Table 1."""

    source: str  # name of the set that supplies the inputs
    spectrum: Spectrum
    targets: Floats | None  # None if the set is a stand-in

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.spectrum.n_rows


@dataclass(frozen=True, eq=False)
class Designs:
    """Opens rows of Table 1 from the available sets."""

    sets: Sets
    seed: int
    _spectra: dict[tuple[str, str], Spectrum] = field(default_factory=dict)

    def source(self, row: PrintedRow) -> str | None:
        """Return the name of the set that supplies the row's inputs, or None."""
        if row.file is None:
            return "synthetic"
        return next((name for name in (row.file, row.stand_in) if name in self.sets), None)

    def open(self, row: PrintedRow) -> Design | None:
        """Return the row's design, or None if its data are missing."""
        source = self.source(row)
        if source is None:
            return None
        inputs, targets = self.rows(source)
        own = source in (row.file, "synthetic")
        spectrum = self._spectrum(source, inputs, row.make_kernel(), raw=row.kernel != "RBF")
        return Design(source, spectrum, targets if own else None)

    def rows(self, source: str) -> tuple[Floats, Floats]:
        """Return raw inputs and targets of a set, at most its first 2,000 rows.

        The paper has no intercept: targets of real data are centred.
        """
        if source == "synthetic":
            return synthetic_rows(N_ROWS, self.seed)
        dataset: DataSet = self.sets[source]
        targets = dataset.y[:MOST_ROWS]
        return dataset.X[:MOST_ROWS], targets - targets.mean()

    def missing(self, row: PrintedRow) -> str:
        """Return what is missing in the row and why; empty if nothing is."""
        source = self.source(row)
        if row.file is None or source == row.file:
            return ""
        if source is None:
            return how_to_get(row.stand_in or row.file)
        return (
            f"Inputs are those of {source}, which have the same distribution: d_eff, d_mof and the ratios shown depend "
            "only on inputs. The ratios that take the signal from this set's targets are missing. "
            f"{how_to_get(row.file)}"
        )

    def _spectrum(self, source: str, inputs: Floats, kernel: Kernel, raw: bool) -> Spectrum:
        key = (source, repr(kernel))
        if key not in self._spectra:
            self._spectra[key] = exact.kernel_spectrum(inputs if raw else standardised(inputs), kernel)
        return self._spectra[key]


def synthetic_rows(n_rows: int, seed: int) -> tuple[Floats, Floats]:
    """Return the points of the synthetic design and targets: its signal plus noise."""
    points = synthetic_points(n_rows, seed)
    noise = np.random.default_rng([seed, n_rows]).standard_normal(n_rows)
    return points[:, None], synthetic_signal(points) + np.sqrt(NOISE_VARIANCE) * noise
