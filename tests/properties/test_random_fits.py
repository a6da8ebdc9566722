"""Every fit ends with finite results or with an error meant for the user, and without foreign warnings or output."""

import pytest

from tests.properties import random_classes
from tests.properties.random_fits import run_fit


def _run(first, last, run_fit=run_fit, share=0.4):
    outcomes = [run_fit(seed) for seed in range(first, last)]
    # At most half of the problems are invalid; the others must not be refused.
    assert outcomes.count("answered") > share * len(outcomes)


def test_random_fits_end_in_finite_answers_or_errors_for_users():
    _run(0, 60)


def test_a_fit_that_failed_once_ends_as_others_do():
    assert run_fit(36085) in {"answered", "refused"}  # squares of the targets are at the end of the range


@pytest.mark.slow
def test_ten_thousand_random_fits_end_in_finite_answers_or_errors_for_users():
    _run(60, 10_060)


def test_random_fits_of_labels_end_in_finite_answers_or_errors_for_users():
    _run(0, 10, random_classes.run_fit, 0.3)


@pytest.mark.slow
def test_a_thousand_random_fits_of_labels_end_in_finite_answers_or_errors_for_users():
    _run(10, 1010, random_classes.run_fit, 0.3)
