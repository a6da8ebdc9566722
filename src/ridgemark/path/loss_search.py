"""The ridge of a fit by a smooth loss: leave-one-out in one Newton step, over some ridges of a path."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from ridgemark.backends import Floats
from ridgemark.losses import Loss, RidgeSolution
from ridgemark.operators.row_matrix import MatrixTask
from ridgemark.passes import Workspace
from ridgemark.path.loss_groups import without_groups
from ridgemark.path.ridges import Ridges
from ridgemark.rows import Block, row_weights
from ridgemark.solvers import CurvatureSystem, JointSystem, Newton, NewtonFit, TargetSystems
from ridgemark.solvers.curvature import System
from ridgemark.solvers.groups import kept_share

_AS_GOOD = 1e-4  # relative difference of losses that does not count
# Decrease of the sum of the losses that does not count, in units of the least weight of a row. Where nearly all rows
# are predicted with near certainty, the few others decide, and every smaller ridge seems better.
_LEAST_GAIN = 0.25
_NEARBY = 10.5  # largest ratio of two ridges at which the system of one is a good preconditioner for the other
_LEAST_KEPT = 1e-8  # the share of other rows in a prediction is raised to this, where rounding makes it smaller
_BISECTIONS = 20  # to the sixth digit
_NO_ROW = 1e-9  # a smaller share of a class among equal rows is rounding: none of them has it
_SEEN, _MOVED = 1e-5, 0.1  # smaller changes of a loss and of log-odds are ignored when a row is left out
# Fits along the path end when a step promises at most this relative decrease of the objective; the first if a step
# takes one pass. A fit that ends far from its minimum is smoother, and small ridges then seem better than they are.
_NEAR = {True: 1e-6, False: 5e-4}


@dataclass(frozen=True)
class LossPath:
    """Losses of every ridge that was tried, for fixed landmarks.

    Attributes
    ----------
    ridges : array of shape (g,)
        The lambdas, descending.
    loo_loss : array of shape (g,)
        Weighted mean loss of rows left out with their equals, in one Newton step; of at most 8,192 distinct rows. The
        mean over the functions where several are fitted beside each other; with more than 1,000 features of the middle
        one alone.
    training_loss : array of shape (g,)
        Weighted mean loss of all rows.
    criterion : {"loo"}
        The criterion that chose the ridge.
    chosen : int
        Position of the ridge.
    smallest, largest : float
        The ends of the ridges that could have been tried.
    """

    ridges: Annotated[Floats, "(g)", "> 0"]
    loo_loss: Annotated[Floats, "(g)"]
    training_loss: Annotated[Floats, "(g)"]
    criterion: Annotated[str, Literal["loo"]]
    chosen: Annotated[int, "< g"]
    smallest: Annotated[float, "> 0"]
    largest: Annotated[float, "> 0"]

    @property
    def on_edge(self) -> bool:
        """Whether the chosen ridge is the largest or smallest of those searched, so that the best may lie beyond."""
        ends = self.smallest, self.largest
        return ends[0] < ends[1] and self.ridges[self.chosen] in ends


class RowLeverage(MatrixTask):
    """Of every row the predictor (t columns), `t_g = 1/sum D + bc'(Bc'DBc + s)^-1 bc` and `|bc|^2`, centred with D.

    All targets share one system.
    """

    what: ClassVar[str] = "leave-one-out"
    arrays: ClassVar[int] = 3
    solution: RidgeSolution
    system: CurvatureSystem

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        features = self.evaluate(block, workspace)
        predictor = features @ self.solution.coefficients + self.solution.intercept
        leverage, lengths = self.system.leverage(features)
        return workspace.backend.xp.concat([predictor, leverage[:, None], lengths[:, None]], axis=1)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What leaving out each group of equal rows does, in one Newton step.

    Attributes
    ----------
    predictor : array of shape (m, t)
        The predictor from all other rows.
    leverage : array of shape (m,)
        `h = D_g t_g`, the share of its own predictor that a group determines.
    influence : array of shape (m,)
        `|s_g|^2 t_g/(1 - h)^2`: leaving the group out moves the coefficients by d with `d'H d` of this size.
    """

    predictor: Floats
    leverage: Floats
    influence: Floats


