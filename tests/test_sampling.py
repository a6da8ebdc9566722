"""Draws follow their probabilities, are reproducible by seed, and never take a position of probability zero."""

import numpy as np
import pytest

from ridgemark.errors import ParameterError
from ridgemark.sampling import (
    draw_distinct,
    draw_poisson,
    draw_sequence,
    draw_uniformly,
    draw_with_replacement,
    make_generator,
)

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


class TestPoisson:
    @pytest.mark.parametrize("size", [1, 2, 7, 19, 30])
    def test_inclusion_probabilities_sum_to_the_size(self, size):
        weights = np.exp(3 * np.random.default_rng(0).normal(size=30))
        draw = draw_poisson(weights, size, np.random.default_rng(1))
        assert draw.inclusion.sum() == pytest.approx(size)
        free = draw.inclusion < 1.0
        factor = draw.inclusion[free] / weights[free]
        assert factor == pytest.approx(np.full(free.sum(), factor.max(initial=0.0)))
        assert (weights[~free] * factor.max(initial=0.0) >= 1.0 - 1e-9).all() or not free.any()

    def test_it_draws_exactly_the_size_and_certain_positions_always(self):
        weights = np.concatenate([np.full(5, 100.0), np.linspace(0.1, 1.0, 200)])
        for seed in range(200):
            draw = draw_poisson(weights, 40, np.random.default_rng(seed))
            assert len(draw.indices) == len(np.unique(draw.indices)) == 40
            assert set(range(5)) <= set(draw.indices)

    @pytest.mark.parametrize("repeats", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
    def test_uncertain_positions_are_drawn_about_as_often_as_stated(self, repeats):
        """Repeats until at most the size are drawn make positions rarer, filling up makes large ones more frequent."""
        weights = np.concatenate([np.full(3, 50.0), np.linspace(0.5, 1.5, 100)])
        rng, counts = np.random.default_rng(0), np.zeros(103)
        for _ in range(repeats):
            counts[draw_poisson(weights, 33, rng).indices] += 1
        stated = draw_poisson(weights, 33, rng).inclusion
        assert counts[:3].tolist() == [repeats] * 3
        assert (counts / repeats)[3:80] == pytest.approx(stated[3:80], rel=0.2, abs=5 / np.sqrt(repeats))

    def test_positions_of_weight_zero_are_never_drawn(self):
        draw = draw_poisson(WEIGHTS, 6, np.random.default_rng(0))
        assert draw.indices.tolist() == [1, 2, 3, 5]
        assert draw.weights.tolist() == [1.0] * 4
        assert draw_poisson(WEIGHTS, 3, np.random.default_rng(0)).indices.max() == 5

    def test_it_is_filled_up_with_the_largest_weights_that_remain(self):
        weights = np.linspace(1.0, 1.001, 50)
        filled = 0
        for seed in range(20):
            draw = draw_poisson(weights, 10, np.random.default_rng(seed))
            rng = np.random.default_rng(seed)
            while (drawn := rng.random(50) < draw.inclusion).sum() > 10:
                continue
            rest = np.flatnonzero(~drawn)
            filled += 10 - drawn.sum()
            expected = np.concatenate([np.flatnonzero(drawn), rest[len(rest) - (10 - drawn.sum()) :]])
            assert draw.indices.tolist() == sorted(expected.tolist())
        assert filled > 0

    def test_rounding_errors_do_not_choose_among_equal_weights(self):
        rounding = 1.0 + 2e-16 * np.random.default_rng(0).integers(-2, 3, 90)
        for seed in range(20):
            one, other = (draw_poisson(w, 10, np.random.default_rng(seed)) for w in (np.ones(90), rounding))
            assert np.array_equal(one.indices, other.indices)

    def test_huge_and_tiny_weights_do_not_overflow(self):
        draw = draw_poisson(np.array([1e300, 1e-300, 1.0, 1e300]), 3, np.random.default_rng(0))
        assert {0, 3} <= set(draw.indices.tolist())
        assert np.isfinite(draw.inclusion).all()


@pytest.mark.parametrize(("count", "size"), [(1, 1), (5, 5), (5, 9), (1000, 50), (20_000, 2000)])
def test_uniform_draws_are_those_of_equal_weights(count, size):
    found = draw_uniformly(count, size, np.random.default_rng(count))
    expected = draw_distinct(np.ones(count), size, np.random.default_rng(count))
    for name in ("indices", "counts", "probabilities", "n_draws"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "seven", [1, 2]])
def test_a_random_state_that_is_not_one_is_refused_with_those_that_are(seed):
    with pytest.raises(ParameterError, match=r"random_state must be None, an integer from 0 to 2\*\*32 - 1, .*, got "):
        make_generator(seed)
