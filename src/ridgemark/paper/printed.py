"""Table 1 as printed in the paper, and the conventions that reproduce it."""

from dataclasses import dataclass, replace

import numpy as np

from ridgemark.kernels import Bernoulli, Gaussian, Kernel, Linear
from ridgemark.paper.synthetic import RIDGE

MOST_ROWS = 2000  # the first 2,000 rows of a Pumadyn set are used


@dataclass(frozen=True)
class PrintedRow:
    """One row of Table 1.

    Attributes
    ----------
    kernel : {"Bern", "Linear", "RBF"}
        RBF is `exp(-|x - z|^2/bandwidth^2)` on standardised columns; linear rows use raw columns.
    dataset : str
        Name of the set in the paper.
    n_rows, n_features, bandwidth, ridge, effective_dimension, max_degrees_of_freedom, risk_ratio
        As printed; None for a dash.
    columns_per_dimension : int
        p is this number times d_eff.
    file : str or None
        Name of the set among `Sets`; None for the synthetic design.
    stand_in : str or None
        A set whose inputs have the same distribution, used if `file` is missing; its targets are not used.
    in_paper : bool
        False for a row that is not one of the paper's eleven.
    """

    kernel: str
    dataset: str
    n_rows: int
    n_features: int | None
    bandwidth: float | None
    ridge: float
    effective_dimension: int
    max_degrees_of_freedom: int
    risk_ratio: float
    columns_per_dimension: int
    file: str | None = None
    stand_in: str | None = None
    in_paper: bool = True

    @property
    def name(self) -> str:
        """Kernel and data set."""
        return f"{self.kernel} {self.dataset}"

    @property
    def n_draws(self) -> int:
        """The paper's p."""
        return self.columns_per_dimension * self.effective_dimension

    def make_kernel(self) -> Kernel:
        """Return the kernel; the paper's bandwidth b is sqrt(2) times ours."""
        if self.kernel == "Bern":
            return Bernoulli(order=2)
        return Linear() if self.bandwidth is None else gaussian(self.bandwidth)


def gaussian(paper_bandwidth: float) -> Gaussian:
    """Return `exp(-|x - z|^2/b^2)`, the paper's RBF kernel."""
    return Gaussian(paper_bandwidth / np.sqrt(2.0))


def _linear(dataset: str, n: int, features: int, d_eff: int, ratio: float, file: str) -> PrintedRow:
    stand_in = "pumadyn-32nm" if file.startswith("pumadyn") else None
    return PrintedRow("Linear", dataset, n, features, None, 1e-3, d_eff, n, ratio, 2, file, stand_in)


def _rbf(
    dataset: str, n: int, bandwidth: float, ridge: float, d_eff: int, d_mof: int, ratio: float, file: str
) -> PrintedRow:
    stand_in = "pumadyn-32nm" if file.startswith("pumadyn") else None
    return PrintedRow("RBF", dataset, n, None, bandwidth, ridge, d_eff, d_mof, ratio, 1, file, stand_in)


TABLE_1: tuple[PrintedRow, ...] = (
    PrintedRow("Bern", "Synth", 500, None, None, RIDGE, 24, 500, 1.01, 2),
    _linear("Gas2", 1244, 128, 126, 1.10, "gas-batch2"),
    _linear("Gas3", 1586, 128, 125, 1.09, "gas-batch3"),
    _linear("Pum-32fm", MOST_ROWS, 32, 31, 0.99, "pumadyn-32fm"),
    _linear("Pum-32fh", MOST_ROWS, 32, 31, 0.99, "pumadyn-32fh"),
    _linear("Pum-32nh", MOST_ROWS, 32, 32, 0.99, "pumadyn-32nh"),
    _rbf("Gas2", 1244, 1.0, 4.5e-4, 1135, 1244, 1.56, "gas-batch2"),
    _rbf("Gas3", 1586, 1.0, 5e-4, 1450, 1586, 1.50, "gas-batch3"),
    _rbf("Pum-32fm", MOST_ROWS, 5.0, 0.5, 142, 1897, 1.00, "pumadyn-32fm"),
    _rbf("Pum-32fh", MOST_ROWS, 5.0, 5e-2, 747, 1989, 1.00, "pumadyn-32fh"),
    _rbf("Pum-32nh", MOST_ROWS, 5.0, 1.3e-2, 1337, 1997, 0.99, "pumadyn-32nh"),
)

PART_OF_32FM = replace(
    TABLE_1[8], dataset="Pum-32fm (1,024 rows)", file="pumadyn-32fm-fann1024", stand_in=None, in_paper=False
)
"""A part of a set of Table 1 with its own targets; p is its own d_eff."""
