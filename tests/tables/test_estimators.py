"""Estimators on tables and on arrays with gaps."""

import datetime as dt
import pickle

import numpy as np
import pytest
from scipy import sparse

from ridgemark import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRidge, load, open_rows
from ridgemark.errors import ColumnWarning, DataError, ParameterError
from tests.tables.cases import QUICK, fitted, messy, quietly

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2


def with_gaps(X, share=0.1, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def test_numbers_without_gaps_are_not_encoded_or_copied(numbers, monkeypatch):
    X, y = numbers
    monkeypatch.setattr("ridgemark.estimators.table_reader.encoded_by_content", None)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = fitted(X, y)
    assert np.array_equal(model.landmarks_, X[model.landmark_indices_])
    assert model.encoded_names_ == ["x0", "x1", "x2"]
    for rows in ((frame, y), (open_rows(frame, target=y),), (open_rows(X, target=y),)):
        other = fitted(*rows)
        assert np.array_equal(other.dual_coef_, model.dual_coef_)
        assert np.array_equal(other.predict(rows[0]), model.predict(X))
    assert fitted(frame, y).encoded_names_ == ["a", "b", "c"]
    source, _ = model._open(X, y, None)
    assert np.shares_memory(source.take(np.arange(5)).features, X) or source.encoder is None
    assert np.shares_memory(next(source.blocks(50)).features, X)


def test_a_parquet_file_of_numbers_gives_the_bits_of_the_array(numbers, tmp_path):
    X, y = numbers
    pd.DataFrame(np.c_[X, y], columns=list("abcy")).to_parquet(tmp_path / "t.parquet")
    model = fitted(open_rows(tmp_path / "t.parquet", target="y"))
    assert np.array_equal(model.dual_coef_, fitted(X, y).dual_coef_)
    later = open_rows(tmp_path / "t.parquet", columns=list("abc"))
    assert np.array_equal(model.predict(later), model.predict(pd.DataFrame(X, columns=list("abc"))))


@pytest.mark.parametrize("estimator", [NystromRidge, ExactKernelRidge])
def test_gaps_in_an_array_are_filled_and_marked(estimator, numbers):
    X, y = numbers
    gaps = with_gaps(X)
    model = quietly(estimator(**QUICK).fit, gaps, y)
    assert model.encoded_names_ == ["x0", "x0 missing", "x1", "x1 missing", "x2", "x2 missing"]
    medians = np.nanmedian(gaps, axis=0)
    filled = np.empty((200, 6))
    filled[:, ::2], filled[:, 1::2] = np.where(np.isnan(gaps), medians, gaps), np.isnan(gaps)
    expected = estimator(**QUICK).fit(filled, y)
    assert np.array_equal(model.predict(gaps), expected.predict(filled))
    assert estimator().__sklearn_tags__().input_tags.allow_nan
    assert model.n_features_in_ == 3


def test_gaps_are_filled_alike_in_arrays_maps_files_and_frames(numbers, tmp_path):
    X, y = numbers
    gaps = with_gaps(X)
    model = fitted(gaps, y)
    np.save(tmp_path / "t.npy", np.c_[gaps, y])
    np.save(tmp_path / "x.npy", gaps)
    frame = pd.DataFrame(gaps, columns=["a", "b", "c"])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for rows in ((frame, y), (mapped, y), (open_rows(tmp_path / "t.npy", target=3),), (open_rows(gaps, target=y),)):
        assert np.array_equal(fitted(*rows).dual_coef_, model.dual_coef_)
    for later in (mapped, open_rows(tmp_path / "x.npy")):
        assert np.array_equal(model.predict(later), model.predict(gaps))


def test_gaps_in_later_arrays_are_named_as_in_the_fit(numbers):
    X, y = numbers
    model, later = fitted(pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])]), y), X[:4].copy()
    later[1, 2] = np.nan
    with pytest.warns(UserWarning, match="valid feature names"), pytest.warns(ColumnWarning, match="column 'c2' has 1"):
        model.predict(later)


