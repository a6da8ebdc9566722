"""The commands fit, predict, certify and scores: files, numbers, errors."""

import copy
import csv
import io
import json
import os
import re
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.base import clone

from ridgemark import NystromRidge, leverage_scores, load, open_rows
from ridgemark.cli import output
from ridgemark.cli.measures import fit_and_measure, kind_of, summary
from ridgemark.report.fit_words import LEVELS
from ridgemark.tuning import Tuner
from tests.cli.conftest import ODD

NUMBERS = f"a,b,{ODD}"


@pytest.fixture(scope="module")
def fitted(folder):
    """A model fitted in Python, and its rows."""
    source = open_rows(folder / "rows.csv", target="y", columns=["a", "b", ODD])
    model = NystromRidge(n_landmarks=60, random_state=0).fit(source)
    return model, source


def test_these_tests_tune_on_few_rows(fitted):
    """A patch that missed the tuner of default fits once made them ten times as slow, without a failure."""
    assert (fitted[0].tuning_.n_landmarks, fitted[0].tuning_.n_tuning) == (40, 200)


@pytest.fixture
def model_file(folder, ridgemark):
    path = folder / "model.ridgemark"
    if not path.exists():
        code, _, errors = ridgemark(
            "fit",
            folder / "rows.csv",
            "--target",
            "y",
            "--columns",
            NUMBERS,
            "--landmarks",
            60,
            "--output",
            path,
            "--keep-sums",
        )
        assert (code, errors) == (0, [])
    return path


def read_csv(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, dtype=float)


def test_fit_equals_the_fit_in_python(folder, fitted, model_file):
    model, source = fitted
    assert np.array_equal(load(model_file).predict(source), model.predict(source))
    assert load(model_file).progress is False


def test_predictions_and_intervals_equal_those_in_python(folder, fitted, model_file, ridgemark, tmp_path):
    code, out, errors = ridgemark(
        "predict", model_file, folder / "new.csv", "--output", tmp_path / "p.csv", "--coverage", "0.8"
    )
    assert (code, out.splitlines(), errors) == (0, [str(tmp_path / "p.csv")], [])
    header, rows = read_csv(tmp_path / "p.csv")
    assert header == ["prediction", "lower", "upper"]
    model, _ = fitted
    new = open_rows(folder / "new.csv", columns=["a", "b", ODD])
    assert np.array_equal(rows[:, 0], model.predict(new))
    assert np.array_equal(rows[:, 1:], model.predict_interval(new, coverage=0.8))


def test_predictions_go_to_npy(folder, fitted, model_file, ridgemark, tmp_path):
    assert ridgemark("predict", model_file, folder / "new.csv", "--output", tmp_path / "p.npy")[0] == 0
    model, _ = fitted
    expected = model.predict(open_rows(folder / "new.csv", columns=["a", "b", ODD]))
    assert np.array_equal(np.load(tmp_path / "p.npy"), expected)


def test_fit_prints_its_summary_as_json(folder, ridgemark, tmp_path):
    code, out, _ = ridgemark(
        "fit", folder / "rows.csv", "--target", "y", "--ridge", "1e-3,1e-4", "--landmarks", "50",
        "--test", folder / "new.csv", "--output", tmp_path / "m", "--json",
    )  # fmt: skip
    assert code == 0
    record = json.loads(out)
    assert record["n_features"] == 4
    assert record["ridge"][0] in (1e-3, 1e-4)
    assert record["target_names"] == ["y"]
    assert record["certificate"]["kind"] == "audit"
    assert 0.05 < record["loo_rms"][0] < 0.5
    assert 0.05 < record["held_out"]["rms"][0] < 0.5
    assert 0.8 < record["held_out"]["coverage"][0] <= 1
    assert 0 <= record["waiting_share"] <= 1
    assert record["model"] == str(tmp_path / "m")


