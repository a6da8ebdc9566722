"""Kernel matrices that are difficult in different ways, and all kinds of sketches."""

from __future__ import annotations

import numpy as np

from ridgemark import exact
from ridgemark.kernels import Bernoulli, Gaussian, Linear, Matern12
from ridgemark.paper.synthetic import synthetic_points


def kernel_designs(n: int = 80) -> dict[str, np.ndarray]:
    """One kernel matrix for each kind of uneven design."""
    rng = np.random.default_rng(11)
    cloud = rng.normal(size=(n, 3))
    outliers = cloud.copy()
    outliers[:5] *= 6.0
    clusters = rng.normal(size=(4, 3))[rng.integers(0, 4, n)] * 5 + 0.3 * cloud
    repeated = cloud[rng.integers(0, n // 2, n)]
    return {
        "even": exact.kernel_matrix(cloud, Gaussian(1.5)),
        "outliers": exact.kernel_matrix(outliers, Gaussian(1.5)),
        "clusters": exact.kernel_matrix(clusters, Gaussian(1.0)),
        "repeated rows": exact.kernel_matrix(repeated, Matern12(1.0)),
        "low rank": exact.kernel_matrix(outliers, Linear()),
        "rare middle": exact.kernel_matrix(synthetic_points(n)[:, None], Bernoulli(2)),
    }


def uniform_columns(n, p, rng):
    return exact.column_sketch(rng.integers(0, n, p), np.full(n, 1 / n))


def uneven_columns(n, p, rng):
    probabilities = rng.dirichlet(np.ones(n))
    return exact.column_sketch(rng.choice(n, p, p=probabilities), probabilities)


SKETCHES = {
    "uniform columns": uniform_columns,
    "uneven columns": uneven_columns,
    "gaussian": exact.gaussian_sketch,
    "rademacher": exact.rademacher_sketch,
    "cosine": exact.cosine_sketch,
    "hadamard": exact.hadamard_sketch,
}


def draw_columns(probabilities, p, rng):
    """The paper's sketch: p columns with replacement, weighted."""
    return exact.column_sketch(rng.choice(len(probabilities), p, p=probabilities), probabilities)
