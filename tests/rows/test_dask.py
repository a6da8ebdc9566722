"""Rows of Dask collections give the models of the same rows in memory; here by Dask's threads."""

import numpy as np
import pandas as pd
import pytest

from ridgemark import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRidge, leverage_scores, open_rows
from ridgemark.errors import DataError, DataTypeError, RidgemarkError
from ridgemark.tuning import Tuner

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 4, N).astype(float)
OPTIONS = {"bandwidth": 2.0, "n_landmarks": 40, "random_state": 0}
FRAME = pd.DataFrame(
    {
        "number": X[:, 0],
        "gaps": np.where(RNG.random(N) < 0.1, np.nan, X[:, 1]),
        "text": RNG.choice(["one", "two", "three"], N),
        "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 500, N), "D"),
        "category": pd.Categorical(RNG.choice(["x", "y"], N)),
        "whole": RNG.integers(0, 5, N),
    }
)


def chunked(values, rows=175):
    return da.from_array(values, chunks=(rows, *values.shape[1:]))


def close(one, other):
    return np.abs(np.asarray(one) - np.asarray(other)).max() <= 1e-10 * Y.std()


@pytest.mark.parametrize("options", [{}, {"ridge": 1e-6, "selection": "leverage"}])
def test_a_fit_equals_that_in_memory(options):
    memory = NystromRidge(**OPTIONS, **options).fit(X, Y, WEIGHTS)
    # Chunks of columns, and chunks of rows that differ.
    model = NystromRidge(**OPTIONS, **options).fit(da.from_array(X, chunks=(175, 2)), chunked(Y, 250), chunked(WEIGHTS))
    assert np.array_equal(memory.landmark_indices_, model.landmark_indices_)
    assert memory.ridge_ == model.ridge_
    assert close(memory.predict(X), model.predict(X))


def test_a_partition_may_have_no_weight():
    weights = np.where(np.arange(N) < 200, 0.0, WEIGHTS)
    memory = NystromRidge(**OPTIONS, ridge=1e-4, selection="uniform").fit(X, Y, weights)
    model = NystromRidge(**OPTIONS, ridge=1e-4, selection="uniform").fit(chunked(X), chunked(Y), chunked(weights))
    assert close(memory.predict(X), model.predict(X))
    with pytest.raises(DataError, match="all weights are zero"):
        NystromRidge(**OPTIONS).fit(chunked(X), chunked(Y), chunked(0 * weights))


def test_targets_in_memory_belong_to_the_rows():
    memory = NystromRidge(**OPTIONS, ridge=1e-4).fit(X, Y, WEIGHTS)
    model = NystromRidge(**OPTIONS, ridge=1e-4).fit(chunked(X), Y, WEIGHTS)
    assert close(memory.predict(X), model.predict(X))


