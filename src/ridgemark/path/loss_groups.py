"""What leaving out whole groups of rows does to a fit by a smooth loss, in one Newton step."""

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.losses import Loss
from ridgemark.operators.row_matrix import MatrixEntries
from ridgemark.solvers import CurvatureSystem, JointSystem, Newton, NewtonFit, TargetSystems
from ridgemark.solvers.groups import GroupSystem

_TINY = float(np.finfo(np.float64).tiny)
_LEAST_KEPT = 1e-8  # the share of other rows in a prediction is raised to this
_BISECTIONS = 20  # to the sixth digit


def without_groups(newton: Newton, fit: NewtonFit) -> Floats:
    """Return the predictor of every row of the sample from all rows of other groups.

    Let Z be the features of a group's rows and a constant, D the curvatures of these rows with their weights, s their
    slopes, and H the second derivative of the objective. One Newton step from the solution, on the other rows, gives
    the predictor `eta + Z (H - Z'DZ)^-1 Z's`. Where rows have several targets, Z, D and s are those of all of them.
    """
    drawn, system, loss = newton.drawn, fit.system, newton.loss
    features, (order, sizes) = drawn.sampled.features, drawn.by_group
    rows = features.passes.map(MatrixEntries(features.evaluate, features.n_columns))[order]
    predictor = rows @ fit.solution.coefficients + fit.solution.intercept
    targets, weights = drawn.sample.targets()[order], drawn.sample.row_counts()[order]
    slopes = weights[:, None] * loss.slopes(targets, predictor)
    if isinstance(system, CurvatureSystem):
        reached = system.reached(rows)
        curvature = weights * loss.leaving_out().curvature(targets, predictor)
        change = GroupSystem.of(np.sqrt(curvature)[:, None] * reached, sizes).removed(reached, slopes)
    elif isinstance(system, JointSystem):
        parts = loss.curvature_parts(targets, predictor)
        change = _jointly(loss, system, rows, parts, weights, slopes, sizes)
    else:
        product = weights[:, None] * loss.curvature_product(targets, predictor, slopes)
        share = newton.joint_share(fit.solution, system)
        change = _by_target(system, rows, system.weights[order], slopes, product, share, sizes)
    left_out = np.empty_like(predictor)
    left_out[order] = predictor + change
    return left_out


def _jointly(
    loss: Loss, system: JointSystem, rows: Floats, parts: Floats, weights: Floats, slopes: Floats, sizes: Indices
) -> Floats:
    """Return the change where the second derivative of all targets is known: a row has t rows of Z."""
    n, t = slopes.shape
    columns = [loss.curvature_times(parts, np.broadcast_to(unit, slopes.shape)) for unit in np.eye(t)]
    curvature = np.stack(columns, axis=2)
    values, vectors = np.linalg.eigh((curvature + curvature.transpose(0, 2, 1)) / 2.0)
    root = np.sqrt(np.maximum(weights[:, None] * values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
    reached = system.reached(rows)
    groups = GroupSystem.of((root @ reached).reshape(n * t, -1), sizes * t)
    return groups.removed(reached.reshape(n * t, -1), slopes.reshape(-1, 1)).reshape(n, t)


def _by_target(
    system: TargetSystems,
    rows: Floats,
    curvature: Floats,
    slopes: Floats,
    product: Floats,
    share: float,
    sizes: Indices,
) -> Floats:
    """Return the change where each target has a system of its own.

    These changes are first computed as if each target changed alone. Where all targets change, other rows have more
    curvature and the changes are smaller, so all are divided by one factor. With this factor, single rows that are not
    left out have in sum the leverage of the joint second derivative, the share `share` of their leverages alone.
    """
    change, leverage = np.empty_like(slopes), np.empty_like(slopes)
    curvature = np.broadcast_to(curvature, slopes.shape)
    for k in range(slopes.shape[1]):
        reached = system.reached(rows, k)
        groups = GroupSystem.of(np.sqrt(curvature[:, k])[:, None] * reached, sizes)
        change[:, k : k + 1] = groups.removed(reached, slopes[:, k : k + 1])
        leverage[:, k] = (reached**2).sum(axis=1)
    squares = slopes**2
    along = (slopes * product).sum(axis=1) / np.maximum(squares.sum(axis=1), _TINY)
    alone, total = leverage / np.maximum(1.0 - curvature * leverage, _LEAST_KEPT), share * (squares * leverage).sum()
    low, high = -1.0, 1.0
    for _ in range(_BISECTIONS):
        smaller = alone / 10.0 ** ((low + high) / 2)
        above = (squares * smaller / (1.0 + along[:, None] * smaller)).sum() > total
        low, high = ((low + high) / 2, high) if above else (low, (low + high) / 2)
    return change / 10.0 ** ((low + high) / 2)