def test_gaps_in_later_rows_are_filled_with_a_warning(numbers):
    X, y = numbers
    for model in (fitted(X, y), quietly(ExactKernelRidge(**QUICK).fit, X, y)):
        later = X[:4].copy()
        later[1, 2] = np.nan
        with pytest.warns(ColumnWarning, match="column 'x2' has 1 value missing, where the fit had none"):
            found = model.predict(later)
        assert np.array_equal(found[[0, 2, 3]], model.predict(X)[[0, 2, 3]])
        assert abs(found[1] - model.predict(X)[1]) < 3.0
        assert np.isfinite(found).all()


def test_gaps_of_a_precomputed_kernel_or_a_sparse_matrix_are_refused(numbers):
    X, y = numbers
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    K[3, 4] = np.nan
    for rows, kernel in ((K, "precomputed"), (sparse.csr_array(with_gaps(X)), "gaussian")):
        with pytest.raises(ValueError, match="NaN"):
            NystromRidge(kernel, ridge=1e-3).fit(rows, y)


def test_infinity_is_refused_in_every_form(numbers, tmp_path):
    X, y = numbers
    bad = X.copy()
    bad[3, 1] = np.inf
    frame = pd.DataFrame(bad, columns=["a", "b", "c"])
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    for rows in (bad, sparse.csr_array(bad), frame, frame.astype(pd.SparseDtype(float, 0.0)), frame.assign(d="u")):
        with pytest.raises(DataError, match=r"row 3, column (1|'b') of .* is inf"):
            NystromRidge(**QUICK).fit(rows, y)
    with pytest.raises(DataError, match="row 3 of the target is an infinity"):
        NystromRidge(**QUICK).fit(X, np.where(np.arange(len(y)) == 3, -np.inf, y))
    for source in (frame.assign(y=y), tmp_path / "t.parquet"):
        with pytest.raises(DataError, match=r"row 3, column 'b' of .* is inf"):
            NystromRidge(**QUICK).fit(open_rows(source, target="y"))


@pytest.mark.parametrize("names", [["a"], ["a", "b"]], ids=str)
def test_columns_stored_sparsely_fit_as_others_do(numbers, names):
    X, y = numbers
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    thin = frame.assign(**{name: pd.arrays.SparseArray(frame[name]) for name in names})  # what is left out is NaN
    model, plain = fitted(thin, y), fitted(frame, y)
    assert np.array_equal(model.predict(thin), plain.predict(frame))


def test_importances_are_those_of_the_users_columns():
    X, y = messy()
    model = fitted(X, y)
    assert model.feature_importances_.shape == (10,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[-1] == 0.0  # a constant column
    assert set(np.argsort(model.feature_importances_)[-3:]) == {1, 2, 3}
    assert model.landmarks_.shape[1] == len(model.encoded_names_) == len(model.bandwidth_)


def test_the_effects_of_levels_with_few_rows_each_are_learned():
    rng = np.random.default_rng(1)
    shop, x = np.repeat(np.arange(150), 8), rng.normal(size=1200)
    y = rng.normal(size=150)[shop] + np.sin(2 * x) + 0.3 * rng.normal(size=1200)
    table, later = pd.DataFrame({"shop": [f"s{k}" for k in shop], "x": x}), np.arange(1200) % 4 == 0
    model = NystromRidge("matern32", bandwidth="per_feature", random_state=0).fit(table[~later], y[~later])
    assert model.score(table[later], y[later]) > 0.7  # the column x alone explains 0.3
    assert 0.1 < model.feature_importances_[0] < 0.9


def test_names_that_hardly_repeat_do_not_move_new_rows_away():
    rng = np.random.default_rng(0)
    x, names = rng.normal(size=400), [f"n{k}" for k in range(400)]
    names[:6] = ["n398", "n397", "n396", "n398", "n397", "n396"]
    table = pd.DataFrame({"name": names, "x": x})
    model = quietly(NystromRidge(bandwidth="median", n_landmarks=100, random_state=0).fit, table[:300], x[:300])
    found = quietly(model.predict, table[300:])
    assert np.corrcoef(found, x[300:])[0, 1] > 0.95


def test_few_cells_are_predicted_by_their_own_rows():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "old": rng.random(400) < 0.3})
    mean = 165.0 + 12.0 * (table["sex"] == "m") - 3.0 * table["old"]
    y = (mean + 5.0 * rng.normal(size=400)).to_numpy()
    model = NystromRidge(random_state=0).fit(table, y)
    assert np.abs(model.predict(table) - mean).max() < 2.0
    lower, upper = model.predict_interval(table).T
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.9, abs=0.03)
    tall = NystromClassifier(random_state=0).fit(table, y > 171.0)
    share = (y > 171.0).astype(float)
    for _, rows in table.groupby(["sex", "old"]):
        found = tall.predict_proba(rows)[:, 1]
        assert np.abs(found - share[rows.index].mean()).max() < 0.1


