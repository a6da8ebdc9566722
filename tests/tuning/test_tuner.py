"""Tuning: levels, judges, what it leaves alone, and what it records."""

import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeCV

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, leverage_scores, load
from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import ColumnScaleWarning, ParameterError
from ridgemark.fitting import rows_of_fit, settle_kernel
from ridgemark.fitting.stages import make_problem
from ridgemark.kernels import Gaussian, Matern32, Mixture
from ridgemark.passes import RowPasses
from ridgemark.path import walk_downhill
from ridgemark.rows import ArrayRows
from ridgemark.tuning import Tuner, make_tuner, search
from ridgemark.tuning.criterion import Sample
from ridgemark.tuning.descent import Candidate

SMALL = Tuner(rows=200, judging_rows=100, landmarks=40, evaluations=12, kernels=("gaussian", "matern32"))
FEW = Tuner(**SMALL.get_params() | {"evaluations": 4, "kernels": ("gaussian",)})  # where the choice does not matter
PER_FEATURE = Tuner(**SMALL.get_params() | {"levels": ("per_feature",)})
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
    assert Tuner().sizes() == (4000, 1500, 400) == Tuner().sizes(1000)
    assert Tuner().sizes(3600) == (6000, 1500, 600)
    assert Tuner().sizes(50_000) == (8000, 1500, 800)
    assert Tuner(rows=500, landmarks=50).sizes(5000) == (500, 1500, 50)


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
        NystromRidge(bandwidth=PER_FEATURE, n_landmarks=60, random_state=0).fit(X, targets)
        for targets in (y[:, None], both)
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


def test_a_given_ridge_is_used_in_tuning():
    X, y = product_of_two(300)
    model = NystromRidge(bandwidth=FEW, ridge=1e-2, n_landmarks=50, random_state=0).fit(X, y)
    assert model.ridge_ == 1e-2


def test_the_first_ridge_of_a_tuned_fit_is_that_of_the_tuner(monkeypatch):
    X, y = product_of_two()
    model = NystromRidge(bandwidth=SHARED, n_landmarks=40, selection="rpcholesky", random_state=0)
    passes, rng = RowPasses(ArrayRows(X, y)), np.random.default_rng(0)
    rows = rows_of_fit(passes, model._recipe())
    kernel = settle_kernel(rows, model._recipe(), rng)
    problem = make_problem(rows, kernel, model._recipe(), rng)
    suggested = kernel.tuning.ridge * np.sqrt(kernel.tuning.n_tuning / 600)
    assert problem.scaled_ridge == pytest.approx(suggested * 600)
    assert not problem.pilots
    begun = []

    def noted(evaluate, start, count):
        begun.append(start)
        walk_downhill(evaluate, start, count)

    monkeypatch.setattr("ridgemark.fitting.stages._WHOLE_PATH", 20)
    monkeypatch.setattr("ridgemark.path.ridges.walk_downhill", noted)
    path = model.fit(X, y).ridge_path_
    suggested = model.tuning_.ridge * np.sqrt(model.tuning_.n_tuning / 600)
    assert begun == [round(4 * np.log10(path.largest / suggested))]  # four ridges a decade


def test_tuning_is_told_as_progress_and_ends():
    X, y = product_of_two(150)
    seen = []
    NystromRidge(bandwidth=FEW, n_landmarks=30, progress=lambda *told: seen.append(told)).fit(X, y)
    tuning = [(done, total) for what, done, total in seen if what == "tuning"]
    assert tuning[-1][0] == tuning[-1][1]
    assert all(done < total for done, total in tuning[:-1])


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


def part_names(model):
    return [one.kernel for one in model.tuning_.parts]


def test_a_laplacian_stays_where_the_target_jumps_along_columns():
    (X, y), (X_test, y_test) = steps(), steps(2000, seed=1)
    tuner, other = (
        Tuner(**SMALL.get_params() | {"rows": 300, "landmarks": 60, "judging_rows": 150, "kernels": kernels})
        for kernels in (("gaussian", "matern12", "laplacian"), ("gaussian", "matern12"))
    )
    model, other = (NystromRidge(bandwidth=one, n_landmarks=200, random_state=0).fit(X, y) for one in (tuner, other))
    assert "Laplacian" in part_names(model)
    assert rmse(model, X_test, y_test) < 0.95 * rmse(other, X_test, y_test)


def test_idle_parts_are_dropped():
    X, y = product_of_two(900, noise=0.6)
    parts = {"rows": 400, "judging_rows": 220, "kernels": ("laplacian", "gaussian", "linear")}
    tuner = Tuner(**SMALL.get_params() | parts)
    model = NystromRidge(bandwidth=tuner, n_landmarks=100, random_state=0).fit(X, y)
    assert isinstance(model.kernel_, Gaussian)
    assert part_names(model) == ["Gaussian"]
    assert sorted(model.tuning_.dropped) == ["Laplacian", "Linear"]


def test_a_last_descent_has_more_landmarks_where_these_save_much():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    noise = rng.normal(size=3000)
    tuner = Tuner(rows=2000, judging_rows=200, landmarks=30, evaluations=4, levels=("shared",), kernels=("gaussian",))
    wavy = np.sin(12 * X[:, 0]) * np.sin(12 * X[:, 1]) + 0.02 * noise
    starts = []
    for y in (wavy, X[:, 0] + 0.5 * noise):
        tuning = NystromRidge(bandwidth=tuner, n_landmarks=200, random_state=0).fit(X, y).tuning_
        starts.append((tuning.descents[-1].start, tuning.saved_by_doubling > 0.05))
    assert starts == [("more landmarks", True), ("few rows", False)]


