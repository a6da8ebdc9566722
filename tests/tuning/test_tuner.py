"""Tuning: levels, judges, what it leaves alone, and what it records."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, leverage_scores, load
from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import ColumnScaleWarning, ParameterError
from ridgemark.kernels import Gaussian, Laplacian, Matern32
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.tuning import Tuner, make_tuner, search
from ridgemark.tuning.criterion import Sample, best_ridge
from ridgemark.tuning.levels import Choice, _choose_family, choose
from ridgemark.tuning.metrics import PerFeature

SMALL = Tuner(rows=200, judging_rows=100, landmarks=40, evaluations=12, kernels=("gaussian", "matern32"))
FEW = Tuner(**SMALL.get_params() | {"evaluations": 4, "kernels": ("gaussian",)})  # where the choice does not matter
SHARED = Tuner(**SMALL.get_params() | {"levels": ("shared",)})


def product_of_two(n=600, d=6, seed=0, noise=0.1):
    """Return rows of which two columns matter, one on another scale."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + noise * rng.normal(size=n)
    X[:, 1] *= 1000.0
    return X, y


def rotated(n=600, d=4, seed=0):
    """Return rows whose target varies along one direction that is no column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(3 * X @ np.ones(d) / np.sqrt(d)) + 0.05 * rng.normal(size=n)


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def test_bandwidths_per_feature_find_the_columns_that_matter():
    X, y = product_of_two()
    new, truth = product_of_two(seed=1)
    model = NystromRidge(bandwidth=SMALL, n_landmarks=150, random_state=0).fit(X, y)
    assert model.tuning_.level == "per_feature"
    assert np.argsort(model.feature_importances_)[-2:].tolist() in ([0, 1], [1, 0])
    assert model.feature_importances_[:2].sum() > 0.9
    plain = NystromRidge(bandwidth="median", n_landmarks=150, random_state=0).fit(X, y)
    assert rmse(model, new, truth) < 0.6 * rmse(plain, new, truth)


def test_a_matrix_finds_a_direction():
    X, y = rotated()
    new, truth = rotated(seed=1)
    model = NystromRidge(bandwidth=SMALL, n_landmarks=100, random_state=0).fit(X, y)
    assert model.tuning_.level == "metric"
    assert model.bandwidth_ is None
    direction = np.linalg.svd(model.metric_)[0][:, 0]
    assert abs(direction @ np.ones(4)) / 2.0 > 0.95
    simpler = NystromRidge(bandwidth=SHARED, n_landmarks=100, random_state=0).fit(X, y)
    assert rmse(model, new, truth) < 0.7 * rmse(simpler, new, truth)


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")  # the best ridge for noise is the largest
def test_noise_is_not_tuned():
    rng = np.random.default_rng(0)
    X, y, new, truth = (rng.normal(size=shape) for shape in ((300, 50), 300, (500, 50), 500))
    tuned, shared = (NystromRidge(bandwidth=how, random_state=0).fit(X, y) for how in (SMALL, SHARED))
    assert rmse(tuned, new, truth) < 1.03 * rmse(shared, new, truth)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
def test_pure_noise_costs_next_to_nothing():
    gaps = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 50)), rng.normal(size=300)
        new, truth = rng.normal(size=(2000, 50)), rng.normal(size=2000)
        tuned, shared = (NystromRidge(bandwidth=how, random_state=0).fit(X, y) for how in ("auto", "shared"))
        gaps.append(rmse(tuned, new, truth) / rmse(shared, new, truth))
    assert np.median(gaps) < 1.01
    assert max(gaps) < 1.03


def test_the_number_of_threads_changes_nothing():
    X, y = product_of_two(300)
    passes, kernels = RowPasses(ArrayRows(X, y[:, None])), []
    for workers in (1, 2):
        with pytest.MonkeyPatch.context() as patch, one_blas_thread():
            patch.setattr(search, "worker_threads", lambda workers=workers: workers)
            kernels.append(SMALL.tune("auto", passes, "loo", True, np.random.default_rng(0))[0])
    assert kernels[0] == kernels[1]


def test_the_same_seed_saves_the_same_bytes(tmp_path):
    X, y = product_of_two(300)
    for name in ("a", "b"):
        NystromRidge(bandwidth=FEW, n_landmarks=50, random_state=3).fit(X, y).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_saved_model_keeps_its_tuning(tmp_path):
    X, y = rotated(300)
    model = NystromRidge(bandwidth=SMALL, n_landmarks=50, random_state=0).fit(X, y)
    loaded = load(model.save(tmp_path / "model"))
    assert (loaded.predict(X) == model.predict(X)).all()
    assert loaded.bandwidth == SMALL
    assert [one.looks.tolist() for one in loaded.tuning_.descents] == [
        one.looks.tolist() for one in model.tuning_.descents
    ]
    assert (loaded.feature_importances_ == model.feature_importances_).all()


@pytest.mark.parametrize("level", ["shared", "per_feature", "metric"])
def test_a_level_asked_for_is_taken(level):
    X, y = rotated(200)
    model = NystromRidge(bandwidth=Tuner(**SMALL.get_params() | {"levels": (level,)}), n_landmarks=40).fit(X, y)
    assert model.tuning_.level == level
    assert model.tuning_.reason == "it was asked for"


def test_a_fit_with_many_landmarks_is_tuned_with_more():
    assert Tuner().sizes() == (4000, 3000, 400) == Tuner().sizes(1000)
    assert Tuner().sizes(3600) == (6000, 3000, 600)
    assert Tuner().sizes(50_000) == (8000, 3000, 800)
    assert Tuner(rows=500, landmarks=50).sizes(5000) == (500, 3000, 50)


def test_few_rows_share_one_bandwidth():
    X, y = product_of_two(80)
    model = NystromRidge(random_state=0).fit(X, y)
    assert model.tuning_.level == "shared"
    assert "fewer than 100" in model.tuning_.reason
    # In units of the columns all bandwidths are one number.
    assert np.ptp(model.bandwidth_ / X.std(axis=0)) < 1e-9 * model.bandwidth_.max()


def test_one_metric_serves_several_targets_in_their_own_units():
    X, y = product_of_two(400)
    both = np.c_[y, 1e6 * y]
    one, two = (
        NystromRidge(bandwidth=SMALL, n_landmarks=60, random_state=0).fit(X, targets) for targets in (y[:, None], both)
    )
    assert np.allclose(one.bandwidth_, two.bandwidth_, rtol=0.05)


def test_weights_zero_and_repeated_rows_are_merged():
    X, y = product_of_two(300)
    rows = np.r_[np.arange(300), np.arange(300)]
    repeated = NystromRidge(bandwidth=SMALL, n_landmarks=50, random_state=0).fit(X[rows], y[rows])
    plain = NystromRidge(bandwidth=SMALL, n_landmarks=50, random_state=0).fit(X, y)
    outlier = np.r_[X, [[1e9] * 6]], np.r_[y, 1e9]
    left_out = NystromRidge(bandwidth=SMALL, n_landmarks=50, random_state=0).fit(
        *outlier, sample_weight=np.r_[np.ones(300), 0]
    )
    for other in (repeated, left_out):
        assert other.tuning_.level == plain.tuning_.level
        assert np.allclose(other.bandwidth_, plain.bandwidth_, rtol=1e-6)


def test_a_factor_on_all_weights_changes_no_bit_of_the_kernel():
    X, y = product_of_two(150)
    X, y = np.r_[X, X[:30]], np.r_[y, y[:30] + 0.1]
    weights = np.random.default_rng(0).uniform(0.2, 2.0, 180)
    one, other = (
        NystromRidge(bandwidth=FEW, n_landmarks=40, ridge=1e-3, random_state=0).fit(X, y, factor * weights)
        for factor in (1.0, 0.3)
    )
    assert one.kernel_ == other.kernel_


def test_sparse_rows_get_no_matrix():
    X, y = rotated(200)
    model = NystromRidge(bandwidth=FEW, n_landmarks=40, random_state=0).fit(sparse.csr_array(X), y)
    assert model.tuning_.level != "metric"
    wide = sparse.random(150, 3000, density=0.01, random_state=0, format="csr")
    shared = NystromRidge(bandwidth=FEW, n_landmarks=40, random_state=0).fit(wide, wide[:, :5].toarray().sum(axis=1))
    assert shared.tuning_.level == "shared"


def test_later_batches_keep_the_metric_of_the_first():
    X, y = product_of_two(400)
    model = NystromRidge(bandwidth=FEW, n_landmarks=50, random_state=0).partial_fit(X[:200], y[:200])
    kernel = model.kernel_
    assert model.partial_fit(X[200:], y[200:]).kernel_ == kernel
    assert model.tuning_.n_tuning + model.tuning_.n_judging <= 200


def test_the_exact_model_takes_the_tuned_metric():
    X, y = product_of_two(300)
    model = ExactKernelRidge(bandwidth=SMALL, n_landmarks=60, random_state=0).fit(X, y)
    assert model.tuning_.level == "per_feature"
    assert model.bandwidth_[2:].min() / X[:, 2].std() > 3 * model.bandwidth_[0] / X[:, 0].std()


def test_families_of_an_exact_fit_are_compared_by_exact_fits():
    """The corner of |x| suits a rougher family; few landmarks cannot show it, and all rows do."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(700, 2))
    y = np.abs(X).sum(axis=1)
    tuner = Tuner(rows=300, judging_rows=100, landmarks=20, evaluations=4, kernels=("gaussian", "matern32"))
    families = [
        model.set_params(bandwidth=tuner, random_state=0).fit(X, y).tuning_.kernel
        for model in (NystromRidge(n_landmarks=30), ExactKernelRidge())
    ]
    assert families == ["Gaussian", "Matern32"]