def test_the_metric_is_one_of_the_features():
    X, y = messy()
    model = quietly(NystromRidge(bandwidth="metric", kernel="gaussian", n_landmarks=60, random_state=0).fit, X, y)
    assert len(model.metric_) == len(model.encoded_names_)


def test_the_first_batch_decides_the_schema_and_no_column_is_dropped():
    X, y = messy()
    model = NystromRidge(**QUICK)
    with pytest.warns(ColumnWarning, match="numbers the rows"):
        model.partial_fit(X[:150], y[:150])
    assert "unit=metre" in model.encoded_names_
    names = model.encoded_names_
    later = X[150:].assign(unit="foot")
    with pytest.warns(ColumnWarning, match="column 'unit' has 1 level not seen in the fit, in 150 rows"):
        model.partial_fit(later, y[150:])
    assert model.encoded_names_ == names


CLASS_ANSWERS = ["predict", "predict_proba", "decision_function", "predict_set", "effects", "effects_summary"]
ANSWERS = [(NystromRidge, name) for name in ("predict", "effects", "effects_summary")]
ANSWERS += [(NystromClassifier, name) for name in CLASS_ANSWERS]


@pytest.mark.parametrize(("estimator", "method"), ANSWERS)
def test_every_answer_counts_levels_and_gaps_that_the_fit_has_not_seen_in_one_warning(estimator, method, numbers):
    X, y = numbers
    frame = pd.DataFrame({"a": X[:, 0], "town": ["Bonn", "Rome"] * 100})
    model = estimator(**QUICK).fit(frame, y > 0)
    new = pd.DataFrame({"a": [None, 0.5], "town": ["Oslo", "Oslo"]})
    with pytest.warns(ColumnWarning) as warned:
        getattr(model, method)(new)
    (message,) = [str(one.message) for one in warned]
    assert message.startswith("column 'a' has 1 value missing, where the fit had none; column 'town' has 1 level not")


def test_text_that_is_missing_in_the_first_batch_may_come_later(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=pd.Series([None] * 100 + ["u", "v"] * 50, dtype="string"))
    model = NystromRidge(**QUICK).partial_fit(frame[:100], y[:100])
    assert model.encoded_names_ == ["a", "b", "c", "d missing"]
    with pytest.warns(ColumnWarning, match="column 'd' has 2 levels not seen in the fit, in 100 rows"):
        model.partial_fit(frame[100:], y[100:])


@pytest.mark.parametrize(("first", "later"), [("{}", "{}.0"), ("{}.0", "{}")])
def test_a_level_is_the_same_whole_number_with_or_without_a_zero(numbers, first, later, recwarn):
    """A column of integers is written with .0 where it has gaps."""
    X, y = numbers
    frame = pd.DataFrame({"a": X[:, 0], "hour": [first.format(k % 4 - 1) for k in range(200)]})
    model = NystromRidge(**QUICK, categorical_features=["hour"]).fit(frame, y)
    rewritten = frame.assign(hour=[later.format(k % 4 - 1) for k in range(200)])
    assert np.array_equal(model.predict(rewritten), model.predict(frame))
    assert not len(recwarn)
    with pytest.warns(ColumnWarning, match="not seen"):
        model.predict(frame.assign(hour="01"))