def test_unknown_chunk_sizes_and_empty_partitions_are_allowed():
    kept = (np.arange(N) // 175 != 1) & (X[:, 0] > -1)
    memory = NystromRidge(**OPTIONS).fit(X[kept], Y[kept])
    rows, targets = chunked(X)[chunked(kept)], chunked(Y)[chunked(kept)]
    assert np.isnan(rows.shape[0])
    model = NystromRidge(**OPTIONS).fit(rows, targets)
    assert np.array_equal(memory.landmark_indices_, model.landmark_indices_)
    assert close(memory.predict(X[kept]), model.predict(rows))
    assert close(memory.loo_residuals_, model.loo_residuals_)


def test_what_is_asked_of_dask_rows_stays_lazy():
    memory, rows = NystromRidge(**OPTIONS).fit(X, np.c_[Y, -Y]), chunked(X)
    for method, options in (
        ("predict", {}),
        ("predict", {"return_std": True}),
        ("predict_interval", {"coverage": [0.5, 0.9]}),
        ("effects", {}),
    ):
        expected = getattr(memory, method)(X, **options)
        found = getattr(memory, method)(rows, **options)
        pairs = zip(expected, found, strict=True) if isinstance(found, tuple) else [(expected, found)]
        for one, other in pairs:
            assert isinstance(other, da.Array)
            assert one.shape == other.shape
            assert other.chunks[0] == rows.chunks[0]
            assert np.allclose(one, other.compute(), rtol=1e-12, atol=1e-12)
    features = NystromFeatures(n_landmarks=20, random_state=0).fit(rows)
    assert features.transform(rows).shape == (N, 20)


def test_lazy_predictions_are_those_of_the_model_at_the_time():
    model = NystromRidge(**OPTIONS, ridge=1e-3).fit(X, Y)
    expected, lazy = model.predict(X), model.predict(X=chunked(X))
    model.fit(X, -Y)
    assert np.allclose(lazy.compute(), expected, rtol=1e-12, atol=1e-12)  # sums of other blocks round otherwise


def test_predictions_refuse_other_columns_at_once():
    model = NystromRidge(**OPTIONS, ridge=1e-3).fit(X, Y)
    with pytest.raises(ValueError, match="2 features"):
        model.predict(chunked(X[:, :2]))


def test_tables_are_encoded_as_in_memory():
    rows = dd.from_pandas(FRAME.assign(y=Y), npartitions=4)
    options = {**OPTIONS, "bandwidth": "median", "ridge": 1e-4}
    memory = NystromRidge(**options).fit(FRAME, Y)
    model = NystromRidge(**options).fit(open_rows(rows, target="y"))
    assert memory.encoded_names_ == model.encoded_names_
    assert np.array_equal(memory.feature_names_in_, model.feature_names_in_)
    assert np.array_equal(memory.landmark_indices_, model.landmark_indices_)
    assert close(memory.predict(FRAME), model.predict(rows[list(FRAME)]).compute())


@pytest.mark.parametrize("with_text", range(4))
@pytest.mark.parametrize("dtype", [float, object])
def test_a_partition_of_text_among_partitions_of_numbers_is_refused_as_in_memory(with_text, dtype):
    parts = [pd.DataFrame({"a": X[k::4, 0], "b": X[k::4, 1], "y": Y[k::4]}).astype({"a": dtype}) for k in range(4)]
    parts[with_text] = parts[with_text].assign(a=np.array(["one", "two"] * (N // 8), dtype=object))
    with dask.config.set({"dataframe.convert-string": False}):
        rows = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False)
        with pytest.raises(DataTypeError, match=rf"column 'a' of partition {with_text or 1} .* of kind (text|number)"):
            NystromRidge(**OPTIONS).fit(open_rows(rows, target="y"))
    with pytest.raises(DataTypeError, match="column 'a'"):
        NystromRidge(**OPTIONS).fit(open_rows(pd.concat(parts, ignore_index=True), target="y"))


def test_tables_may_have_weights():
    options = {**OPTIONS, "bandwidth": "median", "selection": "uniform", "ridge": 1e-3}
    rows = dd.from_pandas(FRAME.assign(y=Y, w=WEIGHTS), npartitions=4)
    memory = NystromRidge(**options).fit(FRAME, Y, WEIGHTS)
    model = NystromRidge(**options).fit(open_rows(rows, target="y", weight="w"))
    assert model.encoded_names_ == memory.encoded_names_
    assert close(memory.predict(FRAME), model.predict(rows[list(FRAME)]).compute())


def test_gaps_in_arrays_are_filled_as_in_memory():
    holes = np.where(RNG.random(X.shape) < 0.05, np.nan, X)
    memory = NystromRidge(**OPTIONS, ridge=1e-4).fit(holes, Y)
    model = NystromRidge(**OPTIONS, ridge=1e-4).fit(chunked(holes), chunked(Y))
    assert close(memory.predict(holes), model.predict(chunked(holes)).compute())


def test_tuning_draws_the_same_rows():
    tuner = Tuner(rows=200, judging_rows=100, landmarks=20, evaluations=2, levels=("shared",))
    options = {"kernel": "gaussian", "bandwidth": tuner, "n_landmarks": 30, "random_state": 0}
    memory = NystromRidge(**options).fit(X, Y)
    model = NystromRidge(**options).fit(chunked(X), chunked(Y))
    assert np.allclose(memory.bandwidth_, model.bandwidth_, rtol=1e-12)
    assert np.array_equal(memory.landmark_indices_, model.landmark_indices_)


def test_scores_equal_those_in_memory():
    options = {"ridge": 1e-3, "n_landmarks": 50, "random_state": 0}
    memory, found = leverage_scores(X, **options), leverage_scores(chunked(X), **options)
    assert np.allclose(memory.upper, found.upper, rtol=1e-9)
    assert np.allclose(memory.lower, found.lower, rtol=1e-9, atol=1e-12)


def test_the_audit_is_sampled_and_holds():
    model = NystromRidge(**OPTIONS, ridge=1e-3).fit(chunked(X), chunked(Y))
    audit = model.certify(chunked(X), chunked(Y))
    exact = ExactKernelRidge("gaussian", bandwidth=2.0, ridge=1e-3, random_state=0).fit(X, Y)
    distance = np.sqrt(np.mean((exact.predict(X) - model.predict(X)) ** 2))
    assert audit.inputs["sampled_rows"] == N
    assert distance <= audit.bound
    with pytest.raises(DataError, match="not the rows"):
        model.certify(chunked(X), chunked(-Y))
    with pytest.raises(RidgemarkError, match='kind="audit"'):
        model.certify(chunked(X), chunked(Y), kind="operator")


def test_classes_are_told_apart_as_in_memory():
    labels = np.where(Y > 0, "above", "below")
    memory = NystromClassifier(**OPTIONS, ridge=1e-3).fit(X, labels)
    model = NystromClassifier(**OPTIONS, ridge=1e-3).fit(chunked(X), chunked(labels))
    assert np.array_equal(memory.landmark_indices_, model.landmark_indices_)
    assert close(memory.predict_proba(X), model.predict_proba(chunked(X)).compute())
    assert model.predict(chunked(X)).compute().tolist() == memory.predict(X).tolist()


def test_the_score_is_computed_at_once_whatever_is_known_of_the_partitions():
    frame = dd.from_pandas(FRAME.assign(y=Y, label=np.where(Y > 0, "yes", "no"), w=WEIGHTS), npartitions=4)
    rows = frame[list(FRAME)]  # partitions of unknown sizes
    options = {**OPTIONS, "bandwidth": "median", "ridge": 1e-3}
    model = NystromRidge(**options).fit(FRAME, Y)
    expected = model.score(FRAME, Y, WEIGHTS)
    assert model.score(rows, frame["y"], frame["w"]) == pytest.approx(expected, rel=1e-9)
    assert model.score(rows, Y, WEIGHTS) == pytest.approx(expected, rel=1e-9)
    exact = ExactKernelRidge(bandwidth="median", ridge=1e-3).fit(FRAME, Y)
    assert exact.score(rows, frame["y"]) == pytest.approx(exact.score(FRAME, Y), rel=1e-9)
    labels = np.where(Y > 0, "yes", "no")
    classifier = NystromClassifier(**options).fit(FRAME, labels)
    assert classifier.score(rows, frame["label"]) == classifier.score(FRAME, labels)


@pytest.mark.parametrize("make", [lambda y: chunked(y, 200), lambda y: dd.from_pandas(pd.Series(y), npartitions=3)])
def test_a_missing_target_is_named_with_its_partition_and_a_remedy_that_works(make):
    targets = make(np.where(np.arange(N) == 207, np.nan, Y))
    rows = chunked(X, 200) if hasattr(targets, "chunks") else dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(DataError, match=r"partition 1 of the target is missing.* first in row 7;") as caught:
        NystromRidge(**OPTIONS).fit(rows, targets)
    keep = eval(str(caught.value).partition("keep = ")[2].partition(" and ")[0], {"dask": dask, "y": targets})
    model = NystromRidge(**OPTIONS, ridge=1e-3).fit(rows[keep], targets[keep])
    assert model.score(rows[keep], targets[keep]) > 0.5


def test_columns_are_chosen_by_position():
    rows = open_rows(chunked(np.c_[X, Y, WEIGHTS]), target=3, weight=4)
    assert (rows.n_rows, rows.n_features, rows.n_targets, rows.has_weights) == (N, 3, 1, True)
    taken = rows.take([450, 3, 450])
    assert np.array_equal(taken.features, X[[450, 3, 450]])
    assert np.array_equal(taken.weights, WEIGHTS[[450, 3, 450]])
    blocks = list(rows.blocks(250))
    assert [block.start for block in blocks] == [0, 250, 500]
    assert np.array_equal(np.vstack([block.targets for block in blocks])[:, 0], Y)


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (chunked(X), chunked(Y[:-1]), "one row for each"),
        (chunked(X), Y[:-1], "one row for each"),
        (chunked(X)[chunked(X[:, 0] > 0)], chunked(Y, 300), "partitions of the features"),
        (chunked(X), chunked(np.where(X[:, 0] > 2, np.nan, Y)), "missing"),
        (chunked(np.where(X > 2, np.inf, X)), chunked(Y), r"partition \d of the feature array"),
        (chunked(X)[:, 0], chunked(Y), "two-dimensional"),
        (chunked(X)[:0], chunked(Y)[:0], "no rows"),
        (chunked(X).astype(complex), chunked(Y), "complex"),
    ],
)
def test_unusable_rows_are_refused_in_words(rows, targets, message):
    with pytest.raises(DataError, match=message):
        NystromRidge(**OPTIONS).fit(rows, targets)


def test_an_error_of_the_users_own_code_is_named():
    def fail(block):
        if block.size:
            raise OSError("the disk is gone")
        return block

    with pytest.raises(RidgemarkError, match="OSError: the disk is gone"):
        NystromRidge(**OPTIONS).fit(chunked(X).map_blocks(fail, meta=X[:0]), chunked(Y))


def test_a_checkpoint_keeps_whole_passes(tmp_path):
    path, passes = tmp_path / "checkpoint", []

    def interrupt(what, done, total):
        passes.append(what)
        if len(passes) == 4:
            raise KeyboardInterrupt

    options = {**OPTIONS, "ridge": 1e-3, "selection": "leverage"}
    expected = NystromRidge(**options).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        NystromRidge(**options, progress=interrupt).fit(chunked(X), chunked(Y), checkpoint=path)
    model = NystromRidge(**options).fit(chunked(X), chunked(Y), checkpoint=path)
    assert not path.exists()
    assert close(expected.predict(X), model.predict(X))


@pytest.fixture
def beyond(monkeypatch):
    """Let a budget of one GiB be too small for the vectors of a fit."""
    monkeypatch.setattr("ridgemark.passes.engine._VECTORS", 10**6)


def test_beyond_the_memory_budget_a_sample_chooses_and_no_vectors_are_kept(beyond):
    options = {**OPTIONS, "bandwidth": "median"}
    model = NystromRidge(**options).fit(chunked(X), chunked(Y), chunked(WEIGHTS))
    memory = NystromRidge(**options).fit(X, Y, WEIGHTS)
    # All rows are in the sample here, so that only groups of equal rows could differ, and no rows are equal.
    assert np.array_equal(X[model.landmark_indices_], model.landmarks_)
    assert model.ridge_ == memory.ridge_
    assert np.allclose(model.ridge_path_.loo_error, memory.ridge_path_.loo_error, rtol=0.05)
    assert model.score(X, Y) > memory.score(X, Y) - 0.01
    assert model.predict_interval(X).shape == (N, 2)
    for name in ("loo_residuals_", "leverage_scores_"):
        with pytest.raises(AttributeError, match="memory_budget"):
            getattr(model, name)
    with pytest.raises(RidgemarkError, match=f"give at least {8 * N * 10**6}"):
        model.certify(chunked(X), chunked(Y), sample_weight=chunked(WEIGHTS))


def test_beyond_the_memory_budget_widths_follow_the_noise_as_in_memory(beyond, monkeypatch):
    monkeypatch.setattr("ridgemark.passes.sample._ROWS", 1000)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, size=(4000, 2))
    targets = rows[:, 1] + (1.0 + 0.9 * rows[:, 0]) * rng.normal(size=4000)
    options = {"bandwidth": 1.0, "n_landmarks": 40, "random_state": 0}
    new = np.array([[-0.8, 0.0], [0.8, 0.0]])
    quiet, noisy = np.diff(NystromRidge(**options).fit(chunked(rows), chunked(targets)).predict_interval(new)).ravel()
    assert quiet == pytest.approx(2 * 1.645 * 0.28, rel=0.25)
    assert noisy == pytest.approx(2 * 1.645 * 1.72, rel=0.25)


