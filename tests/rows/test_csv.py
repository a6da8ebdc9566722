from __future__ import annotations

import csv
import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ridgemark.errors import DataError, ParameterError, SourceFileError
from ridgemark.rows import CsvRows, open_rows
from tests.rows.cases import refusal, values


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def to(text: str | bytes, name: str = "d.csv") -> Path:
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return Path(name)

    return to


finite = st.floats(allow_nan=False, allow_infinity=False)
unused = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(finite, unused, finite), min_size=1, max_size=30),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n", "\n\n", "\n \r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    chunk_bytes=st.integers(1, 200),
    block_rows=st.integers(1, 31),
)
def test_what_the_csv_module_writes_is_read_back(
    rows: list[tuple[float, str, float]],
    delimiter: str,
    end: str,
    quoting: Any,
    chunk_bytes: int,
    block_rows: int,
    tmp_path: Path,
) -> None:
    with (tmp_path / "d.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=quoting)
        writer.writerows([("a", "te\nxt, ;", "y"), *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", chunk_bytes)
        source = CsvRows(tmp_path / "d.csv", target="y", columns=["a"])
    assert source.n_rows == len(rows)
    blocks = list(source.blocks(block_rows))
    assert [x for block in blocks for x in block.features[:, 0]] == [row[0] for row in rows]
    assert [y for block in blocks for y in block.targets[:, 0]] == [row[2] for row in rows]
    backwards = list(range(len(rows)))[::-1]
    assert source.take(backwards).features[:, 0].tolist() == [row[0] for row in rows][::-1]


def test_blank_lines_spaces_and_a_byte_order_mark_are_skipped(write: Any) -> None:
    rows = open_rows(write("\ufeff\n a , b\n\n 1 , 2\n \t\n3,4"), target="b")
    assert rows.feature_names == ("a",)
    assert values(rows) == [[1.0], [3.0]]


def test_quoted_names_and_numbers_are_read(write: Any) -> None:
    rows = open_rows(write('a,"b, ""c"""\n1,"2"\n"3",4\n'), target='b, "c"')
    assert rows.take([0, 1]).targets.tolist() == [[2.0], [4.0]]
    assert open_rows(write('"a\r\nb",c\r\n1,2\r\n')).feature_names == ("a\r\nb", "c")


def test_true_and_false_are_one_and_zero(write: Any) -> None:
    assert values(open_rows(write("a,b\n1,True\n2,false\n"))) == [[1.0, 1.0], [2.0, 0.0]]


def test_a_file_of_one_column_is_read(write: Any) -> None:
    assert values(open_rows(write("a\n1\n\n2\n"))) == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("1,2\n\n3,x y\n", "row 1 (line 4), column 'b' of 'd.csv' holds text, 'x y'"),
        ("1,2\n3,2020-01-01\n", "row 1 (line 3), column 'b' of 'd.csv' holds text, '2020-01-01'"),
        ("1,1_000\n", "row 0 (line 2), column 'b' of 'd.csv' holds text, '1_000'"),
        ("1,2\n3,\n", "row 1 (line 3), column 'b' of 'd.csv' is missing"),
        ("1,2\nNA,4\n", "row 1 (line 3), column 'a' of 'd.csv' is missing"),
        ("1,2\n3,nan\n", "row 1 (line 3), column 'b' of 'd.csv' is missing"),
        ("1,2\n-inf,3\n", "row 1 (line 3), column 'a' of 'd.csv' is -inf"),
        ("1,1e999\n", "row 0 (line 2), column 'b' of 'd.csv' is inf"),
        ("1,9007199254740993\n", "row 0 (line 2), column 'b' of 'd.csv' is the integer 9007199254740993, beyond"),
        ("true,-9007199254740993\n", "row 0 (line 2), column 'b' of 'd.csv' is the integer -9007199254740993"),
        ("1,é\x1b\n", r"row 0 (line 2), column 'b' of 'd.csv' holds text, 'é\x1b'"),
        ("1,2\n1,2,3\n4,5\n", "row 1 (line 3) of 'd.csv' has 3 cells and the first line has 2"),
        ("1,2\n1\n4,5\n", "row 1 (line 3) of 'd.csv' has 1 cells and the first line has 2"),
        (
            "1,2\n\n4",
            "row 1 (line 4) of 'd.csv' has 1 cells and the first line has 2; every row must have the same number; ",
        ),
        ('1,2\n3,"4\n', "the row at line 3 of 'd.csv' opens a quoted field that is never closed"),
    ],
)
def test_a_bad_row_is_named_by_row_line_and_column(write: Any, body: str, expected: str) -> None:
    assert expected in refusal(write("a,b\n" + body))


def test_every_message_about_a_cell_ends_with_a_remedy(write: Any) -> None:
    assert "convert it, or leave the column out: X.drop(columns=[...])" in refusal(write("a\nx\n"))
    assert "fill it in or drop the row first" in refusal(write("a,b\n1,\n"))
    assert "the file may be truncated" in refusal(write("a,b\n1,2\n3"))
    assert "the file may be truncated" in refusal(write("a,b\n1,2\n3\n\n"))
    assert "correct that line" in refusal(write("a,b\n3\n1,2\n"))
    assert "decimal comma" in refusal(write("a;b\n1,5;2\n"))


@pytest.mark.parametrize("chunk_bytes", [16, 2**20])
def test_line_numbers_count_through_quotes_and_chunks(
    write: Any, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", chunk_bytes)
    text = 'id,note,y\n1,"two\nlines",2\n' + "2,,3\n" * 20 + "3,,x\n"
    assert "row 21 (line 24), column 'y' of 'd.csv' holds text, 'x'" in refusal(write(text), columns=["id", "y"])
    assert "row 21 (line 24) of 'd.csv' has 2 cells" in refusal(write(text.replace("3,,x", "3,4")), columns=["id"])


def test_large_floats_are_not_refused_as_integers(write: Any) -> None:
    assert values(open_rows(write("a,b\n9007199254740993.0,1e300\n"))) == [[2.0**53, 1e300]]
    assert values(open_rows(write("a\n9007199254740992\n"))) == [[2.0**53]]


def test_columns_not_in_use_may_hold_anything(write: Any) -> None:
    text = b'id,name,y\nx,\xe9\xff,1\n,"a,\nb",2\n'
    assert values(open_rows(write(text), columns=["y"])) == [[1.0], [2.0]]


def test_a_quote_inside_a_field_is_text_unless_rows_cannot_be_separated(write: Any) -> None:
    assert values(open_rows(write('a,b\n5" pipe,2\n6" pipe,3\n'), columns=["b"])) == [[2.0], [3.0]]
    message = refusal(write('a,b\n5" pipe,"two\nx","y"\n'), columns=["b"])
    assert "at or after line 2 of 'd.csv' a field that is not quoted contains a quote or a carriage return" in message
    assert "opens a quoted field that is never closed" in refusal(write('a,b\n5" pipe,2\n6,3\n'), columns=["b"])


def test_a_stray_carriage_return_is_refused(write: Any) -> None:
    assert "'d.csv' cannot be read as CSV: new-line character" in refusal(write("a,b\n1,2\n5\r6,3\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "'d.csv' is empty (0 bytes)"),
        (b"\n \r\n\n", "'d.csv' is empty: it holds only blank lines"),
        (b"a,b\n", "'d.csv' has a header but no rows; at least one row is needed"),
        (b"a,b", "'d.csv' has a header but no rows"),
        (b'a,"b\n1,2\n', "line 1 of 'd.csv' opens a quoted field that is never closed"),
        (
            "a,b\n1,2\n".encode("utf-16"),
            "'d.csv' is not plain text, or not UTF-8; a CSV file must be text in UTF-8; save",
        ),
        ("é,b\n1,2\n".encode("latin-1"), "the first line of 'd.csv' is not in UTF-8 (byte 0); save the file as UTF-8"),
        (b"a,b\r1,2\r", "carriage returns only; save it with line feeds"),
        (b"PAR1\x15\x04", "'d.csv' is not plain text"),
        (gzip.compress(b"a\n1\n", mtime=0), "'d.csv' is compressed (name it .csv.gz)"),
        (gzip.compress(b"a\n1\n", mtime=0) + b'"', "'d.csv' is compressed (name it .csv.gz)"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        (b",a\n0,2\n", "column 0 of 'd.csv' has no name; such a column is often a row number"),
    ],
)
def test_a_file_that_is_not_csv_is_refused_on_opening(write: Any, text: bytes, expected: str) -> None:
    path = write(text)
    assert expected in refusal(path)


def test_names_with_a_line_break_are_not_split_at_another_delimiter(write: Any) -> None:
    path = write('a,"b\nc"\n1,2\n')
    assert list(open_rows(path).feature_names) == ["a", "b\nc"]
    assert "the first row of 'd.csv' cannot be split at ';'; give the character" in refusal(path, delimiter=";")


def test_a_row_without_end_is_refused_in_bounded_memory(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIDGEMARK_MAX_ROW_BYTES", "1000")
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 100)
    assert "line 2 of 'd.csv' has too many bytes" in refusal(write("a\n1\n".replace("1", "1" * 3000)))
    assert "line 1 of 'd.csv' has too many bytes" in refusal(write("a" * 3000))
    assert "line 2 of 'd.csv' opens a quoted field" in refusal(write('a\n"' + "1\n" * 3000))


def test_numbers_in_the_first_line_are_data_when_columns_are_asked_for_by_position(write: Any) -> None:
    rows = open_rows(write("1,2,3\n4,5,6\n"), target=2)
    assert rows.n_rows == 2
    assert rows.feature_names == ("0", "1")
    assert open_rows(write("1,2,3\n4,5,6\n"), columns=range(3)).take([0]).features.tolist() == [[1.0, 2.0, 3.0]]


def test_numbers_in_the_first_line_are_names_when_columns_are_asked_for_by_name(write: Any) -> None:
    rows = open_rows(write("400,401,402\n4,5,6\n"), target="402")
    assert rows.n_rows == 1
    assert rows.feature_names == ("400", "401")


@pytest.mark.parametrize(
    ("text", "choice", "remedy"),
    [
        ("1,2\n4,5\n", {}, "if the file has no header, give positions: target=0"),
        ("1,2\n4,5\n", {"target": "y"}, "if they are names, give columns as text: target='2'"),
        ("1,2\n4,5\n", {"target": "y", "columns": [0]}, "give positions"),
        ("0,1\n4,5\n", {"target": 1}, "if the file has no header, add one"),
    ],
)
def test_numbers_in_the_first_line_are_refused_when_ambiguous(write: Any, text: str, choice: Any, remedy: str) -> None:
    message = refusal(write(text), **choice)
    assert "the first line of 'd.csv' holds numbers, not column names" in message
    assert remedy in message


def test_positions_work_with_a_header_too(write: Any) -> None:
    assert open_rows(write("a,b,c\n1,2,3\n"), target=-1).target_names == ("c",)


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", "0"])
def test_bad_weights_are_refused(write: Any, weight: str) -> None:
    message = refusal(write(f"a,w\n1,{weight}\n2,0\n"), weight="w")
    assert ("all weights are zero" if weight == "0" else "row 0 (line 2), column 'w' of 'd.csv' is ") in message


def test_target_and_weight_arrays_are_refused_for_a_file(write: Any) -> None:
    assert "target must be column names or positions; got" in refusal(write("a,b\n1,2\n"), target=np.ones(1))


COMPRESSED = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (j, j * j) for j in range(5000)), mtime=0)


@pytest.mark.parametrize(
    "content", [COMPRESSED[: len(COMPRESSED) // 2], COMPRESSED[:-4], COMPRESSED[:-8] + bytes(8), b"a,b\n1,2\n"]
)
def test_a_broken_compressed_file_is_refused(write: Any, content: bytes) -> None:
    message = refusal(write(content, "d.csv.gz"))
    assert "'d.csv.gz' cannot be read as gzip-compressed CSV" in message
    assert "it may be truncated or have another format" in message


def test_a_file_that_changes_between_passes_is_refused(write: Any) -> None:
    path = write("a\n1\n")
    rows = open_rows(path)
    write("a\n1\n2\n")
    for read in (lambda: next(rows.blocks(1)), lambda: rows.take([0])):
        with pytest.raises(
            SourceFileError, match=r"'d\.csv' has changed or is gone since it was opened; open it again"
        ):
            read()
    path.unlink()
    with pytest.raises(SourceFileError, match="changed or is gone"):
        next(rows.blocks(1))


def test_take_reads_only_the_chunks_it_needs(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 64)
    rows = open_rows(write("a\n" + "".join(f"{j}\n" for j in range(1000)) + "x\n"))
    assert rows.take([500, 3]).features.tolist() == [[500.0], [3.0]]  # the bad last row is in another chunk


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_a_pipe_is_refused_as_it_can_be_read_only_once(write: Any) -> None:
    os.mkfifo("p.csv")
    assert "'p.csv' is not a regular file and can be read only once; save the rows to a file" in refusal("p.csv")


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("a;b\n1,5;-2\n", {"decimal": ","}, [[1.5, -2.0]]),
        ("a,b;c,d\n1,5;1e3\n", {"decimal": ","}, [[1.5, 1000.0]]),
        ('a\tb\n"0,25"\t3\n', {"decimal": ","}, [[0.25, 3.0]]),
        ("a|b,c\n1|2\n", {"delimiter": "|"}, [[1.0, 2.0]]),
        ("a b\n1 2\n", {"delimiter": " "}, [[1.0, 2.0]]),
    ],
)
def test_delimiter_and_decimal_mark_can_be_given(write: Any, text: str, form: Any, expected: Any) -> None:
    assert values(open_rows(write(text), **form)) == expected


def test_cells_may_be_separated_by_bars(write: Any) -> None:
    assert values(open_rows(write("a|b, c|d\n1|2|3\n"))) == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "null", "#N/A", "#NA", "<NA>", " #n/a ", ""])