def test_the_family_tuned_must_be_better_to_stay_in_an_exact_fit(monkeypatch):
    monkeypatch.setattr(search.Search, "judged_errors", lambda self, kernels: [1.0] * len(kernels))
    rows = Sample(np.arange(6.0)[:, None], np.ones((6, 1)), np.full(6, 1 / 6), 6, True)
    for n_landmarks, expected in ((6, Matern32), (3, Gaussian)):
        one = search.Search(replace(rows, n_landmarks=n_landmarks), rows, np.ones(1), 1, 1, print)
        family, *_ = one.compare([Matern32()], Gaussian(), np.eye(1))
        assert type(family) is expected


ROWS_OF_16 = Sample(np.arange(16.0)[:, None], np.ones((16, 1)), np.full(16, 1 / 16), 8, True)
SIXTY_AND_THIRTY = ((slice(60), 60), (slice(60, 90), 30))


def _search_with_errors(monkeypatch, error):
    """Return a search whose judged errors are a function of the number of landmarks and the bandwidth."""

    def errors(self, kernels):
        return [error(self.tuning.n_landmarks, bandwidth) for bandwidth in kernels]

    monkeypatch.setattr(search, "with_metric", lambda family, metric: 1.0 / float(metric[0, 0]))
    monkeypatch.setattr(search.Search, "judged_errors", errors)
    return search.Search(ROWS_OF_16, ROWS_OF_16, np.ones(1), 1, 1, print)