def test_beyond_the_memory_budget_groups_are_those_of_each_partition(beyond):
    twice, targets = np.vstack([X[:300], X[:300]]), np.r_[Y[:300], Y[:300] + 1.0]
    # Equal rows are in one partition, so that the groups are those of all rows.
    order = np.argsort(np.tile(np.arange(300), 2), kind="stable")
    options = {"bandwidth": 1.0, "selection": X[:40], "random_state": 0}
    memory = NystromRidge(**options).fit(twice[order], targets[order])
    model = NystromRidge(**options).fit(chunked(twice[order], 150), targets[order])
    assert np.allclose(model.ridge_path_.loo_error, memory.ridge_path_.loo_error, rtol=1e-9)


def test_beyond_the_memory_budget_the_error_of_a_searched_ridge_is_of_all_rows(beyond, monkeypatch):
    monkeypatch.setattr("ridgemark.fitting.stages._WHOLE_PATH", 20)
    monkeypatch.setattr("ridgemark.passes.sample._ROWS", 500)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 2))
    targets = np.sin(2 * rows[:, 0]) + 0.3 * rng.normal(size=1500)
    options = {"bandwidth": 1.0, "selection": rows[:40]}
    model = NystromRidge(**options).fit(chunked(rows, 400), chunked(targets, 400))
    path, memory = model.ridge_path_, NystromRidge(**options, ridge=model.ridge_).fit(rows, targets)
    assert path.sample.tolist() == [k != path.chosen[0] for k in range(len(path.ridges))]
    residuals = memory.calibrate(rows, targets).loo_residuals_
    assert path.loo_error[path.chosen[0]] == pytest.approx(np.mean(residuals**2), rel=1e-7)


def test_exact_kernel_ridge_wants_rows_in_memory():
    with pytest.raises(DataError, match="NystromRidge"):
        ExactKernelRidge(bandwidth=1.0, ridge=1e-3).fit(chunked(X), chunked(Y))
