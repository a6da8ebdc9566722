"""Input that no fit can use ends in an error meant for the user, or in a finite answer; never in another exception."""

import numpy as np
import pytest

from ridgemark import (
    ExactKernelRidge,
    NystromClassifier,
    NystromRidge,
    bounds,
    effective_dimension,
    leverage_scores,
    open_rows,
)
from ridgemark.certificates.record import rounded_up
from ridgemark.errors import DataError, DataTypeError, NumericalError, ParameterError
from ridgemark.exact import kernel_spectrum
from ridgemark.kernels import Custom, Gaussian, Linear, Product, Scaled, Sum
from ridgemark.selection import Bless, Given, Recursive


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 2)), rng.normal(size=40)


# A linear kernel beside an intercept is measured from the columns' medians: there a landmark at zero has a length.
CASES = [(Linear(), False), (Gaussian(1.0) * Linear(), False), (Gaussian(1.0) * Linear(), True)]


@pytest.mark.parametrize(("kernel", "fit_intercept"), CASES)
def test_gradient_with_a_landmark_of_zero_length_gives_a_constant(rows, kernel, fit_intercept):
    X, y = rows
    model = NystromRidge(
        kernel, ridge=1e-3, solver="gradient", selection=np.zeros((1, 2)), fit_intercept=fit_intercept
    ).fit(X, y)
    assert model.predict(X) == pytest.approx(np.full(40, y.mean() if fit_intercept else 0.0))


@pytest.mark.parametrize("kind", ["operator", "trace"])
def test_any_risk_tolerance_is_met_or_not_without_overflow(rows, kind):
    X, y = rows
    model = NystromRidge(
        bandwidth="median", ridge=1e-3, n_landmarks=5, selection="uniform", certify_with=kind, risk_tolerance=1e300
    )
    assert model.fit(X, y).tolerance_.met
    assert bounds.theorem_3_risk_factor(1e300) == np.inf
    assert bounds.condition_free_risk_factor(10, 1e-200, 1.0) == np.inf


@pytest.mark.parametrize("ridge", [1e-170, 1e-250, 1e-300])
def test_operator_certificate_at_a_tiny_ridge_is_refused_or_infinite(ridge):
    model = NystromRidge("linear", ridge=ridge, certify_with="operator")
    try:
        factor = model.fit(np.array([[0.0], [1.0]]), np.array([0.0, 1.0])).certificate_.risk_factor
    except NumericalError:
        return
    assert factor >= 1.0


@pytest.mark.parametrize("selection", [Bless(), Recursive(), "leverage"], ids=repr)
@pytest.mark.parametrize("risk_tolerance", [1e-300, 1e300])
def test_a_ridge_for_scores_beyond_the_range_is_refused(rows, selection, risk_tolerance):
    X, y = rows
    model = NystromRidge(
        bandwidth="median", ridge=1e-20 if risk_tolerance < 1 else 1e20, selection=selection, n_landmarks=5
    )
    with pytest.raises(NumericalError, match="risk_tolerance nearer to 1"):
        model.set_params(risk_tolerance=risk_tolerance).fit(X, y)


@pytest.mark.parametrize("composed", [Sum("gaussian", "linear"), Product(Linear(), 3), Scaled(None, 2.0)], ids=repr)
def test_a_composed_kernel_needs_kernels(rows, composed):
    X, y = rows
    words = f"{type(composed).__name__}: (left|right|kernel) must be a Kernel object such as Gaussian"
    for use in (lambda: NystromRidge(composed).fit(X, y), lambda: composed(X), lambda: composed.diagonal(X)):
        with pytest.raises(ParameterError, match=words):
            use()
    assert not NystromRidge(composed).__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize(("kernel", "name"), [(Custom(None), "function"), (Custom(np.dot, 5), "diagonal_function")])
def test_a_custom_kernel_needs_functions(rows, kernel, name):
    X, y = rows
    for use in (lambda: NystromRidge(kernel).fit(X, y), lambda: kernel(X, X), lambda: kernel.diagonal(X)):
        with pytest.raises(ParameterError, match=f"Custom: {name} must be callable"):
            use()


