"""One table as pandas, polars, Arrow, Parquet file and folder gives one model."""

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, load, open_rows
from ridgemark.errors import ColumnWarning, DataError
from tests.tables.cases import QUICK, fitted, forms, messy, quietly

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def table():
    return messy()


@pytest.fixture(scope="module")
def every_form(table, tmp_path_factory):
    return forms(*table, tmp_path_factory.mktemp("forms"))


def test_every_form_gives_the_same_model(table, every_form):
    X, y = table
    model = fitted(X, y)
    for rows, _ in every_form.values():
        other = fitted(*rows)
        assert other.encoded_names_ == model.encoded_names_
        assert other.feature_names_in_.tolist() == list(X.columns)
        assert np.abs(other.landmarks_ - model.landmarks_).max() <= 1e-12
        assert np.abs(other.dual_coef_ - model.dual_coef_).max() <= 1e-12 * np.abs(model.dual_coef_).max()


def test_a_model_of_any_form_predicts_from_any_other(table, every_form):
    expected = fitted(*table).predict(table[0])
    for rows, _ in every_form.values():
        model = fitted(*rows)
        for _, later in every_form.values():
            assert model.predict(later) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_every_kind_of_column_is_encoded(table):
    assert fitted(*table).encoded_names_ == [
        "id",
        *("höhe", "höhe missing", "rooms", "rooms missing"),
        *("city, name=Oslo", "city, name=Rome", "city, name=São, Paulo", "city, name missing"),
        *("grade=a", "grade=b", "grade=c", "tail frequency", *(f"tail code {k}" for k in (1, 2, 3, 4))),
        *("open", "open missing"),
        *("when year", "when day of year sin", "when day of year cos"),
        *("when time of day sin", "when time of day cos", "when elapsed days", "when missing", "lasted"),
    ]


@pytest.mark.parametrize("form", ["pandas", "polars", "parquet"])
def test_a_saved_model_encodes_the_same_rows(form, every_form, tmp_path):
    rows, later = every_form[form]
    model = fitted(*rows)
    loaded = load(model.save(tmp_path / "m.ridgemark"))
    assert np.array_equal(loaded.predict(later), model.predict(later))
    assert loaded.encoded_names_ == model.encoded_names_
    assert loaded.save(tmp_path / "n.ridgemark").read_bytes() == (tmp_path / "m.ridgemark").read_bytes()


@pytest.mark.parametrize("form", ["pandas", "parquet"])
def test_what_a_fit_answers_later_takes_the_table_too(form, every_form):
    rows, later = every_form[form]
    model = fitted(*rows)
    quietly(model.calibrate, *rows)
    assert model.predict_interval(later).shape == (300, 2)
    assert np.isfinite(model.certify(*rows).bound).all()
    assert model.diagnose().top(3)
    assert model.predict(later, return_std=True)[1].min() >= 0.0
    assert quietly(model.score, *rows) > 0.4
    before = model.predict(later)
    quietly(model.partial_fit, *rows)
    assert model.predict(later) == pytest.approx(before, abs=0.2)


@pytest.mark.parametrize("form", ["pandas", "polars", "parquet"])
def test_the_other_estimators_take_the_table_too(form, every_form):
    rows, later = every_form[form]
    exact = quietly(ExactKernelRidge(**QUICK).fit, *rows)
    assert exact.predict(later) == pytest.approx(fitted(*rows).predict(later), abs=0.5)
    assert exact.X_fit_.shape[1] == len(exact.encoded_names_)
    features = quietly(NystromFeatures(n_landmarks=9, random_state=0).fit, rows[0])
    assert features.transform(later).shape == (300, 9)
    assert features.components_.shape[1] == len(features.encoded_names_) == 27


def test_unseen_levels_in_a_file_are_counted_once(table, tmp_path):
    X, y = table
    model = fitted(X, y)
    later = X.copy()
    later["city, name"] = later["city, name"].where(np.arange(300) % 3 > 0, "Bonn")
    later.to_parquet(tmp_path / "later.parquet", row_group_size=40)
    with pytest.warns(
        ColumnWarning, match=r"'city, name' has 1 level not seen in the fit, in 100 rows \(such as 'Bonn'\)"
    ) as said:
        from_file = model.predict(open_rows(tmp_path / "later.parquet"), return_std=True)[0]
    assert len(said) == 1
    assert np.array_equal(from_file, quietly(model.predict, later))


def test_a_table_of_another_form_is_refused_by_column(table):
    X, y = table
    model = fitted(X, y)
    with pytest.raises(ValueError, match=r"feature names should match"):
        model.predict(X.drop(columns="grade"))
    message = r"row 0, column 'höhe' of the DataFrame is 'tall'; the column holds numbers .*; or, in the fit, name the"
    with pytest.raises(ValueError, match=message):
        model.predict(X.assign(höhe="tall"))
    with pytest.raises(ValueError, match=r"column 'when' of the DataFrame is .*; the column holds dates"):
        model.predict(X.assign(when=3.5))
    with pytest.raises(ValueError, match=r"column 'höhe' of the DataFrame is inf"):
        model.predict(X.assign(höhe=np.inf))


def test_a_model_of_text_takes_numbers_written_as_text(table):
    X, y = table
    model = fitted(X[["höhe", "grade"]], y)
    written = X[["höhe", "grade"]].assign(höhe=[None if np.isnan(v) else repr(v) for v in X["höhe"]])
    assert np.array_equal(model.predict(written), model.predict(X[["höhe", "grade"]]))


def test_a_model_of_numbers_and_booleans_takes_these_written_as_text(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.normal(size=200), "garden": rng.random(200) < 0.4})
    model = NystromRidge(bandwidth="median", n_landmarks=20, random_state=0).fit(frame, frame["area"] + frame["garden"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert np.array_equal(model.predict(open_rows(tmp_path / "rows.csv")), model.predict(frame))
    text = frame.astype({"garden": object}).replace({"garden": {True: "yes", False: "no"}})
    with pytest.raises(DataError, match="the column holds numbers"):
        model.predict(text)


def test_pickled_models_predict_the_same(table):
    import pickle

    model = fitted(*table)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(table[0]), model.predict(table[0]))
    assert NystromRidge(categorical_features=["a"]).get_params()["categorical_features"] == ["a"]
