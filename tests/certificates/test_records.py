"""Claims, JSON, HTML and costs of certificates, and the inputs they refuse."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from ridgemark.certificates import (
    Certificate,
    audit,
    distance_at,
    operator_certificate,
    theorem_3_promise,
    trace_certificate,
    what_would_help,
)
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels import Gaussian, Precomputed
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from tests.certificates.problems import Fitted

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = np.c_[np.sin(X[:, 0]), X[:, 1] ** 2] + 0.1 * RNG.normal(size=(300, 2)) + 7.0


def _problem(y=Y[:, :1], weights=None, ridge=1e-3, p=60, fit_intercept=True):
    landmarks = np.arange(p) if weights is None else np.flatnonzero(weights)[:p]
    return Fitted(X, y, Gaussian(1.0), landmarks, ridge, weights, fit_intercept)


def _audit(problem, **options):
    return audit(problem.passes, problem.fit, rng=np.random.default_rng(0), **options)


def test_the_claim_is_a_sentence_with_the_bound_in_it():
    certificate = _audit(_problem())
    assert certificate.claim.startswith("Fitted values are within 0.")
    assert "(RMS, in units of y) of exact kernel ridge regression on these rows." in certificate.claim
    assert (certificate.kind, certificate.certainty, certificate.risk_factor) == ("audit", "deterministic", None)
    stated = float(certificate.claim.split("within ")[1].split()[0])
    assert certificate.bound <= stated < 1.011 * certificate.bound
    assert "kernel entries" in str(certificate)


def test_a_probability_and_a_risk_factor_are_part_of_the_claim():
    problem = _problem()
    certificate = operator_certificate(
        problem.passes, problem.fit, rng=np.random.default_rng(0), failure_probability=0.1
    )
    assert certificate.claim.startswith("With probability 0.9 fitted values are within")
    assert "for a lambda chosen without looking at y" in certificate.claim
    said = float(re.search(r"risk is at most (\S+) times", certificate.claim)[1])
    assert certificate.risk_factor <= said <= 1.001 * certificate.risk_factor
    assert certificate.certainty == "probability"
    assert certificate.inputs["failure_probability"] == 0.1


def test_a_vacuous_claim_says_so_and_what_would_help():
    few = _problem(ridge=1e-6, p=10)
    certificate = trace_certificate(few.fit)
    assert certificate.vacuous
    assert "This bound is not informative: the training error alone already implies" in certificate.claim
    assert "landmarks in place of 10" in certificate.claim
    assert "an audit, which measures the distance for these targets" in certificate.claim
    assert "an audit" not in what_would_help(few.fit, "audit")
    good = _audit(_problem(p=200), landmark_indices=np.arange(200))
    assert not good.vacuous
    assert "is not informative" not in good.claim


def test_records_survive_json_and_html():
    certificate = _audit(_problem(Y))
    read = json.loads(certificate.to_json())
    assert read["bound"] == certificate.bound.tolist()
    assert read["inputs"]["n_landmarks"] == 60
    assert set(read) >= {"kind", "claim", "bound", "certainty", "risk_factor", "inputs", "cost"}
    row = replace(certificate, claim="a < b").to_html()
    assert row.startswith("<tr><td>audit</td><td>a &lt; b</td>")
    assert row.count("<td>") == 6
    endless = Certificate("trace", "", 1.0, "deterministic", np.inf, {"unmeasured": [1.0]}, {"kernel_entries": 0})
    assert json.loads(endless.to_json())["risk_factor"] is None


def test_every_target_has_its_own_bound_at_its_own_ridge():
    both = _audit(_problem(Y, ridge=np.array([1e-2, 1e-4])))
    assert both.bound.shape == (2,)
    assert "one for each target" in both.claim
    for t, ridge in enumerate((1e-2, 1e-4)):
        alone = _audit(_problem(Y[:, [t]], ridge=ridge))
        assert isinstance(alone.bound, float)
        assert both.bound[t] == pytest.approx(alone.bound, rel=1e-6)


def test_a_weight_is_a_repeated_row():
    counts = np.random.default_rng(1).integers(0, 4, 300)
    weighted = _problem(weights=counts.astype(float))
    first = np.r_[0, np.cumsum(counts)][weighted.indices]
    repeated = Fitted(np.repeat(X, counts, axis=0), np.repeat(Y[:, 0], counts), Gaussian(1.0), first, 1e-3, None, True)
    assert trace_certificate(weighted.fit).bound == pytest.approx(trace_certificate(repeated.fit).bound)
    one, other = (_audit(problem).inputs["energy_bound"] for problem in (weighted, repeated))
    assert one == pytest.approx(other, rel=1e-6)


def test_the_cost_is_counted():
    problem = _problem()
    before = problem.passes.n_kernel_evaluations
    certificate = _audit(problem)
    entries = certificate.cost["kernel_entries"]
    assert entries == problem.passes.n_kernel_evaluations - before
    assert 300 * 301 / 2 < entries < 300 * 300 + 5 * 300 * 60
    assert trace_certificate(problem.fit).cost["kernel_entries"] == 0
    sampled = _audit(problem, kernel_entries=30 * 300)
    assert sampled.inputs["sampled_rows"] == 30
    assert sampled.cost["kernel_entries"] <= 30 * 300 + 4 * 300 * 60 + 30 * 60


def _changed(change):
    x, y, w = X.copy(), Y[:, :1].copy(), np.ones(300)
    change(x, y, w)
    return RowPasses(ArrayRows(x, y, w))


def _swap(x, y, w):
    y[[3, 200]] = y[[200, 3]]


def _one_target(x, y, w):
    y[17] += 1e-3


def _one_row(x, y, w):
    x[290, 0] += 0.01


def _one_weight(x, y, w):
    w[5], w[6] = 1.01, 0.99


@pytest.mark.parametrize("change", [_swap, _one_target, _one_row, _one_weight])
@pytest.mark.parametrize("certify", [audit, operator_certificate])
def test_rows_other_than_the_training_rows_are_refused(change, certify):
    with pytest.raises(DataError, match="not the rows the model was fitted on"):
        certify(_changed(change), _problem().fit, rng=np.random.default_rng(0))


def test_a_wrong_number_of_rows_or_targets_is_refused():
    fit, rng = _problem().fit, np.random.default_rng(0)
    with pytest.raises(DataError, match=r"fitted on 300 rows of total weight 300, got 299 of 299"):
        audit(RowPasses(ArrayRows(X[:299], Y[:299, :1])), fit, rng=rng)
    with pytest.raises(DataError, match="fitted on 1 targets, got rows with 2"):
        audit(RowPasses(ArrayRows(X, Y)), fit, rng=rng)
    with pytest.raises(DataError, match="got rows with 0"):
        audit(RowPasses(ArrayRows(X)), fit, rng=rng)


def test_the_training_rows_in_another_order_are_accepted():
    problem = _problem()
    order = np.random.default_rng(3).permutation(300)
    shuffled = RowPasses(ArrayRows(X[order], Y[order, :1]))
    again = audit(shuffled, problem.fit, rng=np.random.default_rng(0))
    assert again.bound == pytest.approx(_audit(problem).bound, rel=1e-6)


@pytest.mark.parametrize("ridge", [1e-1, 1e-4, 1e-9])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_audit_scales_with_the_targets(ridge, scale):
    one = _audit(_problem(scale * Y[:, :1], ridge=ridge))
    assert one.bound / scale == pytest.approx(_audit(_problem(ridge=ridge)).bound, rel=1e-3)


def test_a_constant_target_is_exact():
    certificate = _audit(_problem(np.full((300, 1), 3.0)))
    assert certificate.bound < 1e-9
    assert not certificate.vacuous
    assert "is not informative" not in certificate.claim


def test_all_rows_as_landmarks_are_proved_exact():
    problem = _problem(p=300)
    certificate = _audit(problem, landmark_indices=problem.indices)
    assert certificate.bound < 1e-6
    assert certificate.meets(0.01, 0.1)
    assert trace_certificate(problem.fit).meets(0.01)


def test_meets_compares_an_audit_with_loo_rms_and_others_with_the_risk_factor():
    problem = _problem()
    measured = _audit(problem)
    assert measured.meets(0.1, measured.bound * 10.1)
    assert not measured.meets(0.1, measured.bound * 9.9)
    trace = trace_certificate(problem.fit)
    epsilon = (np.sqrt(trace.risk_factor) - 1) / 2
    assert trace.meets(epsilon * 1.001)
    assert not trace.meets(epsilon * 0.999)
    with pytest.raises(ParameterError, match="loo_rms"):
        measured.meets(0.1)
    with pytest.raises(ParameterError, match="risk_tolerance must be positive"):
        trace.meets(0.0)


def test_theorem_3_is_quoted_with_its_number_of_draws():
    assert theorem_3_promise(_problem(ridge=1e-6).fit) is None
    assert "Before any measurement" not in str(_audit(_problem(ridge=1e-6)))
    many = Fitted(X, Y[:, :1], Gaussian(1.0), np.arange(300), 0.9, None, True)
    assert "in-sample risk within" in theorem_3_promise(many.fit)
    assert "with probability 0.95" in theorem_3_promise(many.fit)


def test_options_out_of_range_are_refused():
    problem, rng = _problem(), np.random.default_rng(0)
    with pytest.raises(ParameterError, match="at least one row of 300 kernel entries, got 299"):
        _audit(problem, kernel_entries=299)
    for certify in (audit, operator_certificate):
        with pytest.raises(ParameterError, match=r"failure_probability must lie between 0 and 0\.5, got 0\.7"):
            certify(problem.passes, problem.fit, rng=rng, failure_probability=0.7)


def test_distances_need_an_audit_the_same_features_and_a_kernel_with_a_diagonal():
    problem = _problem()
    points = RowPasses(ArrayRows(X[:3]))
    with pytest.raises(ParameterError, match="kind \"audit\", got 'trace'"):
        distance_at(points, problem.passes, problem.fit, trace_certificate(problem.fit), problem.indices)
    with pytest.raises(DataError, match="fitted on 2 features, got 1"):
        distance_at(RowPasses(ArrayRows(X[:3, :1])), problem.passes, problem.fit, _audit(problem), problem.indices)
    K = Gaussian(1.0)(X)
    given = Fitted(K, Y[:, :1], Precomputed(), np.arange(60), 1e-3, None, True)
    assert _audit(given).bound == pytest.approx(_audit(problem).bound, rel=1e-4)
    with pytest.raises(ParameterError, match="precomputed"):
        distance_at(RowPasses(ArrayRows(K[:3])), given.passes, given.fit, _audit(given), given.indices)
