"""CSV tables that are safe in a spreadsheet."""

import csv

import pytest

from ridgemark.report.tables import write_csv


@pytest.mark.parametrize("text", ["=1+1", "+a", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_text_that_a_spreadsheet_would_evaluate_is_marked_as_text(tmp_path, text):
    write_csv(tmp_path / "t.csv", [text], [[text]])
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["'" + text]] * 2


def test_signs_alone_and_numbers_with_signs_stay_as_they_are(tmp_path):
    cells = ["-2.5", "+1", "+", "-", "=", "@"]
    assert write_csv(tmp_path / "t.csv", cells, [cells]) == 0
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [cells] * 2


def test_cells_marked_as_text_are_counted(tmp_path):
    assert write_csv(tmp_path / "t.csv", ["=a", "b"], [["-c", "d"], ["e", "=f"], [-1.0, "+"]]) == 3


def test_numbers_stay_numbers_to_the_last_digit(tmp_path):
    numbers = [-1.5, 0.1 + 0.2, 1e-300, -7]
    write_csv(tmp_path / "t.csv", list("abcd"), [numbers])
    with (tmp_path / "t.csv").open(newline="") as file:
        _, row = csv.reader(file)
    assert [float(cell) for cell in row] == numbers


def test_none_is_an_empty_cell_and_commas_and_quotes_survive(tmp_path):
    write_csv(tmp_path / "t.csv", ["a", "b"], [[None, 'say "a, b"']])
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file))[1] == ["", 'say "a, b"']