def leave_out(newton: Newton, solution: RidgeSolution, system: CurvatureSystem) -> LeftOut:
    """Leave out each group of equal rows of the sample, with one system for all targets.

    With `D_g` the curvature of a group, summed over its rows with their weights, and `s_g` the sum of their slopes, the
    predictor from all other rows is `eta + s_g t_g/(1 - D_g t_g)`: the Newton step from the solution on these. Where
    rows leave in groups of any rows, the predictor is that from all other groups, and the rest is that of single rows.
    """
    drawn, t = newton.drawn, len(solution.intercept)
    features = drawn.sampled.features
    measured = features.passes.map(RowLeverage(features.evaluate, features.n_columns, solution, system))
    predictor, leverage, lengths = measured[:, :t], measured[:, t], measured[:, t + 1]
    slopes, curvature = drawn.group_sums(newton.loss, predictor)
    kept = kept_share(leverage, lengths, curvature, system.share_of_constant, system.scaled_ridge)
    change = slopes * (leverage / kept)[:, None]
    left_out = predictor + change
    if newton.passes.leaves_groups:
        left_out = without_groups(newton, NewtonFit(solution, system, 0.0, 0, True))
    return LeftOut(left_out, 1.0 - kept, (slopes * change).sum(axis=1) / kept)


class LeftOutJointly(MatrixTask):
    """The predictor of every row from all rows with other features, in one Newton step, shape (rows, t).

    As in `leave_out`, where t_g and D_g are matrices: `eta + t_g (1 - D_g t_g)^-1 s_g`. Rows must be distinct, with
    the weight and the mean target of their group.
    """

    what: ClassVar[str] = "leave-one-out"
    arrays: ClassVar[int] = 3
    loss: Loss
    solution: RidgeSolution
    system: JointSystem

    @property
    def width(self) -> int:
        t = len(self.solution.intercept)
        return super().width + t * (3 * t + self.n_columns)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, xp = workspace.backend, workspace.backend.xp
        features, weights = self.evaluate(block, workspace), row_weights(block)
        predictor = features @ self.solution.coefficients + self.solution.intercept
        slopes = weights[:, None] * self.loss.slopes(block.targets, predictor)
        leverages, units = self.system.leverage(features), backend.from_host(np.eye(predictor.shape[1]))
        parts = self.loss.curvature_parts(block.targets, predictor)
        curved = [self.loss.curvature_times(parts, leverages[:, :, k]) for k in range(len(units))]
        kept = units - (1.0 - _LEAST_KEPT) * weights[:, None, None] * xp.stack(curved, axis=2)
        return predictor + (leverages @ xp.linalg.solve(kept, slopes[:, :, None]))[:, :, 0]


class LeftOutByTarget(MatrixTask):
    """What leaving out each row does to each target alone: five arrays of shape (rows, t), side by side.

    Each target has a system of its own. The arrays are:

    1. the predictor;
    2. the slope s_g;
    3. the leverage t_g; zero if leaving the row out changes the predictor by at most 0.1 and the loss by at most 1e-5;
    4. `1 - D_g t_g`, where D_g is the weight of the row in the system, given along the rows;
    5. T_g, the leverage that the row would have if all other rows were far from it.
    """

    what: ClassVar[str] = "leave-one-out"
    arrays: ClassVar[int] = 3
    loss: Loss
    solution: RidgeSolution
    system: TargetSystems

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, xp = workspace.backend, workspace.backend.xp
        features, weights = self.evaluate(block, workspace), row_weights(block)
        predictor = features @ self.solution.coefficients + self.solution.intercept
        own = self.loss.slopes(block.targets, predictor)
        slopes, most = weights[:, None] * own, self.system.most_leverage(features)
        seen = abs(slopes) * most * backend.at_least(abs(own), _SEEN / _MOVED) > _SEEN
        leverages = self.system.leverage(features, xp.any(seen, axis=1)[:, None] if self.system.alike else seen)
        kept = backend.at_least(1.0 - block.along[0] * leverages, _LEAST_KEPT)
        every = predictor * 0.0
        return xp.concat([predictor, slopes, leverages + every, kept + every, most + every], axis=1)