def test_fit_says_how_the_kernel_was_tuned_and_which_columns_matter(folder):
    source = open_rows(folder / "rows.csv", target="y", columns=["a", "b", ODD])
    small = Tuner(rows=200, judging_rows=100, landmarks=40, evaluations=8, kernels=("gaussian", "laplacian"))
    model = NystromRidge(bandwidth=small, n_landmarks=60, random_state=0)
    run = fit_and_measure(model, source)
    tuning, lines, record = model.tuning_, dict(kind_of(model).lines(model, run)), summary(model, run)
    names = " + ".join(part.kernel for part in tuning.parts)
    assert lines["kernel"] == f"{names}, {LEVELS[tuning.level]} (tuned)"
    assert record["kernel"].startswith(names)
    told = record["tuning"]
    assert (told["level"], told["kernel"], told["judged_error"]) == (tuning.level, names, tuning.judged_error)
    assert told["parts"] == [asdict(part) for part in tuning.parts]
    assert {part["kernel"] for part in told["parts"]} | {*told["dropped"]} == {"Gaussian", "Laplacian"}
    order = np.argsort(-model.feature_importances_)
    names = [("a", "b", ODD)[k] for k in order]
    assert [one["column"] for one in record["important_columns"]] == names
    assert [one["share"] for one in record["important_columns"]] == model.feature_importances_[order].tolist()
    assert lines["matters most"].startswith(f"{names[0]!r} {model.feature_importances_[order[0]]:.0%}, {names[1]!r} ")
    json.dumps(record)


def test_fit_prints_quality_then_tuning_then_columns_then_distance_then_cost(folder, fitted):
    model, source = fitted
    lines = kind_of(model).lines(model, fit_and_measure(clone(model), source))
    order = [
        "explained",
        "error",
        "equal rows",
        "held out",
        "compared",
        "left out",
        "boosting",
        "kernel",
        "lambda",
        "landmarks",
        "matters most",
    ]
    order += ["intervals", "target", "hint", "exact", "cost"]
    assert [label for label, _ in lines] == order


def test_a_held_out_file_with_training_rows_is_warned_about(folder, ridgemark, tmp_path):
    old, new = ((folder / name).read_text().splitlines(keepends=True) for name in ("rows.csv", "new.csv"))
    (tmp_path / "mixed.csv").write_text("".join(new + old[5:9]))
    options = ("--target", "y", "--columns", NUMBERS, "--landmarks", 40, "--bandwidth", 2, "--output", tmp_path / "m")
    code, out, errors = ridgemark("fit", folder / "rows.csv", *options, "--test", tmp_path / "mixed.csv")
    assert (code, len(errors)) == (0, 1)
    assert "4 of the 154 rows of " in errors[0]
    assert "4 of them have the features of training rows" in out
    same = ("fit", folder / "rows.csv", *options, "--force", "--test", folder / "new.csv", "--json")
    code, out, errors = ridgemark(*same)
    assert (code, errors, json.loads(out)["held_out"]["repeated"]) == (0, [], 0)


def test_decimal_commas_and_semicolons_give_the_same_model(folder, ridgemark, tmp_path):
    arguments = ("--target", "y", "--ridge", 1e-3, "--landmarks", 40, "--bandwidth", "median")
    for name in ("rows.csv", "new.csv"):
        text = (folder / name).read_text()
        (tmp_path / name).write_text(text.replace(",", ";").replace(".", ","))
    points, commas = (folder, ()), (tmp_path, ("--decimal", ","))
    predictions = []
    for k, (where, form) in enumerate((points, commas, (tmp_path, (*commas[1], "--delimiter", ";")))):
        test = ("--test", where / "new.csv", "--output", tmp_path / f"{k}.m")
        assert ridgemark("fit", where / "rows.csv", *arguments, *test, *form)[0] == 0
        output = tmp_path / f"{k}.npy"
        assert ridgemark("predict", tmp_path / f"{k}.m", where / "new.csv", "--output", output)[0] == 0
        predictions.append(np.load(output))
    assert np.array_equal(predictions[0], predictions[1])
    assert np.array_equal(predictions[0], predictions[2])
    code, _, errors = ridgemark("fit", tmp_path / "rows.csv", *arguments, "--output", tmp_path / "m")
    assert (code, len(errors)) == (2, 1)
    assert "--decimal ," in errors[0]


