"""Charts: reproducible, with text as text, the page's colours and unique ids."""

import functools
import re
import sys
from html import escape

import pytest

from ridgemark.errors import MissingExtraError
from ridgemark.report.plots import Chart, Series, described, draw, require_matplotlib

# Old releases of matplotlib use names that new releases of pyparsing have deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated - use:DeprecationWarning")

CHART = Chart(
    "columns <p> & $x_1$",
    "risk",
    (
        Series("one", (1, 10, 100), (3.0, 2.0, 1.0), (2.5, 1.5, 0.9), (3.5, 2.5, 1.1)),
        Series("two", (1, 10, 100), (4.0, 3.0, 2.0), kind="dashed"),
        Series("three", (1, 10, 100), (5.0, 4.0, 3.0), kind="points"),
    ),
    levels=(("exact", 1.0),),
    log_x=True,
    log_y=True,
    diagonal="y = x",
)


drawn = functools.cache(draw)


@pytest.fixture(autouse=True)
def matplotlib():
    return pytest.importorskip("matplotlib")


def test_a_chart_is_the_same_text_every_time():
    assert draw(CHART, "a") == drawn(CHART, "a")


def test_a_chart_is_described_by_points_lines_and_extents():
    few, many = ((1.0, 2.0), (3.0, 0.5)), (tuple(range(30)), tuple(range(30, 0, -1)))
    series = [Series("few", *few), Series("line", *many), Series("cloud", *many, kind="points")]
    assert described(Chart("x", "y", series, [("zero", 0.0)])) == (
        "Chart of y against x; few: 3 at 1, 0.5 at 2; line: from 30 at 0 to 1 at 29; cloud: 30 points from 1 to 30; "
        "zero: 0."
    )
    bars = Series("share", (0.75, 0.25), range(2), kind="bars")
    assert described(Chart("share", "", [bars], names=("a", "b"))) == "Chart of bars; share: a 0.75, b 0.25."


def test_text_stays_text_and_is_escaped():
    svg = drawn(CHART, "a")
    assert "columns &lt;p&gt; &amp; $x_1$" in svg
    assert all(f">{label}</text>" in svg for label in ("one", "two", "three", "exact", "y = x", "risk"))


def test_colours_are_variables_of_the_page():
    svg = drawn(CHART, "a")
    assert "var(--series-0)" in svg
    assert "var(--ink)" in svg
    assert not re.search(r"#[0-9a-f]{6}\b", svg)


def test_two_charts_on_a_page_share_no_id_and_every_reference_leads_somewhere():
    pages = drawn(CHART, "a") + drawn(CHART, "b")
    ids = re.findall(r'\bid="([^"]+)"', pages)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', pages)) <= {(i, "") for i in ids} | {("", i) for i in ids}


def test_a_chart_takes_the_pages_width():
    head = drawn(CHART, "a").split(">")[0]
    assert "viewBox" in head
    assert " width=" not in head
    assert " height=" not in head


def test_a_narrow_logarithmic_axis_has_enough_labels():
    narrow = Chart("x", "y", [Series("one", (1, 2, 3), (0.31, 0.6, 2.5))], log_y=True)
    labels = re.findall(r">([\d.]+)</text>", draw(narrow, "narrow"))
    assert {"0.5", "0.7", "2"} <= set(labels)


def test_a_very_narrow_logarithmic_axis_is_linear_with_labels():
    narrow = Chart("x", "y", [Series("one", (1, 2, 3), (0.11, 0.15, 0.19))], log_y=True)
    labels = re.findall(r">([\d.]+)</text>", draw(narrow, "narrow"))
    assert {"0.12", "0.14", "0.16", "0.18"} <= set(labels)


def test_long_labels_stand_below_each_other_and_make_the_chart_taller():
    def legend(labels):
        svg = draw(Chart("x", "y", [Series(label, (1, 2), (1, 2)) for label in labels]), "legend")
        places = [re.search(rf'<text[^>]*x="([\d.]+)"[^>]*>{label}</text>', svg)[1] for label in labels]
        return len(set(places)), float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)[1])

    short, long = ([f"{word} {k}" for k in range(7)] for word in ("brief", "a label of many letters"))
    assert legend(short)[0] == 2
    assert legend(long)[0] == 1
    assert legend(long)[1] > legend(short)[1]


def test_markers_of_a_line_can_be_turned_off():
    x = tuple(range(50))
    marked, plain = (draw(Chart("x", "y", [Series("one", x, x, marked=mark)]), "line") for mark in (True, False))
    assert marked.count("<use") - plain.count("<use") >= 50


def test_bars_are_named_from_the_top_without_a_legend():
    names = ("a <b>", "a rather long name", "$c$")
    svg = draw(Chart("share", "", [Series("unseen", (0.6, 0.3, 0.1), range(3), kind="bars")], names=names), "bars")
    places = [re.search(rf'<text[^>]*y="([\d.]+)"[^>]*>{re.escape(escape(name))}</text>', svg) for name in names]
    heights = [float(place[1]) for place in places]
    assert heights == sorted(heights)
    assert "unseen" not in svg


def test_settings_of_the_user_do_not_reach_the_page(matplotlib):
    before = drawn(CHART, "a")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "#ff0000"}):
        assert draw(CHART, "a") == before
        assert matplotlib.rcParams["font.size"] == 30


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"ridgemark\[report\]"):
        require_matplotlib()