def left_out_predictor(newton: Newton, fit: NewtonFit) -> Floats:
    """Return the predictor of every group of the sample, from all rows of the fit with other features.

    Where rows leave in groups of any rows, of every row of the sample from all rows of other groups.
    """
    if newton.passes.leaves_groups:
        return without_groups(newton, fit)
    features, system = newton.drawn.sampled.features, fit.system
    arguments = features.evaluate, features.n_columns, newton.loss, fit.solution
    if isinstance(system, CurvatureSystem):
        return leave_out(newton, fit.solution, system).predictor
    if isinstance(system, JointSystem):
        return features.passes.map(LeftOutJointly(*arguments, system))
    predictor, slopes, leverage, kept, most = np.split(
        features.passes.map(LeftOutByTarget(*arguments, system), along=(system.weights,)), 5, axis=1
    )
    squares, sample = slopes**2, newton.drawn.sample
    product = newton.loss.curvature_product(sample.targets(), predictor, slopes)
    curved = (slopes * product).sum(axis=1) * sample.row_counts()
    along = curved / np.maximum(squares.sum(axis=1), np.finfo(np.float64).tiny)
    total = newton.joint_share(fit.solution, system) * float((squares * leverage).sum())
    return predictor + slopes * _jointly(leverage / kept, most, along[:, None], squares, total)


def _jointly(alone: Floats, most: Floats, along: Floats, squares: Floats, total: float) -> Floats:
    """Return the leverages of rows left out where all targets change, from those where one target changes alone.

    `1/t = 1/T + k`, with T the leverage that the row would have if no other row were near it, and k the curvature of
    the other rows. Where all targets change, k is about c times as large, so t is divided by `c - (c - 1) t/T`: a row
    far from all others keeps its leverage. A row that is not left out has the leverage `t/(1 + d t)`, d its curvature
    along its slopes s. The factor c, between 0.1 and 10, is that for which `sum_i s_i^2 t_i/(1 + d_i t_i)` is `total`.
    """
    far, low, high = np.minimum(alone / np.maximum(most, np.finfo(np.float64).tiny), 1.0), -1.0, 1.0
    for _ in range(_BISECTIONS):
        factor = 10.0 ** ((low + high) / 2)
        leverages = alone / (factor - (factor - 1.0) * far)
        above = float((squares * leverages / (1.0 + along * leverages)).sum()) > total
        low, high = ((low + high) / 2, high) if above else (low, (low + high) / 2)
    return leverages


class _Fits:
    """Fits of one loss along a path of ridges, each begun from the nearest one before.

    Only the system of the best fit is kept: it has as many numbers as the second derivative. It is the preconditioner
    of the fits at ridges up to a decade away.
    """

    def __init__(self, newton: Newton, start: RidgeSolution) -> None:
        self.newton, self._start = newton, start
        self.best: NewtonFit | None = None
        self.best_at = -1
        self.solutions: dict[int, RidgeSolution] = {}
        self.losses: dict[int, float] = {}

    def at(self, position: int, scaled_ridge: float) -> NewtonFit:
        """Return the fit at one ridge, with the system by which rows are left out."""
        nearest = min(self.solutions, key=lambda k: (abs(k - position), k != self.best_at), default=None)
        start, system, best = self._start if nearest is None else self.solutions[nearest], None, self.best
        if best is not None and nearest == self.best_at:
            start, system = best.extrapolated(scaled_ridge), best.system
        elif best is not None and 1 / _NEARBY <= scaled_ridge / best.system.scaled_ridge <= _NEARBY:
            system = best.system
        fit = self.newton.solve(scaled_ridge, start, _NEAR[self.newton.whole], system)
        self.solutions[position], self.losses[position] = fit.solution, fit.loss
        return self.newton.with_own_system(fit)

    def keep(self, position: int, fit: NewtonFit) -> None:
        """Keep the system of the best fit so far."""
        self.best, self.best_at = fit, position