def test_tabs_can_be_named_as_the_delimiter(folder, ridgemark, tmp_path):
    (tmp_path / "t.csv").write_text((folder / "new.csv").read_text().replace(",", "\t"))
    arguments = ("--columns", "a,b", "--ridge", 1e-2, "--top", 0, "--delimiter")
    outputs = [ridgemark("scores", tmp_path / "t.csv", *arguments, tab) for tab in ("tab", r"\t", "\t")]
    assert outputs[0][0] == 0
    assert outputs == outputs[:1] * 3


def test_a_table_with_text_gaps_and_dates_needs_no_option_but_the_target(folder, ridgemark, tmp_path):
    for name in ("rows.csv", "new.csv"):
        lines = (folder / name).read_text().splitlines()
        cells = [line.split(",") for line in lines[1:]]
        for k, row in enumerate(cells):
            row[1] = "" if k % 10 == 3 else row[1]
            row[3:3] = [f"2021-0{k % 9 + 1}-1{k % 7}", "True" if k % 3 else "false"]
        text = "\r\n".join([lines[0].replace(",colour", ",day,flag,colour"), *map(",".join, cells)])
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    arguments = ("--target", "y", "--ridge", 1e-3, "--landmarks", 40, "--test", tmp_path / "new.csv")
    assert ridgemark("fit", tmp_path / "rows.csv", *arguments, "--output", tmp_path / "m")[0] == 0
    model = load(tmp_path / "m")
    assert list(model.feature_names_in_) == ["a", "b", ODD, "day", "flag", "colour"]
    assert {"b missing", "flag", "colour=red", "day elapsed days"} <= set(model.encoded_names_)
    output = tmp_path / "p.npy"
    assert ridgemark("predict", tmp_path / "m", tmp_path / "new.csv", "--output", output)[0] == 0
    columns = list(model.feature_names_in_)
    assert np.array_equal(np.load(output), model.predict(open_rows(tmp_path / "new.csv", columns=columns)))


def test_a_given_ridge_has_intervals_too(folder, ridgemark, tmp_path):
    arguments = ("--target", "y", "--columns", "a,b", "--ridge", "1e-3", "--landmarks", 40, "--output", tmp_path / "m")
    assert ridgemark("fit", folder / "rows.csv", *arguments)[0] == 0
    code, _, _ = ridgemark(
        "predict", tmp_path / "m", folder / "new.csv", "--output", tmp_path / "p.csv", "--coverage", "0.9"
    )
    assert code == 0


def test_several_targets_have_a_column_each(folder, ridgemark, tmp_path):
    arguments = ("--target", "y,a", "--columns", "b", "--landmarks", 30, "--output", tmp_path / "m")
    assert ridgemark("fit", folder / "rows.csv", *arguments)[0] == 0
    out = tmp_path / "p.csv"
    assert ridgemark("predict", tmp_path / "m", folder / "new.csv", "--output", out, "--coverage", "0.9")[0] == 0
    header, rows = read_csv(out)
    assert header == [f"{what}_{name}" for name in "ya" for what in ("prediction", "lower", "upper")]
    assert rows.shape == (150, 6)
    _, printed, _ = ridgemark("effects", tmp_path / "m", folder / "new.csv")
    assert re.findall(r"Average effects on (\w+) over", printed) == ["y", "a"]


def test_an_array_of_several_targets_is_fitted(ridgemark, tmp_path):
    table = np.random.default_rng(0).normal(size=(60, 4))
    np.savez(tmp_path / "rows.npz", X=table[:, :2], y=table[:, 2:])
    code, _, errors = ridgemark("fit", tmp_path / "rows.npz", "--bandwidth", "median", "--output", tmp_path / "m")
    assert code == 0, errors
    assert ridgemark("predict", tmp_path / "m", tmp_path / "rows.npz", "--output", tmp_path / "p.csv")[0] == 0
    header, rows = read_csv(tmp_path / "p.csv")
    assert header == ["prediction_y 0", "prediction_y 1"]
    assert np.array_equal(rows, load(tmp_path / "m").predict(table[:, :2]))


