"""Draws follow their probabilities, are reproducible by seed, and never take a position of probability zero."""

import numpy as np
import pytest

from ridgemark.errors import ParameterError
from ridgemark.sampling import draw_distinct, draw_sequence, draw_with_replacement, make_generator

WEIGHTS = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 4.0])


def test_draws_with_replacement_follow_the_weights():
    draw = draw_with_replacement(WEIGHTS, 100_000, np.random.default_rng(0))
    assert draw.indices.tolist() == [1, 2, 3, 5]
    assert draw.counts.sum() == draw.n_draws == 100_000
    assert draw.counts / 100_000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.006)


def test_sketch_weights_are_counts_over_expected_counts():
    draw = draw_with_replacement(WEIGHTS, 50, np.random.default_rng(1))
    assert draw.weights == pytest.approx(draw.counts / (50 * draw.probabilities[draw.indices]))
    assert draw.weights @ draw.probabilities[draw.indices] == pytest.approx(1.0)


@pytest.mark.parametrize("repeats", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_distinct_draws_are_draws_with_replacement_without_repeats(repeats):
    """Compare the distribution of the set with that of single draws that skip repeats."""
    rng = np.random.default_rng(2)

    def one_by_one():
        found: list[int] = []
        while len(found) < 2:
            i = int(draw_sequence(WEIGHTS, 1, rng)[0])
            if i not in found:
                found.append(i)
        return tuple(sorted(found))

    def frequencies(sets):
        kinds, counts = np.unique(np.array(sets), axis=0, return_counts=True)
        return dict(zip(map(tuple, kinds.tolist()), counts / repeats, strict=True))

    at_once = frequencies([tuple(draw_distinct(WEIGHTS, 2, rng).indices) for _ in range(repeats)])
    slowly = frequencies([one_by_one() for _ in range(repeats)])
    assert set(at_once) == set(slowly)
    for pair, share in slowly.items():
        assert at_once[pair] == pytest.approx(share, abs=5 * np.sqrt(2 * share / repeats))


def test_at_most_the_positions_of_positive_weight_are_drawn():
    draw = draw_distinct(WEIGHTS, 100, np.random.default_rng(0))
    assert draw.indices.tolist() == [1, 2, 3, 5]


def test_the_same_seed_draws_the_same():
    for draw in (draw_distinct, draw_with_replacement):
        first, second = (draw(np.arange(1.0, 1000.0), 50, np.random.default_rng(7)) for _ in range(2))
        assert np.array_equal(first.indices, second.indices)


def test_tiny_and_huge_weights_are_normalised():
    draw = draw_with_replacement(WEIGHTS * 1e-300, 1000, np.random.default_rng(0))
    assert draw.probabilities == pytest.approx(WEIGHTS / 10)


@pytest.mark.parametrize(
    "weights", [np.zeros(3), np.array([1.0, -1.0]), np.array([1.0, np.nan]), np.array([np.inf, 1.0])]
)
def test_invalid_weights_are_refused(weights):
    with pytest.raises(ParameterError, match="sampling weights must be finite and at least 0"):
        draw_distinct(weights, 1, np.random.default_rng(0))


def test_every_random_state_of_scikit_learn_is_accepted():
    assert make_generator(3).random() == make_generator(3).random()
    assert make_generator(np.random.RandomState(3)).random() == make_generator(3).random()
    generator = np.random.default_rng(0)
    assert make_generator(generator) is generator