def test_levels_of_any_characters_are_saved(numbers, tmp_path):
    X, y = numbers
    odd = ["\x00", "\ud800", "é\u202e", 'a"b\\', ""]
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Series([odd[k % 5] for k in range(200)], dtype=object)})
    model = fitted(frame, y)
    loaded = load(model.save(tmp_path / "m"))
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.encoded_names_[1:] == [f"b={level}" for level in sorted(odd)]


def test_a_first_batch_without_gaps_takes_later_gaps(numbers):
    X, y = numbers
    model = NystromRidge(**QUICK).partial_fit(X[:100], y[:100])
    with pytest.warns(ColumnWarning, match="missing, where the fit had none"):
        model.partial_fit(with_gaps(X[100:]), y[100:])
    assert model.score(X, y) > 0.5


def test_a_fit_that_fails_keeps_the_schema_of_the_last_one():
    X, y = messy()
    model = fitted(X, y)
    before = model.predict(X)
    with pytest.raises(DataError):
        quietly(model.fit, X[["unit"]], y)
    assert np.array_equal(model.predict(X), before)
    assert model.n_features_in_ == 10


@pytest.mark.parametrize("later", [{"kernel": "precomputed"}, {"kernel": "?"}, {"categorical_features": "?"}], ids=str)
def test_parameters_set_after_a_fit_do_not_change_its_predictions(later):
    X, y = messy()
    model = fitted(X, y)
    before = model.predict(X)
    model.set_params(**later)
    assert np.array_equal(model.predict(X), before)


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_levels_of_a_frame_are_those_of_its_csv_file(tmp_path, unit):
    rng = np.random.default_rng(0)
    days = (np.datetime64("2020-01-01") + rng.integers(0, 3, 120)).astype(f"M8[{unit}]")
    frame = pd.DataFrame({"a": rng.normal(size=120), "garden": rng.random(120) < 0.5, "day": days})
    y = frame["a"] + 5.0 * frame["garden"] + frame["day"].dt.day + rng.normal(size=120)
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    options = {**QUICK, "categorical_features": ["garden", "day"]}
    model = NystromRidge(**options).fit(frame, y)
    file = open_rows(tmp_path / "rows.csv", target="y")
    typed = frame.astype({"garden": "category", "day": str})
    for rows in (file, typed):
        assert model.predict(rows) == pytest.approx(model.predict(frame), abs=1e-12)
    of_file = NystromRidge(**options).fit(file)
    assert of_file.predict(frame) == pytest.approx(model.predict(frame), abs=1e-9)


def test_a_mask_of_a_table_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=120), "k": rng.integers(0, 3, 120)})
    model = NystromRidge(**QUICK, categorical_features=frame.dtypes == "int64").fit(frame, frame["a"] + frame["k"] ** 2)
    again = load(model.save(tmp_path / "model"))
    assert again.categorical_features == [False, True]
    assert np.array_equal(again.predict(frame), model.predict(frame))


