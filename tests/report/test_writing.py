"""How numbers and names are written."""

import pytest

from ridgemark.report.writing import shortened, spoken
from ridgemark.rows.places import as_written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (540123.0, "540,100"),
        (-1234567, "-1,235,000"),
        (12345.6, "12,350"),
        (2015.0, "2015"),
        (9999.6, "10,000"),
        (0.12346, "0.1235"),
        (0.0, "0"),
        (0.00012, "0.00012"),
        (4.7e-6, "4.7e-06"),
        (1.2e20, "1.2e+20"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_are_rounded_and_have_no_exponent(value, text):
    assert as_written(value) == text


def test_digits_and_signs_are_as_asked():
    assert as_written(98115.5, 6) == "98,115.5"
    assert as_written(7500.0, 3, "+") == "+7500"
    assert as_written(-7500.0, 3, "+") == "-7500"


def test_names_keep_both_ends_and_times_have_a_unit():
    assert shortened("condition of the roof and gutters") == "condition of ... gutters"
    assert shortened("a" * 24) == "a" * 24
    assert [spoken(seconds) for seconds in (5, 600, 7200)] == ["5 s", "10 min", "2 h"]