def test_words_for_a_missing_value(write: Any, word: str) -> None:
    path = write(f"a,t,y\n1,x,2\n{word},{word},3\n4,z,{word}\n")
    rows = CsvRows(path, target="y", skip=True)
    assert rows.n_rows == 2
    (columns,) = [piece.columns([0, 1]) for piece in rows.pieces()]
    assert [column.gaps.tolist() for column in columns] == [[False, True, False]] * 2


def test_a_decimal_mark_of_the_other_kind_is_refused(write: Any) -> None:
    assert "give decimal='.' (command line: --decimal .)" in refusal(write("a;b\n1.5;2\n"), decimal=",")
    assert "give decimal=',' (command line: --decimal ,)" in refusal(write("a;b\n1,5;2\n"))
    assert "is the integer 9007199254740993" in refusal(write("a;b\n9007199254740993;0,5\n"), decimal=",")


@pytest.mark.parametrize(
    ("delimiter", "decimal"),
    [("", "."), (";;", "."), ('"', "."), ("\n", "."), ("é", "."), (3, "."), (None, ";"), (",", ","), (";", None)],
)
def test_an_impossible_delimiter_or_decimal_mark_is_refused(write: Any, delimiter: Any, decimal: Any) -> None:
    form = {"delimiter": delimiter, "decimal": decimal}
    assert "delimiter must be one character" in refusal(write("a;b\n1;2\n"), **form)
    assert "for CSV files only" in refusal(np.ones((2, 2)), **form)