def test_categorical_features_name_columns_or_positions(numbers):
    X, y = numbers
    X = np.c_[X, np.arange(200) % 4]
    model = quietly(NystromRidge(**QUICK, categorical_features=[3]).fit, X, y)
    assert model.encoded_names_ == ["x0", "x1", "x2", "x3=0", "x3=1", "x3=2", "x3=3"]
    frame = pd.DataFrame(X, columns=list("abcd"))
    by_name = quietly(NystromRidge(**QUICK, categorical_features=["d"]).fit, frame, y)
    assert np.array_equal(by_name.dual_coef_, model.dual_coef_)
    assert np.array_equal(by_name.predict(frame), model.predict(X))
    masked = quietly(NystromRidge(**QUICK, categorical_features=np.array([False, False, False, True])).fit, X, y)
    assert np.array_equal(masked.dual_coef_, model.dual_coef_)
    features = NystromFeatures(n_landmarks=5, categorical_features=[3]).fit(X)
    assert features.transform(X).shape == (200, 5)
    with pytest.raises(DataError, match="column 'd' of the DataFrame holds text"):
        NystromRidge(categorical_features=None).fit(frame.assign(d="u"), y)
    for wrong in ("all", 3, np.array(3), [1.5], [True, False]):
        with pytest.raises(ParameterError, match=r"categorical_features"):
            NystromRidge(categorical_features=wrong).fit(frame, y)


def test_options_of_a_source_decide_how_its_columns_are_read(numbers, tmp_path):
    X, y = numbers
    codes = np.arange(200) % 5
    pd.DataFrame({"a": X[:, 0], "code": codes, "text": codes.astype(str), "y": y}).to_parquet(tmp_path / "t.parquet")
    source = open_rows(tmp_path / "t.parquet", target="y")
    source.schema_options = {"categorical": ["code"], "numeric": ["text"], "unknown": "error"}
    model = fitted(source)
    assert model.encoded_names_ == ["a", *(f"code={k}" for k in range(5)), "text"]
    later = pd.DataFrame({"a": [0.5], "code": [7], "text": ["3"]})
    message = r"row 0, column 'code' of the DataFrame is '7', a level that the fit has not seen; .* --unknown ignore"
    with pytest.raises(DataError, match=message):
        load(model.save(tmp_path / "m")).predict(later)
    source.schema_options = {"drop": ["text", "code"]}
    assert fitted(source).encoded_names_ == ["a"]
    source.schema_options = {"missing": "error", "drop": ["text"]}
    model = fitted(source)
    assert model.predict(later).shape == (1,)
    with pytest.raises(DataError, match="row 0, column 'a' of the DataFrame is missing"):
        model.predict(later.assign(a=np.nan))


