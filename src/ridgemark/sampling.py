"""Random draws of row numbers from probabilities, independent of kernels and data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ridgemark.backends import Floats, Indices
from ridgemark.errors import ParameterError
from ridgemark.linalg import rounded


@dataclass(frozen=True)
class Draw:
    """The positions drawn, their counts, and the probabilities of all positions."""

    indices: Indices  # distinct, ascending
    counts: Indices
    probabilities: Floats  # of all positions; their sum is one
    n_draws: int
    inclusion: Floats | None = None  # of a Poisson draw: the inclusion probabilities of all positions

    @property
    def weights(self) -> Floats:
        """The diagonal of `S S'` at the drawn positions: `count / (n_draws p_i)`, of a Poisson draw `1 / pi_i`."""
        if self.inclusion is not None:
            return 1.0 / self.inclusion[self.indices]
        return self.counts / (self.n_draws * self.probabilities[self.indices])

    @property
    def chances(self) -> Floats:
        """About the chance of each drawn position to be among those drawn, `min(1, n_draws p_i)`."""
        return np.minimum(1.0, self.n_draws * self.probabilities[self.indices])


def make_generator(random_state: Any) -> np.random.Generator:
    """Return a generator for scikit-learn's `random_state`: a seed, a RandomState, a Generator or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        state = check_random_state(random_state)
    except ValueError as error:
        raise ParameterError(
            "random_state must be None, an integer from 0 to 2**32 - 1, a RandomState or a Generator of numpy, "
            f"got {random_state!r}"
        ) from error
    return np.random.default_rng(state.randint(2**31))


def separate_generator(random_state: Any) -> np.random.Generator:
    """Return a generator independent of `make_generator(random_state)`, for draws independent of earlier ones."""
    return np.random.default_rng(make_generator(random_state).integers(2**63, size=4))


def draw_sequence(weights: Floats, size: int, rng: np.random.Generator) -> Indices:
    """Draw `size` times independently, proportionally to the weights; return the positions in drawing order."""
    return rng.choice(len(weights), size, p=_normalised(weights))


def draw_with_replacement(weights: Floats, size: int, rng: np.random.Generator) -> Draw:
    """Draw `size` times independently, as the paper does, and merge the repeats."""
    probabilities = _normalised(weights)
    indices, counts = np.unique(rng.choice(len(weights), size, p=probabilities), return_counts=True)
    return Draw(indices, counts, probabilities, size)


def draw_uniformly(count: int, size: int, rng: np.random.Generator) -> Draw:
    """Draw `size` different positions of `count`, all equally likely: what `draw_distinct` draws by equal weights.

    It needs no logarithms and takes half the time, which matters in a fit on a GPU.
    """
    size = min(size, count)
    rings = rng.standard_exponential(count)
    indices = np.flatnonzero(rings <= np.partition(rings, size - 1)[size - 1])[:size]
    return Draw(indices, np.ones(size, dtype=np.intp), np.full(count, 1.0 / count), size)


def draw_distinct(weights: Floats, size: int, rng: np.random.Generator) -> Draw:
    """Draw independently until `size` different positions are drawn; repeats are skipped.

    The first `size` of these draws are the paper's, and further landmarks only bring L closer to K, so the guarantees
    that hold for `size` draws with replacement without a condition on lambda hold for these landmarks too. If fewer
    positions have positive weight, all of them are taken.

    Implemented with exponential clocks: position i has a clock of rate p_i, and the first clock to ring is drawn first.
    """
    probabilities = _normalised(weights)
    size = min(size, int(np.count_nonzero(probabilities)))
    rings = rng.standard_exponential(len(probabilities))
    # In logarithms: a clock of rate zero never rings, and tiny rates do not overflow.
    with np.errstate(divide="ignore"):
        np.log(rings, out=rings)
        rings -= np.log(probabilities)
    first = np.argpartition(rings, size - 1)[:size]
    return Draw(np.sort(first), np.ones(size, dtype=np.intp), probabilities, size)


def draw_poisson(weights: Floats, size: int, rng: np.random.Generator) -> Draw:
    """Draw positions independently, with probabilities `pi_i = min(1, c w_i)`, c such that these sum to `size`.

    Positions with `c w_i >= 1` are always drawn. The draw is repeated until at most `size` positions are drawn: a sum
    of independent indicators with a whole mean is at most its mean with probability 1/2 or more, so this takes about
    two tries. Then it is filled up to `size` with the largest weights that remain. If fewer positions have positive
    weight, all of them are taken.
    """
    probabilities = _normalised(weights)
    size = min(size, int(np.count_nonzero(probabilities)))
    inclusion = inclusion_chances(probabilities, size)
    drawn = rng.random(len(inclusion)) < inclusion
    while np.count_nonzero(drawn) > size:
        drawn = rng.random(len(inclusion)) < inclusion
    missing = size - np.count_nonzero(drawn)
    if missing:
        # Weights that differ only by rounding count as equal: rounding does not decide which one is taken.
        remaining = rounded(np.where(drawn, 0.0, probabilities))
        drawn[np.argpartition(remaining, -missing)[-missing:]] = True
    return Draw(np.flatnonzero(drawn), np.ones(size, dtype=np.intp), probabilities, size, inclusion)


def inclusion_chances(weights: Floats, size: int) -> Floats:
    """Return `min(1, c w_i)` with the sum `size`, which is at most the number of positive w_i."""
    parted = np.partition(weights, len(weights) - size)
    ascending = np.sort(parted[len(weights) - size :])
    largest, rest = ascending[::-1], (parted[: len(weights) - size].sum() + np.cumsum(ascending))[::-1]
    # With the k largest certain, the others share size - k; the right k is the first for which none exceeds one.
    factors = (size - np.arange(size)) / rest
    factor = factors[np.argmax(factors * largest <= 1.0 + 1e-12)]
    return np.minimum(1.0, factor * weights)


def _normalised(weights: Floats) -> Floats:
    largest = float(weights.max(initial=0.0))
    if not (0 < largest < np.inf and weights.min() >= 0):
        raise ParameterError("sampling weights must be finite and at least 0, and at least one must be positive")
    shares = weights / largest  # before summing, so that the sum cannot overflow
    shares /= shares.sum()
    return shares