class LossSearch:
    """Leave-one-out losses along a path of ridges; their mean where several functions are fitted beside each other.

    The n_k rows of a class determine no more than n_k dimensions. Where the effective dimension d_k exceeds them, one
    Newton step is far too short, as the curvature of other rows changes too, and small ridges seem better than they
    are. So `sum_k max(0, d_k - n_k) w_k` is added to the loss that chooses, w_k the mean share of a row of the class in
    the total weight: as if one row were lost for each dimension in excess. Of two classes the smaller counts; of counts
    the rows with any.

    Losses that differ by at most `least_gain` count as equal, and the largest ridge is taken.

    Parameters
    ----------
    newtons : list of Newton
        The objective of each function.
    ridges : Ridges
        The ridges to choose from.
    starts : list of RidgeSolution
        Where the first fit begins.
    unit : float, default=1
        The loss that one row adds by chance: 1 where losses are negative logarithms of probabilities.
    """

    def __init__(self, newtons: list[Newton], ridges: Ridges, starts: list[RidgeSolution], unit: float = 1.0) -> None:
        self.ridges, self.parts = ridges, [_Fits(*part) for part in zip(newtons, starts, strict=True)]
        self._totals: dict[int, float] = {}  # the losses, plus what dimensions in excess add
        self._left_out: dict[int, float] = {}
        self._unit, self._outcomes = unit, rows_of_outcomes(newtons[0])
        self._targets, self._weights, self._group = newtons[0].drawn.members
        self.least_gain = _LEAST_GAIN * unit * float(self._weights[self._weights > 0].min() / self._weights.sum())

    def evaluate(self, position: int) -> float:
        """Return the leave-one-out loss of one ridge, plus what dimensions in excess add."""
        if position not in self._totals:
            scaled_ridge = float(self.ridges.scaled[position])
            fits = [part.at(position, scaled_ridge) for part in self.parts]
            loss = float(np.mean([self._loss(part, fit) for part, fit in zip(self.parts, fits, strict=True)]))
            total = loss + float(np.mean([self._excess(fit) for fit in fits]))
            if total < min(self._totals.values(), default=np.inf) or self.parts[0].best is None:
                for part, fit in zip(self.parts, fits, strict=True):
                    part.keep(position, fit)
            self._left_out[position], self._totals[position] = loss, total
        return self._totals[position]

    def _loss(self, part: _Fits, fit: NewtonFit) -> float:
        """Return the weighted mean loss of rows left out."""
        predictor = left_out_predictor(part.newton, fit)
        predictor = predictor if self._group is None else predictor[self._group]
        return float(self._weights @ part.newton.loss.judged(self._targets, predictor) / self._weights.sum())

    def _excess(self, fit: NewtonFit) -> float:
        if self._outcomes is None:
            return 0.0
        counts, share = self._outcomes
        return self._unit * float(np.sum(np.maximum(fit.system.dimensions - counts, 0.0) * share))

    def best(self, total_weight: float) -> tuple[LossPath, list[RidgeSolution], list[System]]:
        """Return what was tried, the solutions at the largest ridge of those that do equally well, and systems near it.

        The systems are those of the lowest loss.
        """
        tried = np.array(sorted(self._totals))
        losses, totals = (np.array([values[k] for k in tried]) for values in (self._left_out, self._totals))
        training = np.array([np.mean([part.losses[k] for part in self.parts]) for k in tried])
        chosen = int(np.argmax(totals <= totals.min() + max(_AS_GOOD * totals.min(), self.least_gain)))
        values, systems = self.ridges.values, []
        path = LossPath(
            values[tried], losses, training / total_weight, "loo", chosen, float(values.min()), float(values.max())
        )
        for part in self.parts:
            assert part.best is not None
            systems.append(part.best.system)
        return path, [part.solutions[int(tried[chosen])] for part in self.parts], systems


def rows_of_outcomes(newton: Newton) -> tuple[Floats, Floats] | None:
    """Return how many groups of rows have each outcome, and the mean share of such a group in the total weight.

    The groups are those that can be left out. There is one number for each target; where one target has two outcomes,
    those of the outcome with fewer rows. None for losses whose rows all tell as much.
    """
    rows, groups = newton.passes.units_left_out()
    targets, weights = newton.passes.targets()[rows], groups.weights[rows]
    shares = newton.loss.outcomes(targets if groups.gaps is None else targets + groups.gaps[rows])
    if shares is None:
        return None
    counts = np.maximum(np.count_nonzero(shares > _NO_ROW, axis=0), 1)  # a class may have hardly any weight
    each = weights @ shares / (weights.sum() * counts)
    fewest = [int(counts.argmin())]
    return (counts, each) if targets.shape[1] > 1 else (counts[fewest], each[fewest])