def test_a_pickled_source_reads_the_same_rows(write: Any) -> None:
    rows = pickle.loads(pickle.dumps(open_rows(write("a,b\n1,2\n3,4\n"), target="b")))
    assert values(rows) == [[1.0], [3.0]]


MESSY = (
    '\ufeffid,größe,"town, state",flag,day,late\r\n'
    '1,1.5,"Bonn, NRW",True,2020-01-01,1\r\n'
    '2,, two  words,false,NA,"2"\r\n'
    ' \r\n3, NaN ,"two\r\nlines",,2020-01-03,3\r\n'
    "+4,n/a,null,True,2020-01-04,x\r\n"
)


def raw(rows: CsvRows, columns: Any, as_text: Any = ()) -> list[list[Any]]:
    """Return the columns of every chunk."""
    return [piece.columns(columns, as_text=as_text) for piece in rows.pieces()]


@pytest.mark.parametrize("chunk_bytes", [1, 60, 2**20])
def test_columns_to_encode_are_numbers_or_text_with_gaps(
    write: Any, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", chunk_bytes)
    file = CsvRows(write(MESSY))
    assert file.names == ("id", "größe", "town, state", "flag", "day", "late")
    assert file.n_rows == 4
    pieces = raw(file, range(6))
    assert not any(column.typed for columns in pieces for column in columns)
    numbers = [np.concatenate([columns[j].values for columns in pieces]) for j in (0, 1)]
    assert numbers[0].tolist() == [1, 2, 3, 4]
    assert numbers[0].dtype == np.int64
    assert numbers[1][0] == 1.5
    assert np.isnan(numbers[1][1:]).all()
    texts = raw(file, range(6), range(6))
    assert {column.kind for columns in texts for column in columns} == {"text"}
    words = [[word for columns in texts for word in columns[j].levels[columns[j].values]] for j in range(6)]
    assert words[2] == ["Bonn, NRW", " two  words", "two\r\nlines", "null"]
    assert words[5] == ["1", "2", "3", "x"]
    assert [np.concatenate([columns[j].gaps for columns in texts]).tolist() for j in range(6)] == [
        [False] * 4,
        [False, True, True, True],
        [False, False, False, True],
        [False, False, True, False],
        [False, True, False, False],
        [False] * 4,
    ]


def test_the_kind_of_a_column_does_not_depend_on_other_chunks(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 1)
    file = CsvRows(write("a;b\n1,50;2\nx;4\n5; \n"), decimal=",")
    for _ in range(2):
        kinds = [[column.kind for column in columns] for columns in raw(file, [1, 0])]
        assert kinds == [["number", "number"], ["number", "text"], ["number", "number"]]
    assert raw(file, [0])[0][0].values.tolist() == [1.5]
    assert raw(file, [1])[2][0].gaps.tolist() == [True]


@pytest.mark.parametrize(
    ("text", "decimal", "expected"),
    [
        ("a;b\n1,5;x\n;x\n2;x\n", ".", "row 0 (line 2), column 'a' of 'd.csv' is '1,5', with a decimal comma"),
        ("a;b\n1;x\n1.5;x\n", ",", "row 1 (line 3), column 'a' of 'd.csv' is '1.5', with a decimal point"),
        (
            "a;b\n7;x\n1,234.5;x\n",
            ".",
            "row 1 (line 3), column 'a' of 'd.csv' is '1,234.5', with a decimal comma or a th",
        ),
        ("a;b\n7;x\n-1.234.567,5;x\n", ",", "row 1 (line 3), column 'a' of 'd.csv' is '-1.234.567,5', with a decimal"),
        ("a;b\n1 234;x\n7'000'000.5;x\n", ".", "row 0 (line 2), column 'a' of 'd.csv' is '1 234', with a decimal"),
    ],
)
def test_numbers_with_the_other_decimal_mark_are_not_taken_for_text(
    write: Any, text: str, decimal: str, expected: str
) -> None:
    with pytest.raises(DataError) as caught:
        raw(CsvRows(write(text), decimal=decimal), [0, 1])
    assert expected in str(caught.value)
    for other in ("1,x", "1,2345.6", "12 34", "1,234."):
        assert raw(CsvRows(write(f"a;b\n1,5;2\n{other};3\n")), [0])[0][0].kind == "text"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a,b\nx,1\nx,9007199254740993\n", "row 1 (line 3), column 'b' of 'd.csv' is the integer 9007199254740993"),
        (b"a,b\nx,1\n\xe9,2\n", "row 1 (line 3), column 'a' of 'd.csv' is not in UTF-8; save the file as UTF-8"),
    ],
)
def test_cells_that_cannot_be_encoded_are_named_by_row_line_and_column(write: Any, text: bytes, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        raw(CsvRows(write(text)), [0, 1])
    assert expected in str(caught.value)


def test_labels_are_read_as_text_on_demand(write):
    path = write("a,y\n1,01\n2,1\n3,01\n")
    assert open_rows(path, target="y").labels is None
    rows = open_rows(path, target="y", labels="text")
    assert rows.labels == ("01", "1")
    assert next(rows.blocks(3)).targets.ravel().tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ParameterError, match='labels must be "auto" or "text"'):
        open_rows(path, target="y", labels="numbers")
