"""The experiments at small sizes agree with plain computations and with the paper's statements."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from ridgemark import bounds, exact
from ridgemark.kernels import Gaussian
from ridgemark.paper.comparison import DIVIDE, LEVERAGE, UNIFORM, Comparison, Point, comparison
from ridgemark.paper.cross_validation import cross_validate, leave_one_out_error, leave_one_out_ridge
from ridgemark.paper.data import ORIGINS, DataSet
from ridgemark.paper.designs import Designs
from ridgemark.paper.figure_1 import figure_1
from ridgemark.paper.printed import PART_OF_32FM, TABLE_1
from ridgemark.paper.protocols import PROTOCOLS, from_inputs, from_targets, prior
from ridgemark.paper.sketch_ridge import sketch_ridge
from ridgemark.paper.sketching import approximate_scores, approximation, columns_risk, sketch
from ridgemark.paper.synthetic import SEED
from ridgemark.paper.table_1 import measure_row
from ridgemark.paper.theorem_3 import needed, open_question, theorem_3_counts
from ridgemark.paper.theorem_4 import theorem_4
from ridgemark.sampling import draw_sequence, draw_with_replacement
from tests.helpers import real_data, slowly

SYNTH = TABLE_1[0]


@pytest.fixture(scope="module")
def spectrum():
    X = np.random.default_rng(0).normal(size=(80, 2))
    return exact.kernel_spectrum(X, Gaussian(1.0))


def _small_set(n=120, d=4):
    rng = np.random.default_rng(3)
    X = 5.0 + rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 3.0]
    return DataSet(X, 40.0 + np.sin(X[:, 0]) + 0.1 * rng.normal(size=n))


def _kernel(spectrum):
    return (spectrum.eigenvectors * spectrum.eigenvalues) @ spectrum.eigenvectors.T


# --- Components of the experiments ---


def test_merged_draws_give_the_same_l_gamma_as_the_repeats(spectrum):
    weights = np.linspace(0.1, 1.0, 80)
    draw = draw_with_replacement(weights, 30, np.random.default_rng(1))
    repeated = exact.column_sketch(np.repeat(draw.indices, draw.counts), draw.probabilities)
    got = approximation(spectrum, draw, 0.7)
    expected = exact.nystrom_approximation(_kernel(spectrum), repeated, 0.7)
    assert (got.eigenvectors * got.eigenvalues) @ got.eigenvectors.T == pytest.approx(expected, abs=1e-10)
    assert sketch(draw.indices, draw.weights, 80).shape == (80, len(draw.indices))


def test_approximate_scores_are_equation_9(spectrum):
    scores, columns = approximate_scores(spectrum, 0.4, 25, np.random.default_rng(2))
    pilot = draw_with_replacement(np.ones(80), 25, np.random.default_rng(2))
    assert columns == len(pilot.indices)
    C = _kernel(spectrum)[:, pilot.indices]
    L = C @ np.linalg.pinv(C[pilot.indices], hermitian=True) @ C.T
    assert scores == pytest.approx(np.diagonal(L @ np.linalg.inv(L + 0.4 * np.eye(80))), abs=1e-8)


def test_leave_one_out_is_refitting_without_each_row(spectrum):
    K, y = _kernel(spectrum), np.random.default_rng(4).normal(size=80)
    residuals = []
    for i in range(80):
        rest = np.delete(np.arange(80), i)
        residuals.append(y[i] - exact.kernel_ridge(K[np.ix_(rest, rest)], y[rest], 0.5).predict(K[i, rest]))
    assert leave_one_out_error(spectrum, y, 0.5) == pytest.approx(np.mean(np.square(residuals)))


def test_the_ridge_chosen_has_the_least_leave_one_out_error_of_its_neighbours(spectrum):
    y = spectrum.eigenvectors[:, 0] * 5 + np.random.default_rng(4).normal(size=80)
    ridge = leave_one_out_ridge(spectrum, y)
    errors = [leave_one_out_error(spectrum, y, ridge * factor) for factor in (10**-0.5, 1.0, 10**0.5)]
    assert errors[1] == min(errors)


def test_protocols_are_those_that_are_described(spectrum):
    rng = np.random.default_rng(5)
    found = from_targets(spectrum, rng.normal(size=80), 0.5) | from_inputs(spectrum, 0.5, rng)
    assert list(found) == list(PROTOCOLS)
    assert found["smooth"].signal.var() == pytest.approx(1.0)
    assert found["prior"].noise_variance == 0.5


def test_a_seed_fixes_the_signal_whatever_the_signs_of_the_eigenvectors(spectrum):
    signs = np.where(np.arange(80) % 2, 1.0, -1.0)
    flipped = exact.Spectrum(spectrum.eigenvalues, spectrum.eigenvectors * signs)
    for ours, theirs in zip(
        from_inputs(spectrum, 0.5, np.random.default_rng(6)).values(),
        from_inputs(flipped, 0.5, np.random.default_rng(6)).values(),
        strict=True,
    ):
        assert ours.signal == pytest.approx(theirs.signal, abs=1e-12)


def test_the_prior_has_the_kernel_as_its_covariance(spectrum):
    rng = np.random.default_rng(7)
    draws = np.stack([prior(spectrum, 0.5, rng).signal for _ in range(4000)])
    assert np.abs(draws.T @ draws / 4000 - _kernel(spectrum)).max() < 6 * np.sqrt(2 / 4000)


# --- Table 1 ---


def test_the_synthetic_row_is_reproduced():
    row = measure_row(Designs({}, SEED), SYNTH, 5)
    assert row.effective_dimension == pytest.approx(24, abs=1.0)
    assert row.n_draws == 48
    assert [ratio.protocol for ratio in row.ratios] == list(PROTOCOLS)
    for ratio in row.ratios:
        assert ratio.mean == pytest.approx(1.0, abs=0.03)
        assert ratio.lowest <= ratio.mean <= ratio.highest
        assert min(ratio.noise_only, ratio.noise_free) - 1e-9 <= ratio.mean
        assert ratio.mean <= max(ratio.noise_only, ratio.noise_free) + 1e-9


def test_without_data_a_row_names_the_file_and_how_to_get_it():
    designs = Designs({}, SEED)
    for printed in TABLE_1[1:]:
        row = measure_row(designs, printed, 1)
        assert row.effective_dimension is None
        assert row.ratios == ()
        assert ".npz is not in the data folder" in row.missing
        assert "numpy.savez_compressed" in row.missing


def test_a_stand_in_gives_what_depends_on_inputs_alone_and_says_why_the_rest_is_missing():
    designs = Designs({"pumadyn-32nm": _small_set()}, SEED)
    row = measure_row(designs, replace(TABLE_1[9], effective_dimension=20), 2)
    assert row.source == "pumadyn-32nm"
    assert row.effective_dimension is not None
    assert [ratio.protocol for ratio in row.ratios] == ["prior", "smooth"]
    assert "this set's targets are missing" in row.missing
    assert "pumadyn-32fh.npz is not in the data folder" in row.missing


def test_the_file_of_a_set_takes_precedence_over_its_stand_in():
    designs = Designs({"pumadyn-32nm": _small_set(), "pumadyn-32fh": _small_set(100)}, SEED)
    row = measure_row(designs, replace(TABLE_1[9], effective_dimension=20), 1)
    assert (row.source, row.n_rows, row.missing) == ("pumadyn-32fh", 100, "")
    assert len(row.ratios) == len(PROTOCOLS)


def test_columns_that_span_a_linear_kernel_give_the_ratio_one():
    designs = Designs({"gas-batch2": _small_set()}, SEED)
    row = measure_row(designs, replace(TABLE_1[1], effective_dimension=10), 2)
    assert all(ratio.mean == pytest.approx(1.0, abs=1e-9) for ratio in row.ratios)


def test_every_file_that_a_row_may_need_has_an_origin():
    for row in (*TABLE_1, PART_OF_32FM):
        assert {row.file, row.stand_in} - {None} <= set(ORIGINS)


@functools.cache
def _real_designs(name):
    data = real_data(name)
    return Designs({name: DataSet(data["X"].astype(float), data["y"].astype(float))}, SEED)


@pytest.mark.parametrize("position", [1, 4, *slowly(2, 3, 5, 6, 7, 8, 9, 10)])
def test_every_d_eff_of_the_table_on_real_data(position):
    """Whole numbers, as printed; 1450 is 1450.9 truncated; two linear Pumadyn rows print 31 where the rank is 32."""
    printed = TABLE_1[position]
    name = printed.stand_in or printed.file
    design = _real_designs(name).open(printed)
    got = exact.effective_dimension(design.spectrum, design.n_rows * printed.ridge * 0.01)
    decoded = {"RBF Gas3": 1450.9, "Linear Pum-32fm": 32, "Linear Pum-32fh": 32}
    assert got == pytest.approx(decoded.get(printed.name, printed.effective_dimension), abs=0.5)


# --- The other experiments ---


def test_cross_validation_recovers_the_printed_lambda_on_the_synthetic_set():
    choice = cross_validate(Designs({}, SEED), SYNTH)
    assert 0.1 < choice.ridge / choice.printed_ridge < 10
    assert choice.error <= choice.printed_error * 1.02
    assert not choice.on_edge


def test_cross_validation_searches_bandwidths_and_needs_targets():
    designs = Designs({"pumadyn-32fm-fann1024": _small_set(), "pumadyn-32nm": _small_set()}, SEED)
    choice = cross_validate(designs, PART_OF_32FM, (0.5, 2.0, 8.0))
    assert choice.bandwidth in (0.5, 2.0, 8.0)
    assert choice.error <= choice.printed_error
    assert cross_validate(designs, TABLE_1[9]) is None
    assert cross_validate(Designs({}, SEED), TABLE_1[1]) is None


@pytest.fixture(scope="module")
def small_figure():
    return figure_1(SEED, 6, (10, 20, 48, 120))


def test_figure_1_approximate_leverage_follows_exact_leverage_below_uniform(small_figure):
    assert small_figure.approximation_gap <= 0.05
    leverage, uniform = (np.array(small_figure.curve(m).mean) for m in ("approximate leverage", "uniform"))
    assert (leverage[:3] < uniform[:3]).all()


def test_figure_1_risks_fall_to_the_exact_risk_and_bands_contain_most_of_them(small_figure):
    for curve in small_figure.curves:
        assert curve.mean[-1] == pytest.approx(small_figure.exact_risk, rel=0.02)
        assert all(low <= high for low, high in zip(curve.low, curve.high, strict=True))
    # The kernel's diagonal is constant.
    assert small_figure.curve("diagonal").mean == small_figure.curve("uniform").mean


def test_figure_1_is_the_same_for_the_same_seed_and_another_for_another():
    assert figure_1(3, 1, (10,)).curves == figure_1(3, 1, (10,)).curves
    assert figure_1(3, 1, (10,)).curves != figure_1(4, 1, (10,)).curves


def test_all_columns_give_the_exact_risk(spectrum):
    signal = np.random.default_rng(0).normal(size=80)
    full = exact.risk(spectrum, signal, 0.1, 0.5).total
    assert columns_risk(spectrum, np.arange(80), signal, 0.1, 0.5).total == pytest.approx(full)


def test_the_comparison_counts_the_pilot_and_the_parts():
    found = comparison(SEED, 2, 200, (5, 40), (1, 4, 500))
    by = {(p.method, p.size): p for p in found.points}
    assert by[DIVIDE, 1].kernel_evaluations == 200**2
    assert by[DIVIDE, 1].risk == pytest.approx(found.exact_risk)
    assert (DIVIDE, 500) not in by
    assert by[UNIFORM, 5].kernel_evaluations <= 200 * 5 < by[LEVERAGE, 5].kernel_evaluations <= 200 * 10
    assert found.orders[LEVERAGE] == pytest.approx(200 * found.effective_dimension)


def test_evaluations_needed_are_those_after_which_the_risk_stays_low():
    risks = [(10, 1.0), (20, 1.3), (30, 1.04), (40, 1.01)]
    points = tuple(Point(UNIFORM, n, n, risk, risk, risk) for n, risk in risks)
    found = Comparison(100, 1.0, 5.0, 50.0, points, {})
    assert found.evaluations_needed(UNIFORM) == 30
    assert found.evaluations_needed(DIVIDE) is None


def test_needed_columns_keep_the_ratio_and_one_draw_fewer_does_not(spectrum):
    scores = exact.leverage_scores(spectrum, 0.01)
    draws, columns = needed(spectrum, scores, 0.8, 1, 0)
    rng = np.random.default_rng([0, 0])
    truth = prior(spectrum, 0.8, rng)
    sequence = draw_sequence(scores, 16 * 80, rng)
    full = exact.risk(spectrum, truth.signal, truth.noise_variance, 0.8).total

    def ratio(p):
        return columns_risk(spectrum, np.unique(sequence[:p]), truth.signal, truth.noise_variance, 0.8).total / full

    assert columns == len(np.unique(sequence[: int(draws)]))
    assert ratio(int(draws)) <= 1.05 < ratio(int(draws) - 1)


def test_theorem_3_counts_match_the_formula():
    counts = theorem_3_counts(Designs({}, SEED), SYNTH, 1)
    assert counts.promised == bounds.theorem_3_count(500, 24.578742, 0.05)
    assert counts.used == 48
    assert counts.needed <= 48
    assert theorem_3_counts(Designs({}, SEED), TABLE_1[1], 1) is None


def test_the_open_question_uses_every_available_set():
    found = open_question(Designs({"gas-batch2": _small_set()}, SEED), 1, (1e-1, 1e-2), 60)
    assert {point.source for point in found} == {"synthetic", "clusters", "gas-batch2"}
    assert all(point.effective_dimension <= point.sharp_effective_dimension for point in found)


def test_theorem_4_holds_where_it_applies():
    found = theorem_4(SEED, 3, (20, 2560))
    assert all(t.holds for t in found)
    assert found[0].errors[1].bound < found[0].largest_score  # where it is informative
    assert found[1].errors[1].bound is None
    assert found[0].errors[0].mean > found[0].errors[1].mean


def test_a_score_above_the_exact_one_or_below_the_bound_breaks_theorem_4():
    found = theorem_4(SEED, 1, (2560,))[0]
    for broken in ({"above_exact": 0.1}, {"largest": 0.9}):
        assert not replace(found, errors=(replace(found.errors[0], **broken),)).holds


def test_l_gamma_converges_to_l_as_gamma_vanishes():
    curves = {c.tolerance: np.array(c.mean) for c in sketch_ridge(SEED, 2, (30, 60))}
    assert curves[0.01] == pytest.approx(curves[0.0], rel=0.03)
    assert abs(curves[1.0] - curves[0.0]).max() > abs(curves[0.01] - curves[0.0]).max()
