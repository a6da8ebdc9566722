"""Rows of rare classes left out by refits, as one Newton step is far from a refit where a class has few rows."""

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.losses import ClassLoss, RidgeSolution
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import Newton, NewtonFit
from ridgemark.solvers.feature_rows import streamed_features

_FEW, _SHARE = 20, 0.1  # distinct rows of a rare class, and their share in all distinct rows, at most
_ALL_FEW = 40  # rows of all rare classes together: where there are more, none of them decides
_FAR = 1.0  # change of a log-odds in one Newton step from which a refit is made
_MOST_REFITS, _MOST_WORK = 16, 4e9  # refits, and their sum of rows times unknowns squared
_ROUNDING = 1e-9  # share of a label in equal rows that none of them has
_NEAR = 1e-6  # decrease of the objective that the last step of a refit may promise, as a share


def with_refits(newton: Newton, fit: NewtonFit, predictor: Floats) -> Floats:
    """Return the predictor of the sample's rows left out, for rows of rare classes from refits where those differ.

    One Newton step supposes that the curvature of the other rows stays. It does not where a row is one of the few of
    its class: at small ridges the step is far too short, and they seem better than they are. The rows that one step
    moves most are refitted, as many as little work allows. Where a class has no other row, its constant would be
    infinite without the row; the row then has the log-odds of the classes' shares, whatever the ridge.
    """
    sample, loss = newton.drawn.sample, newton.loss
    if not isinstance(loss, ClassLoss) or len(newton.passes.distinct_rows()) > sample.source.n_rows:
        return predictor
    weights, shares = sample.row_counts(), loss.indicators(sample.targets())
    has = shares > _ROUNDING
    counts = np.count_nonzero(has, axis=0)
    rare = np.flatnonzero((has & (counts <= min(_FEW, _SHARE * len(shares)))).any(axis=1))
    if not 0 < len(rare) <= _ALL_FEW:
        return predictor
    predictor = predictor.copy()
    alone = (has & (counts == 1)).any(axis=1) & newton.fit_intercept
    predictor[alone] = _log_odds_of_shares(weights @ shares / weights.sum())
    rare = rare[~alone[rare]]
    if not len(rare):
        return predictor
    change = predictor[rare] - _values(newton, sample.take(rare).features, fit.solution)
    everything = sample.take(np.arange(len(weights)))
    for row in rare[_moved_most(newton, change)]:
        left = np.where(np.arange(len(weights)) == row, 0.0, weights)
        others = ArrayRows(everything.features, everything.targets, left)
        without = Newton(RowPasses(others, newton.passes.memory_budget), newton.factor, loss, newton.fit_intercept)
        solution = without.solve(fit.system.scaled_ridge, fit.solution, _NEAR, fit.system).solution
        predictor[row] = _values(newton, sample.take(np.array([row])).features, solution)[0]
        newton.passes.count_entries(without.passes.n_kernel_evaluations)
    return predictor


def _log_odds_of_shares(shares: Floats) -> Floats:
    logs = np.log(shares)
    return logs[1:] - logs[:1] if len(logs) == 2 else logs - logs.mean()


def _moved_most(newton: Newton, change: Floats) -> Indices:
    """Return the rows that one step moves far, those first that it moves most, and no more than little work allows."""
    moved = np.abs(change).max(axis=1)
    unknowns = newton.passes.source.n_targets * (newton.factor.rank + 1)
    most = min(_MOST_REFITS, int(_MOST_WORK / (newton.drawn.sample.source.n_rows * unknowns**2)))
    return np.argsort(-moved, kind="stable")[: min(most, int(np.count_nonzero(moved > _FAR)))]


def _values(newton: Newton, features: Floats, solution: RidgeSolution) -> Floats:
    rows = streamed_features(RowPasses(ArrayRows(features), newton.passes.memory_budget), newton.factor)
    vectors = np.vstack([solution.coefficients, solution.intercept])
    return np.asarray(rows.backend.to_host(rows.values(vectors)))
