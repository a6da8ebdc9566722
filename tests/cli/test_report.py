"""The page of a fit: its contents, its safety, and its layout in a browser."""

import html
import json
import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from ridgemark import ExactKernelRidge, NystromRidge, load, open_rows
from ridgemark.cli import commands
from ridgemark.estimators.measuring import repeated_share
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_page import fit_page
from ridgemark.report.writing import printable
from ridgemark.selection import Leverage
from tests.browser import look
from tests.cli.conftest import ODD, write_rows
from tests.helpers import slowly

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A model and its page: a column and a target named <script>, categories, held-out rows."""
    folder = tmp_path_factory.mktemp("report")
    for name, n, seed in (("rows", 700, 0), ("new", 150, 1)):
        write_rows(folder / f"{name}.csv", n, seed)
        text = (folder / f"{name}.csv").read_text().replace(",y\n", ",<img src=x onerror=alert(1)>\n")
        (folder / f"{name}.csv").write_text(text)
    arguments = [
        "fit", folder / "rows.csv", "--target", "<img src=x onerror=alert(1)>", "--landmarks", 80,
        "--output", folder / "m", "--report", folder / "m.html", "--test", folder / "new.csv", "--keep-sums",
    ]  # fmt: skip
    result = CliRunner().invoke(commands, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == str(folder / "m.html")
    return folder


def test_names_from_files_are_shown_and_never_run(reported):
    page = (reported / "m.html").read_text()
    assert html.escape(ODD) in page
    assert html.escape("<img src=x onerror=alert(1)>") in page
    assert "<script" not in page
    assert "<img" not in page


def test_the_page_loads_nothing_and_every_figure_has_alternative_text(reported):
    page = (reported / "m.html").read_text()
    assert "default-src 'none'" in page
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(link.startswith("#") for link in links)
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    words = re.findall(r'role="img" aria-label="([^"]*)"', page)
    assert len(words) == page.count("<svg") == 19
    assert all(len(one) > 40 for one in words)


def test_the_page_shows_fit_errors_certificate_and_influential_rows(reported):
    page, model = (reported / "m.html").read_text(), load(reported / "m")
    loo = float(np.sqrt(np.mean(model.loo_residuals_**2)))
    for text in (
        f"{model.ridge_:.4g} (chosen among 57 by leave-one-out)",
        f"{loo:.4g}",
        html.escape(model.certificate_.claim),
        "held out: 150 rows",
        "rows.csv",
        "MiB",
        "passes over the rows",
    ):
        assert text in page, text
    for row in model.diagnose().top(10):
        assert f'<th scope="row" class="number" data-heading="row">{row.row}</th>' in page


@pytest.mark.parametrize(("width", "folded"), [(360, True), (390, False), (1200, False)])
def test_the_page_fits_the_browser_window_without_errors(reported, width, folded, tmp_path):
    text = (reported / "m.html").read_text()
    (tmp_path / "page.html").write_text(text if folded else text.replace("<details>", "<details open>"))
    scroll_width, n_words, smallest, messages = look(tmp_path / "page.html", width, tmp_path)
    assert messages == []
    assert scroll_width <= width
    assert n_words > 20
    assert smallest >= 8


def test_report_draws_the_page_of_the_fit_again(reported, ridgemark, tmp_path):
    code, out, errors = ridgemark("report", reported / "m", "--output", tmp_path / "page.html")
    assert (code, out.splitlines(), errors) == (0, [str(tmp_path / "page.html")], [])
    drawn, first = (tmp_path / "page.html").read_text(), (reported / "m.html").read_text()
    measured = (
        r", [\d.e-]+ s(?=</td>)|<tr><th[^>]*>(time|memory, at most|of their time, waiting for rows)</th>.*?</tr>\n?"
    )
    assert drawn == re.sub(measured, "", first)  # a model file holds no times


@pytest.mark.usefixtures("no_figures")
def test_report_measures_the_error_on_test_rows(folder, ridgemark, tmp_path):
    arguments = ("--target", "y", "--columns", "a,b", "--landmarks", 40, "--output", tmp_path / "m")
    assert ridgemark("fit", folder / "rows.csv", *arguments)[0] == 0
    page = tmp_path / "page.html"
    arguments = ("report", tmp_path / "m", "--output", page, "--force", "--test")
    code, out, errors = ridgemark(*arguments, folder / "new.csv", "--json")
    assert (code, json.loads(out), errors) == (0, {"page": str(page)}, [])
    assert "held-out rows" in page.read_text()
    code, _, errors = ridgemark(*arguments, folder / "rows.csv")
    assert (code, len(errors)) == (0, 1)
    assert "700 of the 700 rows" in errors[0]
    assert "held out: 700 rows, 700 of them have the features of training rows" in page.read_text()


def test_training_rows_in_a_test_file_are_estimated_from_a_sample_of_hashes():
    X = np.random.default_rng(0).normal(size=(6000, 2))
    model = NystromRidge(bandwidth=1.0, ridge=1e-2, n_landmarks=20, random_state=0).fit(X, X[:, 0])
    new = np.random.default_rng(1).normal(size=(3000, 2))
    half = open_rows(np.r_[X[:3000], new])
    assert repeated_share(model, half) == pytest.approx(0.5, abs=0.1)
    assert repeated_share(model, open_rows(new)) == 0.0
    few_values = NystromRidge(bandwidth=1.0, ridge=1e-2, n_landmarks=5, random_state=0).fit(X.round(), X[:, 0])
    assert repeated_share(few_values, open_rows(X.round())) == 0.0


@pytest.mark.parametrize(
    "options",
    [
        *slowly({"ridge": 1e-3, "selection": "uniform", "n_landmarks": 20}, {"ridge": "gcv", "n_landmarks": 20}),
        {"solver": "gradient", "n_landmarks": 30, "ridge": 1e-2},
        {"selection": "kmeans", "n_landmarks": 20},
        {"selection": Leverage(n_pilot=30), "n_landmarks": 20},
        {"selection": np.zeros((1, 2)), "ridge": 1e-2},
        {},
    ],
)
@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("n_targets", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_model_saved_from_python_has_a_page(options, n_targets):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = X[:, [0]] + 0.1 * rng.normal(size=(90, n_targets))
    model = NystromRidge(random_state=0, **options).fit(X, y if n_targets > 1 else y[:, 0])
    page = fit_page(model, RunRecord(), "1.0")
    assert "A fit from landmarks" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower().split()


def test_a_model_of_another_kind_is_refused_in_one_line(ridgemark, tmp_path):
    x = np.linspace(0, 1, 30)[:, None]
    ExactKernelRidge(bandwidth="median", ridge=1e-2, random_state=0).fit(x, x[:, 0]).save(tmp_path / "m")
    for arguments in (
        ("report", tmp_path / "m", "--output", tmp_path / "p.html"),
        ("certify", tmp_path / "m", "x.csv"),
    ):
        code, _, errors = ridgemark(*arguments)
        assert (code, len(errors)) == (2, 1)
        assert "holds a model of ExactKernelRidge" in errors[0]


def test_without_the_extra_a_page_is_refused_before_the_work(folder, ridgemark, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    base = (
        "fit",
        folder / "rows.csv",
        "--target",
        "y",
        "--columns",
        "a",
        "--landmarks",
        20,
        "--output",
        tmp_path / "m",
    )
    code, _, errors = ridgemark(*base, "--report", tmp_path / "p.html")
    assert (code, len(errors), list(tmp_path.iterdir())) == (2, 1, [])
    assert "ridgemark[report]" in errors[0]
    assert ridgemark(*base)[0] == 0


def test_bidirectional_control_characters_are_removed():
    assert printable("a\u202eb\x1b[31m\x00") == "a\ufffdb\ufffd[31m\ufffd"