def test_a_length_that_gains_more_from_landmarks_is_taken_for_many(monkeypatch):
    """Shorter bandwidths have a larger error with 8 landmarks, and each doubling halves it."""
    one = _search_with_errors(monkeypatch, lambda p, width: 1.0 if width >= 1.0 else 10.0 / p)
    factors = [one.compare([], Gaussian(), np.eye(1), doublings)[1] for doublings in (0.0, 1.0)]
    assert factors == [1.0, 0.7]


def test_a_length_beyond_the_first_is_tried_where_that_is_best(monkeypatch):
    one = _search_with_errors(monkeypatch, lambda p, width: width)
    assert one.compare([], Gaussian(), np.eye(1))[1] == 0.5
    one = _search_with_errors(monkeypatch, lambda p, width: 1.0 / width)
    assert one.compare([], Gaussian(), np.eye(1))[1] == 2.0


def test_the_record_of_a_rival_has_its_judged_error(monkeypatch):
    """Not the error that is expected with more landmarks."""
    one = _search_with_errors(monkeypatch, lambda p, width: 8.0 / p)
    monkeypatch.setattr(search.Search, "judged", lambda self, kernel: np.full(16, 4.0))
    record = search.Descended("per_feature", "Laplacian", "shared", 2.0, np.ones(1), np.ones((1, 2)))
    shared, candidate = search.Shared(Laplacian(), 1.0, 1.0), SimpleNamespace(metric=np.eye(1))
    rival = search.Found(shared, PerFeature(1), candidate, record)
    choice = Choice(Gaussian(), PerFeature(1), np.eye(1), asked=False)
    found = _choose_family(one, choice, rival, 2.0)
    assert found.compared[0].error == 0.25
    assert found.levels[0].judged_error == 2.0


