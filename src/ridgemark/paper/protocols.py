"""Signals and noise for risk ratios. The paper states none, so these are ours; every ratio shown names its protocol."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Floats
from ridgemark.exact import Spectrum
from ridgemark.paper.cross_validation import fitted, leave_one_out_error, leave_one_out_ridge

PROTOCOLS: Mapping[str, str] = {
    "targets": (
        "f* is the exact fit to the set's targets at the row's lambda, the noise variance its mean squared "
        "leave-one-out residual"
    ),
    "tuned": "the same with lambda by leave-one-out for the row's kernel",
    "prior": "f* is drawn from N(0, K), the noise variance is n lambda: under this prior the fit is Bayes optimal",
    "smooth": "f* = K a with a from N(0, I), scaled to variance 1; the noise variance is 0.1",
}
"""Description of each protocol. The first two need targets; the others need only inputs and draw a new signal in
every repeat."""


@dataclass(frozen=True, eq=False)
class Truth:
    """A signal and the variance of the noise around it."""

    signal: Floats
    noise_variance: float


def from_targets(spectrum: Spectrum, targets: Floats, scaled_ridge: float) -> dict[str, Truth]:
    """Return the protocols that take the signal from targets."""
    ridges = {"targets": scaled_ridge, "tuned": leave_one_out_ridge(spectrum, targets)}
    return {
        name: Truth(fitted(spectrum, targets, ridge), leave_one_out_error(spectrum, targets, ridge))
        for name, ridge in ridges.items()
    }


def from_inputs(spectrum: Spectrum, scaled_ridge: float, rng: np.random.Generator) -> dict[str, Truth]:
    """Return the protocols that draw the signal."""
    smooth = _applied(spectrum, spectrum.eigenvalues, rng.standard_normal(spectrum.n_rows))
    return {"prior": prior(spectrum, scaled_ridge, rng), "smooth": Truth(smooth / smooth.std(), 0.1)}


def prior(spectrum: Spectrum, scaled_ridge: float, rng: np.random.Generator) -> Truth:
    """Draw `f* ~ N(0, K)`; with noise variance n lambda kernel ridge regression is the posterior mean."""
    draw = _applied(spectrum, np.sqrt(spectrum.eigenvalues), rng.standard_normal(spectrum.n_rows))
    return Truth(draw, scaled_ridge)


def _applied(spectrum: Spectrum, values: Floats, vector: Floats) -> Floats:
    """Return `U diag(values) U' v`, which does not depend on the signs of the eigenvectors: a seed fixes the signal."""
    return spectrum.eigenvectors @ (values * (spectrum.eigenvectors.T @ vector))