def test_columns_without_names_are_known_by_position(ridgemark, tmp_path):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(80, 4))
    np.save(tmp_path / "rows.npy", table)
    (tmp_path / "rows.csv").write_text("\n".join(",".join(map(repr, row)) for row in table.tolist()))
    for name in ("rows.npy", "rows.csv"):
        assert ridgemark("fit", tmp_path / name, "--target", "-1", "--output", tmp_path / name[-3:])[0] == 0
    assert np.array_equal(load(tmp_path / "npy").dual_coef_, load(tmp_path / "csv").dual_coef_)
    assert ridgemark("predict", tmp_path / "csv", tmp_path / "rows.csv", "--output", tmp_path / "p.csv")[0] == 0


def test_certify_measures_the_fit(folder, fitted, model_file, ridgemark):
    code, out, _ = ridgemark("certify", model_file, folder / "rows.csv", "--json")
    model, source = fitted
    assert code == 0
    assert json.loads(out)["bound"] == pytest.approx(model.certify(source).bound)
    code, out, _ = ridgemark("certify", model_file, folder / "rows.csv", "--kind", "trace")
    assert out.startswith("Fitted values are within")


def test_the_device_may_be_another_than_that_of_the_fit(folder, fitted, ridgemark, tmp_path):
    copy.copy(fitted[0]).set_params(device="cuda:99").save(tmp_path / "m", sums=True)
    for command in (("predict", "--output", tmp_path / "p.csv"), ("certify", "--target", "y")):
        arguments = command[0], tmp_path / "m", folder / "rows.csv", "--columns", NUMBERS, *command[1:]
        code, _, errors = ridgemark(*arguments)
        assert (code, len(errors)) == (2, 1)
        assert "device='cuda:99'" in errors[0]
        assert ridgemark(*arguments, "--device", "cpu")[0] == 0


def test_a_fit_keeps_all_sums_when_it_is_asked_to(folder, ridgemark, tmp_path):
    fit = ("fit", folder / "rows.csv", "--target", "y", "--columns", NUMBERS, "--bandwidth", 1, "--landmarks", 90)
    for path, more in ((tmp_path / "m", ()), (tmp_path / "whole", ("--keep-sums",))):
        assert ridgemark(*fit, *more, "--output", path)[0] == 0
    assert (tmp_path / "m").stat().st_size < (tmp_path / "whole").stat().st_size - 20 * 90**2
    code, _, errors = ridgemark("certify", tmp_path / "m", folder / "rows.csv")
    assert code == 2
    assert "--keep-sums" in errors[0]
    assert ridgemark("certify", tmp_path / "whole", folder / "rows.csv")[0] == 0


def test_certify_asks_for_the_rows_of_the_fit(folder, model_file, ridgemark):
    code, _, errors = ridgemark("certify", model_file, folder / "new.csv")
    assert (code, len(errors)) == (2, 1)
    assert "not the rows the model was fitted on" in errors[0]


def test_a_model_saved_from_python_is_certified_with_given_columns(folder, fitted, ridgemark, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "m", sums=True)
    code, _, errors = ridgemark("certify", tmp_path / "m", folder / "rows.csv", "--columns", NUMBERS)
    assert (code, len(errors)) == (2, 1)
    code, _, _ = ridgemark("certify", tmp_path / "m", folder / "rows.csv", "--columns", NUMBERS, "--target", "y")
    assert code == 0


def test_remedies_of_certify_name_command_line_options(folder, fitted, ridgemark, tmp_path):
    model, source = fitted
    model.save(tmp_path / "m")
    reordered = ",".join(reversed(NUMBERS.split(",")))
    code, _, errors = ridgemark("certify", tmp_path / "m", folder / "rows.csv", "--target", "y", "--columns", reordered)
    assert (code, len(errors)) == (2, 1)
    assert errors[0].endswith("choose them with --columns")
    NystromRidge(lambda X, Z: X @ Z.T, ridge=1.0, n_landmarks=2).fit(source).save(tmp_path / "own")
    code, _, errors = ridgemark("certify", tmp_path / "own", folder / "rows.csv")
    assert (code, len(errors)) == (2, 1)
    assert errors[0].endswith("only in Python: ridgemark.load(path, kernel=...)")