@pytest.mark.parametrize("level", ["shared", "per_feature"])
def test_all_rows_judge_families_at_one_bandwidth(level, monkeypatch):
    """No metric was fitted to them there."""
    judges = []
    monkeypatch.setattr(search.Search, "compare", lambda self, *given: (judges.append(self.all_judge), 1.0, ()))
    levels = (SimpleNamespace(level=level, taken=True),)
    chosen = Choice(Gaussian(), PerFeature(1), np.eye(1), asked=False, levels=levels)
    monkeypatch.setattr("ridgemark.tuning.levels._choose_level", lambda *given: chosen)
    one = search.Search(ROWS_OF_16, ROWS_OF_16, np.ones(1), 1, 1, print)
    choose(one, one, [search.Shared(Gaussian(), 1.0, 1.0)], [], [level], 0.0)
    assert judges == [level == "shared"]


def test_the_error_of_all_rows_is_the_mean_of_rows_left_out_and_rows_that_judge():
    X, y = product_of_two(90)
    tuning, judging = (Sample(X[part], y[part, None], np.full(n, 1 / n), 20, True) for part, n in SIXTY_AND_THIRTY)
    one = search.Search(tuning, judging, np.array([1e-3]), 1, 1, print)
    kernel = Gaussian(2.0)
    of_judging, of_all = (replace(one, all_judge=both).judged_errors([kernel])[0] for both in (False, True))
    left_out, _ = best_ridge(kernel, tuning, one.ridges)
    assert of_judging == pytest.approx(np.sqrt(one.judged(kernel).mean()))
    assert of_all == pytest.approx(np.sqrt((60 * left_out + 30 * of_judging**2) / 90))


@pytest.mark.parametrize("all_judge", [False, True])
def test_the_error_of_a_kernel_that_is_not_definite_is_infinite(all_judge, monkeypatch):
    def refused(*given):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(search, "best_model", refused)
    one = search.Search(ROWS_OF_16, ROWS_OF_16, np.ones(1), 1, 1, print, all_judge=all_judge)
    assert one.judged_errors([Gaussian()]) == [np.inf]


def test_an_error_that_is_zero_or_infinite_is_expected_to_stay(monkeypatch):
    for error in (0.0, np.inf):
        one = _search_with_errors(monkeypatch, lambda p, width, error=error: error)
        assert one.compare([], Gaussian(), np.eye(1), 2.0)[2][0].error == error


def test_a_given_ridge_is_used_in_tuning():
    X, y = product_of_two(300)
    model = NystromRidge(bandwidth=FEW, ridge=1e-2, n_landmarks=50, random_state=0).fit(X, y)
    assert model.ridge_ == 1e-2


def test_tuning_is_told_as_progress_and_ends():
    X, y = product_of_two(150)
    seen = []
    NystromRidge(bandwidth=FEW, n_landmarks=30, progress=lambda *told: seen.append(told)).fit(X, y)
    tuning = [(done, total) for what, done, total in seen if what == "tuning"]
    assert tuning[-1][0] == tuning[-1][1]
    assert all(done < total for done, total in tuning[:-1])


def test_progress_counts_the_descents_that_run():
    X, y = product_of_two(150)
    seen = []
    kernels = ("gaussian", "matern52", "matern32", "matern12")  # all of the distance: the number of descents is known
    five = Tuner(rows=100, judging_rows=40, landmarks=20, evaluations=1, kernels=kernels)
    NystromRidge(ridge=1e-3, bandwidth=five, n_landmarks=30, progress=lambda *told: seen.append(told)).fit(X, y)
    tuning = [(done, total) for what, done, total in seen if what == "tuning"]
    assert {done for done, _ in tuning} == set(range(1, tuning[-1][1] + 1))


def test_an_interruption_ends_all_descents():
    X, y = product_of_two(600)
    calls, before = [], threading.active_count()

    def interrupt(what, done, total):
        calls.append(what)
        if len(calls) == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NystromRidge(bandwidth=SMALL, progress=interrupt).fit(X, y)
    assert threading.active_count() == before


def test_a_given_kernel_is_left_alone():
    X, y = product_of_two(150)
    with pytest.warns(ColumnScaleWarning):
        model = NystromRidge(Gaussian(2.0), ridge=1e-3, n_landmarks=30).fit(X, y)
    assert model.kernel_ == Gaussian(2.0)
    assert not hasattr(model, "tuning_")
    assert model.metric_ is None


