"""The thin path end to end: rows, landmarks, fit, predict, against the exact oracle."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score

from ridgemark import NystromRidge, exact, open_rows
from ridgemark.errors import (
    DataError,
    DataTypeError,
    LandmarkCountWarning,
    ParameterError,
    RidgemarkError,
    UnknownParameterError,
)
from ridgemark.kernels import Gaussian, Polynomial, Precomputed
from ridgemark.selection import Given


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 4))
    return X, np.cos(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=250), rng.uniform(0, 2, 250)


@pytest.mark.parametrize("ridge", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_all_rows_as_landmarks_it_is_scikit_learns_kernel_ridge(data, ridge, weighted):
    X, y, w = data
    weights = w if weighted else None
    model = NystromRidge(bandwidth=2.0, ridge=ridge, fit_intercept=False).fit(X, y, sample_weight=weights)
    alpha = ridge * (w.sum() if weighted else 250)
    peer = KernelRidge(kernel="rbf", gamma=1 / 8, alpha=alpha).fit(X, y, sample_weight=weights)
    assert model.scaled_ridge_ == pytest.approx(alpha)
    assert model.predict(X) == pytest.approx(peer.predict(X), abs=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_an_intercept_and_all_rows_it_is_exact_kernel_ridge(data, weighted):
    X, y, w = data
    weights = w if weighted else None
    model = NystromRidge(bandwidth=2.0, ridge=1e-4).fit(X, y + 1e5, sample_weight=weights)
    K = exact.kernel_matrix(X, Gaussian(2.0))
    twin = exact.kernel_ridge(K, y + 1e5, model.scaled_ridge_, weights, fit_intercept=True)
    assert model.predict(X) == pytest.approx(twin.fitted, abs=1e-6)
    assert model.intercept_ == pytest.approx(twin.intercept, rel=1e-9)


def test_with_fewer_landmarks_it_is_kernel_ridge_on_the_nystrom_approximation(data):
    X, y, _ = data
    model = NystromRidge(bandwidth=2.0, ridge=1e-4, n_landmarks=40, fit_intercept=False, random_state=3).fit(X, y)
    K = exact.kernel_matrix(X, Gaussian(2.0))
    S = exact.column_sketch(model.landmark_indices_, np.full(250, 1 / 250))
    L = exact.nystrom_approximation(K, S)
    assert model.n_landmarks_ == 40
    assert model.predict(X) == pytest.approx(exact.kernel_ridge(L, y, 250 * 1e-4).fitted, abs=1e-7)


def test_precomputed_follows_the_pairwise_convention(data):
    X, y, _ = data
    K = exact.kernel_matrix(X, Gaussian(2.0))
    given = NystromRidge("precomputed", ridge=1e-4, n_landmarks=40, random_state=3).fit(K, y)
    J = given.landmark_indices_
    assert len(J) == 40
    twin = exact.kernel_ridge(
        exact.nystrom_approximation(K, exact.column_sketch(J, np.full(250, 1 / 250))), y, 250 * 1e-4, fit_intercept=True
    )
    assert given.predict(K) == pytest.approx(twin.fitted, abs=1e-7)


def test_a_callable_kernel_is_the_kernel_it_computes(data):
    X, y, _ = data
    by_name = NystromRidge(bandwidth=2.0, ridge=1e-3, random_state=0).fit(X, y)
    by_function = NystromRidge(lambda a, b: Gaussian(2.0)(a, b), ridge=1e-3, random_state=0).fit(X, y)
    assert by_function.predict(X) == pytest.approx(by_name.predict(X), abs=1e-10)


def test_blocks_of_any_size_give_the_same_model(data):
    X, y, _ = data
    whole = NystromRidge(bandwidth="median", ridge=1e-5, n_landmarks=50, selection="leverage", random_state=0).fit(X, y)
    small = clone(whole).set_params(memory_budget=40_000).fit(X, y)
    assert small.predict(X) == pytest.approx(whole.predict(X), abs=1e-8)


def test_the_same_seed_gives_the_same_model_and_the_order_of_rows_does_not_matter(data):
    X, y, _ = data
    model = NystromRidge(bandwidth="median", n_landmarks=30, ridge=1e-4, random_state=5).fit(X, y)
    again = NystromRidge(bandwidth="median", n_landmarks=30, ridge=1e-4, random_state=5).fit(X, y)
    assert np.array_equal(model.dual_coef_, again.dual_coef_)
    shuffled = np.random.default_rng(0).permutation(250)
    other = NystromRidge(bandwidth="median", n_landmarks=30, ridge=1e-4, random_state=5).fit(X[shuffled], y[shuffled])
    assert set(shuffled[other.landmark_indices_]) == set(model.landmark_indices_)
    assert other.predict(X) == pytest.approx(model.predict(X), abs=1e-8)


def test_repeated_rows_are_never_chosen_twice(data):
    X, y, _ = data
    repeated = np.concatenate([X, X, X])
    model = NystromRidge(bandwidth="median", n_landmarks=200, ridge=1e-4, random_state=0).fit(repeated, np.tile(y, 3))
    assert len(np.unique(model.landmarks_, axis=0)) == 200


def test_a_row_of_weight_zero_is_absent(data):
    X, y, _ = data
    weights = (np.arange(250) < 200).astype(float)
    spoiled = y.copy()
    spoiled[200:] = 1e9
    model = NystromRidge(bandwidth="median", random_state=0).fit(X, spoiled, sample_weight=weights)
    assert model.landmark_indices_.max() < 200
    assert model.predict(X) == pytest.approx(
        NystromRidge(bandwidth="median", random_state=0).fit(X[:200], y[:200]).predict(X), abs=1e-6
    )


def test_it_fits_from_a_file_as_from_the_array(data, tmp_path):
    X, y, _ = data
    path = tmp_path / "rows.csv"
    header = "a,b,c,d,target"
    np.savetxt(path, np.c_[X, y], delimiter=",", header=header, comments="", fmt="%.17g")
    from_file = NystromRidge(bandwidth="median", n_landmarks=60, random_state=0).fit(open_rows(path, target="target"))
    from_array = NystromRidge(bandwidth="median", n_landmarks=60, random_state=0).fit(X, y)
    rows = open_rows(path, columns=["a", "b", "c", "d"])
    assert from_file.predict(rows) == pytest.approx(from_array.predict(X), abs=1e-10)
    assert from_file.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(DataError, match="fitted on the features a, b, c, d, in this order, got d, c, b, a"):
        from_file.predict(open_rows(path, columns=["d", "c", "b", "a"]))
    from_file.fit(open_rows(X, target=y))
    assert not hasattr(from_file, "feature_names_in_")


def test_more_landmarks_than_distinct_rows_warns_and_uses_all(data):
    X, y, _ = data
    with pytest.warns(LandmarkCountWarning, match="n_landmarks=999 exceeds the 250 distinct rows"):
        assert NystromRidge(bandwidth="median", n_landmarks=999).fit(X, y).n_landmarks_ == 250


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.filterwarnings("ignore:the target is 7 in all rows")
def test_a_handful_of_rows_and_equal_rows_just_work(rows):
    X = np.ones((rows, 2))
    model = NystromRidge(bandwidth="median").fit(X, np.full(rows, 7.0))
    assert model.predict([[1.0, 1.0]]) == pytest.approx([7.0])
    assert model.predict([[50.0, 1.0]]) == pytest.approx([7.0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": 0.0}, "ridge must be a positive finite number.* got 0.0"),
        ({"ridge": -1}, "got -1"),
        ({"ridge": "best"}, "got 'best'"),
        ({"ridge": []}, r"got \[\]"),
        ({"ridge": [1e-3, -1.0]}, r"got \[0.001, -1.0\]"),
        ({"ridge": np.nan}, "got nan"),
        ({"n_landmarks": 0}, 'positive integer or "auto", got 0'),
        ({"n_landmarks": 2.5}, "got 2.5"),
        ({"bandwidth": "mean"}, "got 'mean'"),
        ({"bandwidth": 0.0}, "bandwidth must be a positive finite number, got 0.0"),
        ({"kernel": Gaussian(1.0), "bandwidth": 2.0}, "or inside a Kernel object"),
        ({"kernel": "linear", "bandwidth": 2.0}, "cannot be set for kernel='linear'"),
        ({"kernel": "gauss"}, "kernel must be one of auto, gaussian"),
        ({"memory_budget": 10}, "10"),
    ],
    ids=str,
)
def test_an_impossible_option_is_refused_in_words(data, options, words):
    X, y, _ = data
    with pytest.raises(ParameterError, match=words):
        NystromRidge(**options).fit(X, y)


def test_bad_rows_and_weights_are_refused_in_words(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="infinity"):
        NystromRidge(bandwidth="median").fit(np.where(X > 2, np.inf, X), y)
    with pytest.raises(ValueError, match="NaN"):
        NystromRidge(bandwidth="median").fit(X, np.where(y > y.mean(), np.nan, y))
    with pytest.raises(DataError, match="weight"):
        NystromRidge(bandwidth="median").fit(X, y, sample_weight=-np.ones(250))
    with pytest.raises(DataError, match="weight"):
        NystromRidge(bandwidth="median").fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="inconsistent"):
        NystromRidge(bandwidth="median").fit(X, y[:5])


def test_a_row_source_must_have_targets_and_bring_them_itself(data):
    X, y, _ = data
    with pytest.raises(DataError, match="no targets to fit; name them when opening it"):
        NystromRidge(bandwidth="median").fit(open_rows(X))
    with pytest.raises(ParameterError, match="brings its own targets"):
        NystromRidge(bandwidth="median").fit(open_rows(np.c_[X, y], target=4), y)


def test_rows_of_another_width_are_refused_at_predict(data):
    X, y, _ = data
    model = NystromRidge(bandwidth="median", n_landmarks=20, ridge=1e-3).fit(X, y)
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(X[:, :2])
    with pytest.raises(DataError, match="fitted on 4 features, got rows of 2"):
        model.predict(open_rows(X[:, :2]))


def test_a_second_fit_leaves_nothing_of_the_first(data):
    X, y, _ = data
    model = NystromRidge(bandwidth="median", n_landmarks=20, selection="leverage", random_state=0).fit(X, y)
    assert hasattr(model, "leverage_scores_")
    model.set_params(selection="uniform").fit(X, y)
    assert not hasattr(model, "leverage_scores_")
    assert not hasattr(model, "coherence_")


def test_a_pickled_model_predicts_the_same_bits(data):
    import pickle

    X, y, _ = data
    model = NystromRidge(bandwidth="median", n_landmarks=20, random_state=0).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_eight_threads_predict_the_bytes_of_one_and_restore_thread_limits(data):
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info, threadpool_limits

    X, y, _ = data
    X = np.tile(X, (4, 1))  # several blocks, which run in threads of their own
    model = NystromRidge(bandwidth="median", n_landmarks=20, random_state=0).fit(X, np.tile(y, 4))

    def answers(_):
        return np.c_[model.predict(X), model.predict(X, return_std=True)[1], model.predict_interval(X)].tobytes()

    with threadpool_limits(1, user_api="blas"):
        expected = answers(0)
    with threadpool_limits(2, user_api="blas"):
        before = threadpool_info()
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(answers, range(24))) == {expected}
        assert threadpool_info() == before


def test_changing_the_kernel_after_a_fit_does_not_change_the_model(data):
    X, y, _ = data
    kernel = Polynomial(degree=2)
    model = NystromRidge(kernel=kernel, ridge=1e-3, n_landmarks=20, random_state=0).fit(X, y)
    before = model.predict(X)
    model.set_params(kernel__degree=5)
    kernel.degree = 4
    assert np.array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("kernel", "scale", "words"),
    [
        ("linear", 1e160, "beyond the floating-point range; rescale the columns"),
        (Polynomial(degree=400), 10.0, "beyond the floating-point range"),
        pytest.param(lambda A, B: -(A @ B.T), 1.0, "not positive semidefinite", id="negative"),
        pytest.param(lambda A, B: np.tanh(A @ B.T - 1), 1.0, "not positive semidefinite", id="tanh"),
        (["gaussian"], 1.0, "kernel must be one of"),
        (Gaussian, 1.0, "kernel must be one of"),
        (Gaussian() * -1.0, 1.0, "factor must be a positive finite number, got -1.0"),
    ],
    ids=str,
)
@pytest.mark.parametrize("selection", ["uniform", "leverage", "rpcholesky", "bless"])
def test_a_kernel_that_cannot_be_used_is_refused_in_words(data, kernel, scale, words, selection):
    X, y, _ = data
    with pytest.raises(RidgemarkError, match=words):
        NystromRidge(kernel=kernel, ridge=1e-3, n_landmarks=20, selection=selection, random_state=0).fit(X * scale, y)


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (None, "a name, a Selection object or a 2-d array of points, got None"),
        ([1, 5, 7], r"row numbers are given as Given\(indices=...\)"),
        (Given(indices=[]), "at least one landmark, got none"),
    ],
    ids=str,
)
def test_a_selection_that_cannot_be_used_is_refused_in_words(data, selection, words):
    X, y, _ = data
    with pytest.raises(ParameterError, match=words):
        NystromRidge(bandwidth="median", selection=selection, ridge=1e-3).fit(X, y)


def test_given_landmarks_decide_their_number_and_need_no_pilot():
    X = np.random.default_rng(0).normal(size=(900, 2))
    model = NystromRidge(bandwidth="median", selection=X[:7], ridge=1e-3, n_landmarks=500).fit(X, X[:, 0])
    assert model.landmark_count_.n_landmarks == model.n_landmarks_ == 7
    assert model.n_kernel_evaluations_ == 2 * 900 * 7 + 7 * 7  # the sums, and a look at the training error


def test_a_precomputed_kernel_must_be_square_and_its_multiples_are_pairwise_too(data):
    X, y, _ = data
    K = exact.kernel_matrix(X, Gaussian(2.0))
    with pytest.raises(DataError, match=r"must be square, got shape \(250, 60\)"):
        NystromRidge("precomputed", ridge=1e-3).fit(K[:, :60], y)
    folds = cross_val_score(NystromRidge(2.0 * Precomputed(), ridge=1e-3, n_landmarks=50, random_state=0), K, y, cv=3)
    assert (folds > 0.5).all()


def test_a_path_given_as_rows_is_answered_with_the_way_to_open_it():
    with pytest.raises(DataTypeError, match=r"use open_rows\('rows.csv', target=...\)"):
        NystromRidge(bandwidth="median").fit("rows.csv", [1.0])


def test_a_mistyped_kernel_can_still_be_displayed():
    assert "rbf" in repr(NystromRidge(kernel="rbf"))
    NystromRidge(kernel="rbf").__sklearn_tags__()


def test_masked_values_are_refused_and_not_used(data):
    X, y, _ = data
    with pytest.raises(DataError, match="X has masked values"):
        NystromRidge(bandwidth="median", ridge=1e-3).fit(np.ma.masked_array(X, X > 2), y)
    with pytest.raises(DataError, match="y has masked values"):
        NystromRidge(bandwidth="median", ridge=1e-3).fit(X, np.ma.masked_array(y, y > 1))
    with pytest.raises(DataError, match="sample_weight is a masked array"):
        NystromRidge(bandwidth="median", ridge=1e-3).fit(X, y, np.ma.masked_array(np.ones(len(y)), y > 1))


def test_parameters_of_a_kernel_given_by_name_are_refused():
    with pytest.raises(UnknownParameterError, match=r"kernel='gaussian' has no parameter 'bandwidth': give an object"):
        NystromRidge(kernel="gaussian").set_params(kernel__bandwidth=1.0)
    model = NystromRidge(kernel="gaussian").set_params(kernel=Gaussian(), kernel__bandwidth=2.0)
    assert model.kernel.bandwidth == 2.0


def test_memory_maps_are_checked_like_arrays(data, tmp_path):
    X, y, _ = data
    np.save(tmp_path / "rows.npy", X)
    mapped, model = np.load(tmp_path / "rows.npy", mmap_mode="r"), NystromRidge(bandwidth="median", ridge=1e-3)
    with pytest.raises(DataError, match="requires y to be passed"):
        model.fit(mapped)
    with pytest.raises(DataError, match="sample_weight must be an array of one number for each"):
        model.fit(mapped, y, np.ones(3))
    assert model.fit(mapped, y, 2.0).predict(X) == pytest.approx(model.fit(X, y).predict(X))


def test_a_memory_map_of_integers_is_fitted_block_by_block(data, tmp_path):
    X, y, _ = data
    counts = np.round(X * 10).astype(np.int16)
    np.save(tmp_path / "X.npy", counts)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = NystromRidge(bandwidth="median", n_landmarks=30, ridge=1e-3, random_state=0).fit(mapped, y)
    plain = NystromRidge(bandwidth="median", n_landmarks=30, ridge=1e-3, random_state=0).fit(counts.astype(float), y)
    assert np.array_equal(model.predict(mapped), plain.predict(counts.astype(float)))
    with pytest.raises(DataError, match="fitted on 4 features, got rows of 2"):
        model.predict(mapped[:, :2])