def test_missing_information_of_a_model_saved_from_python_is_requested(folder, fitted, ridgemark, tmp_path):
    source = fitted[1]
    block = source.take(np.arange(source.n_rows))
    model = NystromRidge(bandwidth="median", ridge="gcv", n_landmarks=20, selection="uniform")
    model.fit(block.features, block.targets[:, 0]).save(tmp_path / "m")
    numbers = ("predict", tmp_path / "m", folder / "new.csv", "--output", tmp_path / "p.csv", "--columns")
    for arguments, remedy in (
        ((*numbers, "a,b"), "choose them with --columns"),
        ((*numbers, NUMBERS, "--coverage", "0.9"), "give a model of `ridgemark fit`, which keeps them"),
        (("certify", tmp_path / "m", folder / "rows.csv", "--columns", NUMBERS), "name it with --target"),
    ):
        code, _, errors = ridgemark(*arguments)
        assert (code, len(errors)) == (2, 1)
        assert remedy in errors[0]
    assert not (tmp_path / "p.csv").exists()


def test_very_few_rows_are_fitted_without_intervals(ridgemark, tmp_path):
    (tmp_path / "few.csv").write_text("a,y\n1,2\n2,3\n4,1\n")
    arguments = ("--target", "y", "--ridge", "0.1", "--test", tmp_path / "few.csv", "--output", tmp_path / "m")
    code, out, errors = ridgemark("fit", tmp_path / "few.csv", *arguments, "--json")
    assert (code, len(errors)) == (0, 1)
    assert "3 of the 3 rows" in errors[0]
    assert json.loads(out)["held_out"]["coverage"] is None


def test_scores_without_a_ridge_take_it_by_leave_one_out_or_from_a_model(folder, model_file, ridgemark, tmp_path):
    model, rows = load(model_file), folder / "rows.csv"
    source = open_rows(rows, columns=["a", "b", ODD])
    code, out, errors = ridgemark("scores", rows, "--model", model_file, "--json", "-o", tmp_path / "s.csv")
    assert (code, errors) == (0, [])
    assert json.loads(out)["ridge"] == model.ridge_
    expected = leverage_scores(source, ridge=model.ridge_, kernel=model.kernel_, random_state=0)
    assert np.array_equal(read_csv(tmp_path / "s.csv")[1][:, 1:], np.c_[expected.lower, expected.upper])
    options = ("--target", "y", "--columns", NUMBERS, "--landmarks", 60)
    searched = NystromRidge("gaussian", bandwidth="median", n_landmarks=60, random_state=0)
    searched.fit(open_rows(rows, target="y", columns=["a", "b", ODD]))
    assert json.loads(ridgemark("scores", rows, *options, "--json")[1])["ridge"] == searched.ridge_
    assert "(by leave-one-out)" in ridgemark("scores", rows, *options)[1]
    code, _, errors = ridgemark("scores", rows, "--columns", "a")
    assert (code, len(errors)) == (2, 1)
    assert "give --ridge, a --model, or a --target" in errors[0]


@pytest.mark.parametrize(
    "option", [("--kernel", "laplacian"), ("--bandwidth", 3), ("--drop", "a"), ("--unknown", "error")]
)
def test_scores_of_a_model_refuse_options_that_the_model_knows(option, folder, model_file, ridgemark):
    code, _, errors = ridgemark("scores", folder / "rows.csv", "--model", model_file, *option)
    assert code == 2
    assert errors[0].startswith(f"ridgemark: {option[0]} cannot be given with --model, whose own is taken; leave one")