@pytest.mark.parametrize("points", [5, "a", object(), [1.0, 2.0], [[1.0, 2.0], [3.0]], np.full((2, 2), np.nan)])
def test_given_points_must_be_a_matrix_of_numbers(rows, points):
    with pytest.raises(ParameterError, match="points must be a 2-d array of finite numbers"):
        NystromRidge(bandwidth="median", selection=Given(points=points)).fit(*rows)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"a": np.arange(9.0)}, "open_rows"),
        ([[1.0, 2.0]] * 8 + [[1.0]], "rows of equal length"),
        (np.arange(18).reshape(9, 2).astype("datetime64[D]"), "convert them to a number first"),
    ],
)
def test_rows_that_are_no_numbers_are_refused_with_the_remedy(given, remedy):
    with pytest.raises(DataTypeError, match=remedy):
        NystromRidge(bandwidth="median").fit(given, np.arange(9.0))


def test_text_and_complex_numbers_are_neither_targets_nor_weights(rows):
    X, y = rows
    for targets in ("targets", np.full(40, "a"), y + 1j):
        with pytest.raises((ValueError, TypeError)):
            NystromRidge(bandwidth="median").fit(X, targets)
    for weights in ("weights", ["a"] * 40, y + 1j):
        with pytest.raises(DataError):
            leverage_scores(X, ridge=1e-3, sample_weight=weights)


@pytest.mark.parametrize("number", [10**400, True, "1"], ids=["beyond the range", "True", "text"])
def test_what_is_not_a_real_number_is_refused(rows, number):
    X, y = rows
    uses = [
        lambda: NystromRidge(bandwidth="median", ridge=number).fit(X, y),
        lambda: NystromRidge(bandwidth=number).fit(X, y),
        lambda: NystromRidge(bandwidth="median", risk_tolerance=number).fit(X, y),
        lambda: ExactKernelRidge(bandwidth="median", tol=number).fit(X, y),
        lambda: leverage_scores(X, ridge=number),
        lambda: NystromRidge(bandwidth="median").fit(X, y).predict_interval(X, coverage=number),
    ]
    for use in uses:
        with pytest.raises(ParameterError):
            use()


def test_a_memory_budget_may_be_any_positive_integer(rows):
    X, y = rows
    NystromRidge(bandwidth="median", memory_budget=10**400, ridge=1e-3, solver="gradient").fit(X, y)


def test_rows_whose_kernel_leaves_the_range_are_refused(rows):
    X = rows[0]
    with pytest.raises(NumericalError):
        effective_dimension(1e200 * X, ridge=1.0, kernel="linear", method="exact")
    with pytest.raises(NumericalError):
        kernel_spectrum(1e200 * X, "linear")


def test_influence_beyond_the_range_is_refused(rows):
    X, y = rows
    model = NystromRidge("matern52", bandwidth=0.5, ridge=1e-300, fit_intercept=False, random_state=0).fit(X, y)
    with pytest.raises(NumericalError, match="floating-point range"):
        model.calibrate(X, y).diagnose()


def test_averages_of_effects_beyond_the_range_are_refused(rows):
    X, y = rows
    model = NystromRidge("gaussian", bandwidth="median", ridge=1e-3, random_state=0).fit(X * 1e-300, y)
    with pytest.raises(NumericalError, match="squares of effects exceed the floating-point range"):
        model.effects_summary(X * 1e-300)


def test_a_bound_below_the_normal_range_is_printed_as_a_larger_one():
    for value in (5e-324, 1e-310, 2.3e-308):
        assert float(rounded_up(value)) >= value


def test_a_lazy_frame_is_told_to_be_collected(rows):
    polars = pytest.importorskip("polars")
    X, y = rows
    with pytest.raises(DataTypeError, match=r"call its collect\(\) first"):
        NystromRidge().fit(polars.DataFrame(X).lazy(), y)


@pytest.mark.parametrize("kind", [NystromRidge, ExactKernelRidge, NystromClassifier])
def test_a_score_takes_the_targets_of_a_row_source_or_asks_for_them(rows, kind):
    X, y = rows
    y = (y > y.mean()).astype(int)
    model = kind("gaussian", bandwidth="median", ridge=1e-3, random_state=0).fit(X, y)
    assert model.score(open_rows(X, target=y)) == model.score(X, y)
    with pytest.raises(DataError, match="no targets to compare with"):
        model.score(open_rows(X))