def test_text_in_a_target_is_refused_with_its_name(numbers, tmp_path):
    X, y = numbers
    words = np.where(y > 1, "dear", "cheap")
    pl = pytest.importorskip("polars")
    for target in (
        pd.Series(words, name="price"),
        pl.Series("price", words),
        pd.Series(pd.Categorical(words), name="price"),
    ):
        with pytest.raises(DataError, match=r"the target 'price' holds text, such as '(dear|cheap)'; .* convert it"):
            NystromRidge().fit(X, target)
    for target in (words, words.tolist(), words.astype(object)):
        with pytest.raises(DataError, match="the target holds text, such as"):
            NystromRidge().fit(X, target)
    frame = pd.DataFrame(X, columns=list("abc")).assign(price=words)
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        with pytest.raises(DataError, match=r"the target 'price' holds text, such as 'cheap'; .* convert it"):
            NystromRidge().fit(open_rows(source, target="price"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dt.date(2020, 1, 2), "the target holds dates or times"),
        (pd.Timestamp("2020-01-02", tz="UTC"), "the target holds dates or times"),
        (dt.timedelta(3), "the target holds time spans"),
        (pd.Period("2020-01"), "the target holds dates or times"),
        ({"a": 1}, "row 0 of the target holds a value of type dict"),
        ([1, 2, 3], "row 0 of the target holds a value of type list"),
    ],
)
def test_objects_that_are_not_numbers_are_not_targets(numbers, value, expected):
    X, y = numbers
    for target in (pd.Series([value] * len(y)), pd.Series([value] * len(y), dtype=object).to_numpy()):
        with pytest.raises(DataError, match=expected):
            NystromRidge().fit(X, target)
    with pytest.raises(DataError, match="row 1 of the target holds text, 'u'"):
        NystromRidge().fit(X, pd.Series([1, "u"] * (len(y) // 2)))
    with pytest.raises(DataError, match="the target cannot be made into an array of numbers"):
        NystromRidge().fit(X, [[1], [2, 3]] * (len(y) // 2))


def test_a_missing_target_is_refused_with_its_name_and_count(numbers):
    X, y = numbers
    y = np.where(np.arange(200) % 10 == 3, np.nan, y)
    for target in (pd.Series(y, name="price"), pytest.importorskip("polars").Series("price", y)):
        with pytest.raises(DataError, match=r"the target 'price' is missing \(NaN\) in 20 of 200 rows, first in row 3"):
            NystromRidge().fit(X, target)
    for target in (y, y[:, None], y.astype(object), y.tolist()):
        with pytest.raises(DataError, match=r"the target is missing \(NaN\) in 20 of 200 rows"):
            NystromRidge().fit(X, target)


def test_an_id_among_numbers_is_warned_about(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=list("abc")).assign(nr=np.arange(200))
    with pytest.warns(ColumnWarning, match="column 'nr' numbers the rows"):
        NystromRidge(**QUICK).fit(frame, y)
    NystromRidge(**QUICK).fit(frame.to_numpy(), y)  # without names


def test_a_changed_schema_in_a_file_is_refused(tmp_path):
    from ridgemark.errors import ModelFileError
    from ridgemark.persistence.container import read_model, write_model
    from tests.persistence.cases import place_of

    X, y = messy()
    path = fitted(X, y).save(tmp_path / "m")
    header, arrays = read_model(path)
    field, _ = place_of(header, "model.fitted.schema.table.fields.3.kind")
    for place, value in (("kind", "boolean"), ("levels", {"words": ["b", "a"]}), ("parts", {"tuple": ["year"]})):
        before = field[place]
        field[place] = value
        write_model(tmp_path / "bad", {k: v for k, v in header.items() if k != "format"}, arrays, True)
        with pytest.raises(ModelFileError, match="is damaged"):
            load(tmp_path / "bad")
        field[place] = before


def test_a_model_says_once_of_each_column_what_it_has_not_seen(numbers):
    X, y = numbers
    frame = pd.DataFrame({"a": X[:, 0], "town": ["Bonn", "Rome"] * 100})
    model, before = NystromRidge(**QUICK).fit(frame, y), None
    new = frame.assign(town=[f"T{k % 10}" for k in range(200)])
    with pytest.warns(ColumnWarning, match=r"'town' has 10 levels not seen in the fit, in 200 rows \(such as 'T0', "):
        model.predict(new)
    before = pickle.dumps(model)
    model.predict(new)
    model.effects(new)
    with pytest.warns(ColumnWarning, match="^column 'a' has 200 values missing, where the fit had none; an unseen"):
        model.predict(new.assign(a=None))
    assert pickle.dumps(model) == before
    with pytest.warns(ColumnWarning, match="'town' has 10 levels"):
        model.fit(frame, y).predict(new)


def test_a_model_of_numbers_says_once_that_values_are_missing(numbers):
    X, y = numbers
    model = NystromRidge(**QUICK).fit(X, y)
    with pytest.warns(ColumnWarning, match="column 'x0' has 200 values missing"):
        first = model.predict(X * [np.nan, 1, 1])
    assert np.array_equal(model.predict(X * [np.nan, 1, 1]), first)


def test_very_many_unseen_levels_are_counted_up_to_a_thousand():
    frame = pd.DataFrame({"a": ["u", "v"] * 600, "b": np.random.default_rng(0).normal(size=1200)})
    model = fitted(frame, frame["b"])
    with pytest.warns(ColumnWarning, match="more than 1,000 levels not seen in the fit, in 1,200 rows"):
        model.predict(frame.assign(a=[f"t{k}" for k in range(1200)]))


def mixed(numbers):
    X, y = numbers
    days = np.datetime64("2020-01-01") + np.arange(200) % 90
    return pd.DataFrame({"a": X[:, 0], "town": ["Bonn", "Rome"] * 100, "day": days, "b": X[:, 1]}), y


def test_an_array_of_objects_gives_the_model_of_its_frame(numbers):
    frame, y = mixed(numbers)
    model, objects = fitted(frame, y), frame.to_numpy(dtype=object)
    for rows in (objects, objects.tolist()):
        of_objects = fitted(rows, y)
        assert of_objects.predict(rows) == pytest.approx(model.predict(frame), abs=1e-12)
        assert of_objects.encoded_names_[:3] == ["x0", "x1=Bonn", "x1=Rome"]
    assert np.array_equal(fitted(open_rows(objects, target=y)).predict(objects), of_objects.predict(objects))
    text = np.array([[f"{k}.5", ["02139", "10001"][k % 2]] for k in range(30)])
    assert fitted(text, np.arange(30.0), n_landmarks=20).encoded_names_ == ["x0", "x1=02139", "x1=10001"]
    with pytest.raises(DataError, match="row 0, column 1 of the feature array holds a value of type list"):
        objects[3:, 1] = [[1]]
        fitted(objects[3:], y[3:])


def test_an_array_of_objects_that_are_numbers_is_one_of_numbers(numbers):
    X, y = numbers
    assert np.array_equal(fitted(X.astype(object), y).dual_coef_, fitted(X, y).dual_coef_)


def test_ensembles_take_tables(numbers):
    from sklearn.ensemble import BaggingRegressor

    frame, y = mixed(numbers)
    ensemble = BaggingRegressor(NystromRidge(**QUICK | {"n_landmarks": 40}), n_estimators=5, random_state=0)
    assert quietly(ensemble.fit, frame, y).score(frame, y) > 0.5


@pytest.mark.parametrize("estimator", [NystromRidge, NystromClassifier, ExactKernelRidge])
def test_a_list_of_dicts_gives_the_model_of_its_frame(estimator, numbers):
    frame, y = mixed(numbers)
    frame["b"] = frame["b"].where(frame["b"] > -1)
    y = y > 0 if estimator is NystromClassifier else y
    dicts = [{name: value for name, value in row.items() if value == value} for row in frame.to_dict("records")]
    model, of_dicts = (quietly(estimator(**QUICK).fit, rows, y) for rows in (frame, dicts))
    assert of_dicts.feature_names_in_.tolist() == list(frame.columns)
    for rows in (dicts, frame):
        assert np.array_equal(of_dicts.predict(rows), model.predict(frame))
    assert np.array_equal(model.predict(dicts[:3]), model.predict(frame[:3]))
    features = NystromFeatures(n_landmarks=5, random_state=0)
    assert quietly(features.fit_transform, dicts, frame["town"]).shape == (200, 5)
    if estimator is not NystromClassifier:
        with pytest.raises(DataError, match="the target 'town' holds text"):
            estimator().fit(dicts, frame["town"])


def test_a_series_in_place_of_a_table_is_refused(numbers):
    frame, y = mixed(numbers)
    model, pl = fitted(frame, y), pytest.importorskip("polars")
    for rows in (frame.loc[3], frame[["a", "b"]].loc[3], frame["a"]):
        with pytest.raises(
            DataError, match=r"got a Series of length .* X\.loc\[\[label\]\] for one row, X\[\[name\]\]"
        ):
            model.predict(rows)
    with pytest.raises(DataError, match=r"X\.select\(name\) for one column"):
        NystromRidge().fit(pl.Series("a", y), y)


@pytest.mark.parametrize("estimator", [NystromRidge, ExactKernelRidge, NystromClassifier])
def test_one_row_is_refused(estimator, numbers):
    frame, y = mixed(numbers)
    for rows in ((frame[:1], y[:1] > 0), (open_rows(frame[:1], target=y[:1] > 0),)):
        with pytest.raises(DataError, match="a fit needs two rows or more, got one"):
            estimator().fit(*rows)