def test_few_rows_are_tuned_with_more_landmarks_at_last_where_these_save_much():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(800, 2))
    tuner = Tuner(judging_rows=200, landmarks=50, evaluations=4, levels=("shared",), kernels=("gaussian",))
    for y, last in ((np.sin(12 * X).prod(axis=1), "more landmarks"), (X[:, 0], "one length")):
        noisy = y + 0.02 * rng.normal(size=800)
        tuning = NystromRidge(bandwidth=tuner, n_landmarks=200, random_state=0).fit(X, noisy).tuning_
        assert [tuning.descents[0].start, tuning.descents[-1].start] == ["one length", last]


def test_a_last_descent_of_tensors_is_in_the_precision_of_those_before():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    y = np.sin(12 * X[:, 0]) * np.sin(12 * X[:, 1]) + X[:, 1] + 0.2 * rng.normal(size=3000)
    tuner = Tuner(rows=2000, judging_rows=200, landmarks=30, evaluations=4, levels=("shared",))
    model = NystromRidge(bandwidth=tuner, n_landmarks=200, random_state=0).fit(torch.tensor(X), torch.tensor(y))
    assert model.tuning_.descents[-1].start == "more landmarks"


def test_a_part_without_which_the_kernel_matrix_is_not_definite_is_not_idle():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    rows = Sample(X, np.sin(X[:, :1]), np.full(300, 1 / 300), 100, fit_intercept=True)
    tuning, judging = rows.first(200, 100), rows.starting_with(np.arange(200, 300)).first(100, 100)

    class Indefinite(search.Search):
        def both_errors(self, kernel, ridge=None):
            error = 0.1 if len(kernel.weights) == 2 else np.inf
            return np.full(100, error), error

    mixture = Mixture([Gaussian(1.0), Matern32(2.0)], [], [0.5, 0.5])
    searched = Indefinite(tuning, judging, np.array([1e-6, 1.0]), 10, 3, lambda: None)
    with np.errstate(invalid="ignore"):
        candidate = searched.without_idle_parts(Candidate(mixture, 1e-6, np.zeros(100)))
    assert candidate.kernel == mixture
    assert candidate.ridge == 1e-6


def test_a_linear_truth_is_fitted_as_linear_regression_does():
    """The linear part remains, and its columns are bounded one range beyond those of the training rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * [1.0, 1.0, 100.0, 1.0, 0.01] + 3.0
    y = X @ [1.0, -2.0, 0.03, 0.0, 50.0] + 0.5 * rng.normal(size=300)
    new = rng.normal(size=(2000, 5)) * [1.0, 1.0, 100.0, 1.0, 0.01] + 3.0
    truth = new @ [1.0, -2.0, 0.03, 0.0, 50.0] + 0.5 * rng.normal(size=2000)
    model = NystromRidge(random_state=0).fit(X, y)
    assert "Linear" in part_names(model)
    linear = RidgeCV(np.geomspace(1e-4, 1e4, 17)).fit(X, y)
    assert rmse(model, new, truth) < 1.01 * rmse(linear, new, truth)
    far = new.copy()
    far[:, 1] = 1e9
    reach = y.max() - y.min()
    assert (abs(model.predict(far) - y.mean()) < 1.5 * reach).all()


def test_weights_and_lengths_are_recorded():
    X, y = product_of_two(300)
    tuner = Tuner(**SMALL.get_params() | {"kernels": None})
    model = NystromRidge(bandwidth=tuner, n_landmarks=60, random_state=0).fit(X, y)
    found = model.tuning_
    assert sum(one.weight for one in found.parts) == pytest.approx(1.0)
    assert len(found.parts) + len(found.dropped) == 5
    assert found.kernel == " + ".join(part_names(model))
    again = NystromRidge(model.kernel_, ridge=model.ridge_, n_landmarks=60, random_state=0).fit(X, y)
    assert again.kernel_ == model.kernel_
    assert not hasattr(again, "tuning_")


def test_without_judging_rows_all_columns_share_one_length():
    X, y = product_of_two(60)
    model = NystromRidge(random_state=0).fit(X, y)
    assert {one.level for one in model.tuning_.descents} == {"shared"}
    assert model.tuning_.levels[0].taken


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
    assert make_tuner("metric", Tuner(rows=900)) == Tuner(rows=900, levels=("metric",))
    assert make_tuner("auto", Tuner(rows=900)) == Tuner(rows=900)
    assert make_tuner("median", Tuner()) is None


@pytest.mark.filterwarnings("ignore::ridgemark.errors.ColumnWarning")  # which says that the target is constant
@pytest.mark.parametrize("constant", [7.0, 0.1, -1 / 3, 1e-9])
@pytest.mark.parametrize("estimator", [NystromRidge, ExactKernelRidge])
def test_a_constant_target_is_fitted_by_a_constant(constant, estimator):
    X, y = product_of_two(150)
    model = estimator(bandwidth=FEW, n_landmarks=30, random_state=0).fit(X, np.full(150, constant))
    assert np.allclose(model.predict(X), constant, rtol=1e-12, atol=0.0)
    options = {"bandwidth": "median", "ridge": 1e-3, "n_landmarks": 30, "random_state": 0}
    beside = estimator(**options).fit(X, np.column_stack([y, np.full(150, constant)]))
    assert np.allclose(beside.predict(X)[:, 1], constant, rtol=1e-12, atol=0.0)