def steps(n=800, d=5, seed=0):
    """Return rows whose target jumps along single columns, one of them an indicator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = X[:, 1] > 0.3
    y = np.sign(X[:, 0]) + X[:, 1] * np.sign(X[:, 2] - 0.5) + 0.1 * rng.normal(size=n)
    return X, y


def test_the_laplacian_is_chosen_where_the_target_jumps_along_columns():
    (X, y), (X_test, y_test) = steps(), steps(2000, seed=1)
    tuner, other = (
        Tuner(**SMALL.get_params() | {"rows": 300, "landmarks": 60, "judging_rows": 150, "kernels": kernels})
        for kernels in (("gaussian", "matern12", "laplacian"), ("gaussian", "matern12"))
    )
    model, other = (NystromRidge(bandwidth=one, n_landmarks=200, random_state=0).fit(X, y) for one in (tuner, other))
    assert isinstance(model.kernel_, Laplacian)
    assert model.tuning_.level == "per_feature"
    assert model.tuning_.levels[-1].kernel == model.tuning_.kernel == model.tuning_.compared[0].kernel == "Laplacian"
    assert model.bandwidth_[3:].min() > 3 * model.bandwidth_[0]
    assert rmse(model, X_test, y_test) < 0.95 * rmse(other, X_test, y_test)


def test_the_laplacian_is_not_chosen_for_a_smooth_target():
    X, y = rotated()
    tuner = Tuner(**SMALL.get_params() | {"kernels": ("laplacian", "gaussian")})
    assert isinstance(NystromRidge(bandwidth=tuner, n_landmarks=100, random_state=0).fit(X, y).kernel_, Gaussian)


def test_a_laplacian_given_by_name_is_tuned_per_feature():
    X, y = steps(400)
    for levels in (("shared", "per_feature", "metric"), ("metric",)):
        tuner = Tuner(rows=200, landmarks=50, evaluations=8, levels=levels)
        model = NystromRidge("laplacian", bandwidth=tuner, n_landmarks=60, random_state=0).fit(X, y)
        assert model.tuning_.level == "per_feature"
        assert np.ptp(model.bandwidth_) > 0


def test_a_matrix_asked_for_is_not_replaced_by_a_laplacian():
    X, y = steps(300)
    tuner = Tuner(**FEW.get_params() | {"kernels": ("gaussian", "laplacian"), "levels": ("metric",)})
    assert NystromRidge(bandwidth=tuner, n_landmarks=40, random_state=0).fit(X, y).metric_ is not None


def test_a_named_family_stays():
    X, y = product_of_two(200)
    assert isinstance(NystromRidge("matern32", bandwidth=FEW, n_landmarks=40).fit(X, y).kernel_, Matern32)


def test_one_number_for_columns_of_different_scales_is_warned_of():
    X, y = product_of_two(150)
    with pytest.warns(ColumnScaleWarning, match=r"column 1 holds 100\.0% of the squared distance.*bandwidth=\"auto\""):
        NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=30).fit(X, y)


@pytest.mark.parametrize(
    "wrong",
    ["average", None, Tuner(rows=0), Tuner(levels=("all",)), Tuner(levels="shared"), Tuner(kernels=("linear",))],
)
def test_wrong_bandwidths_are_refused_in_words(wrong):
    X, y = product_of_two(120)
    with pytest.raises(ParameterError, match="must be"):
        NystromRidge(bandwidth=wrong).fit(X, y)


def test_without_targets_nothing_can_be_tuned():
    X, _ = product_of_two(120)
    for call in (
        lambda: leverage_scores(X, ridge=1e-3, bandwidth="auto"),
        lambda: NystromFeatures(bandwidth="auto").fit(X),
    ):
        with pytest.raises(ParameterError, match="tuned to targets"):
            call()


def test_names_stand_for_tuners():
    assert make_tuner("metric") == Tuner(levels=("metric",))
    assert make_tuner("auto") == Tuner()
    assert make_tuner("median") is None


@pytest.mark.parametrize("constant", [7.0, 0.1, -1 / 3, 1e-9])
@pytest.mark.parametrize("estimator", [NystromRidge, ExactKernelRidge])
def test_a_constant_target_is_fitted_by_a_constant(constant, estimator):
    X, y = product_of_two(150)
    model = estimator(bandwidth=FEW, n_landmarks=30, random_state=0).fit(X, np.full(150, constant))
    assert np.allclose(model.predict(X), constant, rtol=1e-12, atol=0.0)
    options = {"bandwidth": "median", "ridge": 1e-3, "n_landmarks": 30, "random_state": 0}
    beside = estimator(**options).fit(X, np.column_stack([y, np.full(150, constant)]))
    assert np.allclose(beside.predict(X)[:, 1], constant, rtol=1e-12, atol=0.0)