def test_scores_equal_those_in_python(folder, ridgemark, tmp_path):
    arguments = ("--ridge", "1e-3", "--columns", "a,b", "--output", tmp_path / "s.csv", "--json", "--top", "3")
    code, out, _ = ridgemark("scores", folder / "rows.csv", *arguments)
    assert code == 0
    header, rows = read_csv(tmp_path / "s.csv")
    expected = leverage_scores(open_rows(folder / "rows.csv", columns=["a", "b"]), ridge=1e-3, random_state=0)
    assert header == ["row", "lower", "upper"]
    assert np.array_equal(rows[:, 2], expected.upper)
    record = json.loads(out)
    assert record["top"][0]["row"] == int(expected.upper.argmax())
    assert len(record["top"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "none.csv", "--target", "y"), "there is no file"),
        (("fit", "rows.csv", "--target", "Y"), "no column 'Y'"),
        (("fit", "rows.csv", "--columns", "a,b"), "no target to fit; name its column with --target"),
        (("fit", "rows.csv", "--target", "y", "--columns", "a", "--ridge", "-1"), "ridge must be a positive"),
        (("fit", "rows.csv", "--target", "y", "--columns", "a", "--kernel", "linear", "--bandwidth", "2"), "bandwidth"),
        (("fit", "rows.csv", "--target", "y", "--columns", "a", "--drop", "shape"), "no column 'shape'"),
        (("fit", "empty.csv", "--target", "y"), "is empty"),
        (("fit", "rows.txt", "--target", "y"), "no known extension"),
        (("fit", "some.ridgemark", "--target", "y"), "holds a model, not data"),
        (("predict", "rows.csv", "some.ridgemark"), "holds data, not a model; give the model .* first"),
        (("predict", "some.ridgemark", "rows.csv"), "give a model file written by save or `ridgemark fit`"),
        (("fit", "no_y.npz"), "--target, or store it in the file as the array y"),
        (("scores", "rows.csv", "--ridge", "0", "--columns", "a"), "ridge must be a positive"),
        (("scores", "none.csv", "--ridge", "1"), "there is no file"),
        (("scores", "rows.csv", "--ridge", "1", "--columns", "a", "--device", "gpu"), "device must be .cpu.*got 'gpu'"),
        (("fit", "rows.csv", "--target", "y", "--columns", "a", "--device", "gpu"), "device must be .cpu.*got 'gpu'"),
    ],
)
def test_a_users_error_is_one_line_exit_code_2_and_no_file(
    arguments, message, folder, ridgemark, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text((folder / "rows.csv").read_text())
    (tmp_path / "rows.txt").write_text("a,y\n1,2\n")
    (tmp_path / "bad.csv").write_text("a,y\n1,2\n,3\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "some.ridgemark").write_text("no model")
    np.savez(tmp_path / "no_y.npz", X=np.eye(3))
    before = set(tmp_path.iterdir())
    code, out, errors = ridgemark(*arguments, "--output", "made.csv")
    assert (code, out, len(errors)) == (2, "", 1), errors
    assert re.search(message, errors[0]), errors
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["nowhere/made.csv", ".", "made.xyz"])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(name, folder, model_file, ridgemark, tmp_path):
    code, _, errors = ridgemark("predict", model_file, folder / "none.csv", "--output", tmp_path / name)
    assert (code, len(errors)) == (2, 1)
    assert "none.csv" not in errors[0]


def test_a_protected_folder_is_refused(folder, ridgemark, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere")
    code, _, errors = ridgemark("fit", folder / "rows.csv", "--target", "y", "--output", locked / "m")
    assert (code, len(errors)) == (2, 1)


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b[:50] + b"x" + b[51:], lambda b: b"", lambda b: b"hi"])
def test_a_damaged_model_is_refused(damage, folder, model_file, ridgemark, tmp_path):
    (tmp_path / "m").write_bytes(damage(model_file.read_bytes()))
    for command in (("predict", "--output", tmp_path / "p.csv"), ("certify",)):
        code, _, errors = ridgemark(command[0], tmp_path / "m", folder / "new.csv", *command[1:])
        assert (code, len(errors)) == (2, 1), errors
    assert not (tmp_path / "p.csv").exists()


def test_rows_without_the_features_of_the_fit_are_refused(model_file, ridgemark, tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    code, _, errors = ridgemark("predict", model_file, tmp_path / "new.csv", "--output", tmp_path / "p.csv")
    assert (code, len(errors)) == (2, 1)
    assert "there is no column '<script>" in errors[0]


def test_an_interrupted_fit_leaves_nothing(folder, ridgemark, tmp_path, monkeypatch):
    def interrupt(*_, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(NystromRidge, "fit", interrupt)
    arguments = ("fit", folder / "rows.csv", "--target", "y", "--columns", "a", "--output", tmp_path / "m")
    code, out, errors = ridgemark(*arguments)
    assert code == 130
    assert errors[-1].startswith("ridgemark: interrupted; nothing was left half-written")
    assert (out, list(tmp_path.iterdir())) == ("", [])


def test_an_interrupted_table_leaves_the_old_one(folder, model_file, ridgemark, tmp_path, monkeypatch):

    def interrupt(path, *_):
        path.write_text("half")
        raise KeyboardInterrupt

    (tmp_path / "p.csv").write_text("old")
    monkeypatch.setattr(output, "write_csv", interrupt)
    assert ridgemark("predict", model_file, folder / "new.csv", "--output", tmp_path / "p.csv", "--force")[0] != 0
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_warning_is_one_line(folder, ridgemark, tmp_path):
    code, _, errors = ridgemark(
        "fit", folder / "rows.csv", "--target", "y", "--columns", "a", "--ridge", "10,1", "--output", tmp_path / "m"
    )
    assert (code, len(errors)) == (0, 1)
    assert errors[0].startswith("ridgemark: the best ridge is the ")


@pytest.mark.parametrize("values", [("0", "1"), ("false", "true"), ("0", "1", "2"), ("0.1", "1")])
def test_a_target_of_two_values_may_be_meant_as_labels(values, ridgemark, tmp_path):
    rows = [f"{x},{values[x % 7 % len(values)]}" for x in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["a,y", *rows]), encoding="utf-8")
    options = ("--target", "y", "--bandwidth", 1, "--output", tmp_path / "m")
    code, printed, errors = ridgemark("fit", tmp_path / "x.csv", *options)
    assert code == 0, errors
    assert ("fitted as a number; --classify fits probabilities" in printed) == (
        values[-1] != "2" and values[0] != "0.1"
    )


def test_one_row_is_refused(ridgemark, tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n1,3\n", encoding="utf-8")
    code, _, errors = ridgemark("fit", tmp_path / "x.csv", "--target", "y", "--output", tmp_path / "m")
    assert code == 2
    assert "a fit needs two rows or more, got one" in errors[-1]


class Terminal(io.StringIO):
    """A terminal that records its output."""

    def isatty(self):
        return True


def watched(monkeypatch):
    """Make the error stream a terminal."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return stream


def test_progress_shows_rows_and_remaining_time_on_a_terminal(monkeypatch):
    terminal = watched(monkeypatch)
    with output.progress() as tell:
        assert tell is not None
        for done in (100, 200, 50):
            tell("moments", done, 200)
    assert "moments, 50 of 200 rows" in terminal.getvalue()
    assert re.search(r"[-\d]:[-\d]{2}:[-\d]{2}", terminal.getvalue())


def test_tuning_counts_evaluations_on_a_terminal(monkeypatch):
    terminal = watched(monkeypatch)
    with output.progress() as tell:
        tell("tuning", 57, 240)
    lines = [line for line in terminal.getvalue().splitlines() if "tuning" in line]
    assert "57 of at most 240" in lines[-1]
    assert not any("rows" in line for line in lines)


def test_scores_show_progress_only_on_a_terminal(folder, ridgemark, monkeypatch):
    arguments = ("scores", folder / "rows.csv", "--ridge", "1e-3", "--columns", "a,b", "--landmarks", 50)
    code, out, errors = ridgemark(*arguments)
    assert (code, errors) == (0, [])
    terminal = watched(monkeypatch)
    assert ridgemark(*arguments)[:2] == (code, out)
    assert "leverage scores" in terminal.getvalue()
    assert "700 of 700 rows" in terminal.getvalue()


def test_a_log_gets_a_line_of_progress_now_and_then(monkeypatch):
    log, clock = io.StringIO(), iter([0.0, 10.0, 31.0, 40.0, 95.0])
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    with output.progress() as tell:
        for done in (1000, 2000, 3000):
            tell("moments", done, 4000)
        tell("tuning", 57, 240)
    assert log.getvalue().splitlines() == ["31 s: moments, 2,000 of 4,000 rows", "1.6 min: tuning, 57 of at most 240"]
