"""The ridge of a class model: leave-one-out log loss in one Newton step, over some ridges of a path."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from ridgemark.backends import Floats
from ridgemark.losses import ClassLoss, Loss, RidgeSolution
from ridgemark.operators.row_matrix import MatrixTask
from ridgemark.passes import Workspace
from ridgemark.path.left_out import kept_share
from ridgemark.path.ridges import Ridges
from ridgemark.rows import Block, row_weights
from ridgemark.solvers import CurvatureSystem, JointSystem, Newton, NewtonFit, TargetSystems
from ridgemark.solvers.curvature import System

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
        Weighted mean log loss of rows left out with their equals, in one Newton step; of at most 8,192 distinct rows.
    training_loss : array of shape (g,)
        Weighted mean log loss of all rows.
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


class LeftOutPredictor(MatrixTask):
    """The predictor of every row from all rows with other features, in one Newton step, shape (rows, t).

    With `D_g = W_g l''` the curvature of a group of equal rows, `t_g = 1/sum D + bc'(Bc'DBc + s)^-1 bc`, centred with
    D, and `s_g = W_g l'` their slope, it is `eta + s_g t_g/(1 - D_g t_g)`: the Newton step from the solution on the
    other rows. Where t_g and D_g are matrices, `eta + t_g (1 - D_g t_g)^-1 s_g`. Rows must be distinct, with the weight
    and the mean target of their group.
    """

    what: ClassVar[str] = "leave-one-out"
    arrays: ClassVar[int] = 3
    loss: Loss
    solution: RidgeSolution
    system: System

    @property
    def width(self) -> int:
        t, jointly = len(self.solution.intercept), isinstance(self.system, JointSystem)
        return super().width + jointly * t * (3 * t + self.n_columns)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, xp, system = workspace.backend, workspace.backend.xp, self.system
        features, weights, predictor, own = self._slopes(block, workspace)
        slopes = weights[:, None] * own
        if isinstance(system, JointSystem):
            leverages, units = system.leverage(features), backend.from_host(np.eye(predictor.shape[1]))
            parts = self.loss.curvature_parts(predictor)
            curved = [self.loss.curvature_times(parts, leverages[:, :, k]) for k in range(len(units))]
            kept = units - (1.0 - _LEAST_KEPT) * weights[:, None, None] * xp.stack(curved, axis=2)
            return predictor + (leverages @ xp.linalg.solve(kept, slopes[:, :, None]))[:, :, 0]
        return predictor + self._change(features, predictor, slopes, weights)[0]

    def _slopes(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats, Floats, Floats]:
        """Return features, weights, predictor, and slopes of the rows."""
        features, weights = self.evaluate(block, workspace), row_weights(block)
        predictor = features @ self.solution.coefficients + self.solution.intercept
        return features, weights, predictor, self.loss.slopes(block.targets, predictor)

    def _change(self, features: Floats, predictor: Floats, slopes: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return `s_g t_g/(1 - D_g t_g)` and `1 - D_g t_g`, with one system for all targets."""
        assert isinstance(self.system, CurvatureSystem)
        (leverage, lengths), curvature = self.system.leverage(features), weights * self.loss.curvature(predictor)
        constant, ridge = self.system.share_of_constant, self.system.scaled_ridge
        kept = kept_share(leverage, lengths, curvature, constant, ridge)
        return slopes * (leverage / kept)[:, None], kept


class LeftOutByTarget(LeftOutPredictor):
    """What leaving out each row does to each target alone: five arrays of shape (rows, t), side by side.

    Each target has a system of its own. The arrays are:

    1. the predictor;
    2. the slope s_g;
    3. the leverage t_g; zero if leaving the row out changes the predictor by at most 0.1 and the loss by at most 1e-5;
    4. `1 - D_g t_g`, where D_g is the weight of the row in the system, given along the rows;
    5. T_g, the leverage that the row would have if all other rows were far from it.
    """

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        assert isinstance(self.system, TargetSystems)
        backend, xp = workspace.backend, workspace.backend.xp
        features, weights, predictor, own = self._slopes(block, workspace)
        slopes, most = weights[:, None] * own, self.system.most_leverage(features)
        seen = abs(slopes) * most * backend.at_least(abs(own), _SEEN / _MOVED) > _SEEN
        leverages = self.system.leverage(features, xp.any(seen, axis=1)[:, None] if self.system.alike else seen)
        kept = backend.at_least(1.0 - block.along[0] * leverages, _LEAST_KEPT)
        every = predictor * 0.0
        return xp.concat([predictor, slopes, leverages + every, kept + every, most + every], axis=1)


class LabelInfluence(LeftOutPredictor):
    """For every row its predictor left out (t columns), its leverage `h = D_g t_g`, and how far it moves the fit.

    Leaving the row out moves the coefficients by d with `d'H d = |s_g|^2 t_g/(1 - h)^2`. The system is that of the mean
    curvature of all targets.
    """

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        features, weights, predictor, own = self._slopes(block, workspace)
        slopes = weights[:, None] * own
        change, kept = self._change(features, predictor, slopes, weights)
        influence = (slopes * change).sum(axis=1) / kept
        return workspace.backend.xp.concat([predictor + change, (1.0 - kept)[:, None], influence[:, None]], axis=1)


def left_out_predictor(newton: Newton, fit: NewtonFit) -> Floats:
    """Return the predictor of every row of the sample, from all rows of the fit with other features."""
    features, system = newton.drawn.sampled.features, fit.system
    arguments = features.evaluate, features.n_columns, newton.loss, fit.solution, system
    if not isinstance(system, TargetSystems):
        return features.passes.map(LeftOutPredictor(*arguments))
    predictor, slopes, leverage, kept, most = np.split(
        features.passes.map(LeftOutByTarget(*arguments), along=(system.weights,)), 5, axis=1
    )
    squares = slopes**2
    curved = (slopes * newton.loss.curvature_product(predictor, slopes)).sum(axis=1) * newton.drawn.sample.row_counts()
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


class LossSearch:
    """Fits along a path of ridges, each begun from the nearest one before, with their leave-one-out losses.

    The n_k rows of a class determine no more than n_k dimensions. Where the effective dimension d_k exceeds them, one
    Newton step is far too short, as the curvature of other rows changes too, and small ridges seem better than they
    are. So `sum_k max(0, d_k - n_k) w_k` is added to the loss that chooses, w_k the mean share of a row of the class in
    the total weight: as if one row were lost for each dimension in excess. Of two classes the smaller counts.

    Losses that differ by at most `least_gain` count as equal, and the largest ridge is taken. Only the system of the
    best one is kept: it has as many numbers as the second derivative. It is the preconditioner of the fits at ridges up
    to a decade away.
    """

    def __init__(self, newton: Newton, ridges: Ridges, start: RidgeSolution) -> None:
        self.newton, self.ridges, self.start = newton, ridges, start
        self.lowest: NewtonFit | None = None  # of the fits so far, by its leave-one-out loss
        self.lowest_at = -1
        self.solutions: dict[int, RidgeSolution] = {}
        self.training: dict[int, float] = {}
        self.losses: dict[int, float] = {}
        self.totals: dict[int, float] = {}  # the losses, plus what dimensions in excess add
        self._class_rows, self._row_share = rows_of_classes(newton)
        self._targets, self._weights = newton.drawn.sample.targets(), newton.drawn.sample.row_counts()
        self.least_gain = _LEAST_GAIN * float(self._weights[self._weights > 0].min() / self._weights.sum())

    def evaluate(self, position: int) -> float:
        """Return the leave-one-out loss of one ridge, plus what dimensions in excess add."""
        if position not in self.totals:
            scaled_ridge = float(self.ridges.scaled[position])
            nearest = min(self.solutions, key=lambda k: (abs(k - position), k != self.lowest_at), default=None)
            start, system = self.start if nearest is None else self.solutions[nearest], None
            if self.lowest is not None and nearest == self.lowest_at:
                start, system = self.lowest.extrapolated(scaled_ridge), self.lowest.system
            elif self.lowest is not None and 1 / _NEARBY <= scaled_ridge / self.lowest.system.scaled_ridge <= _NEARBY:
                system = self.lowest.system
            fit = self.newton.solve(scaled_ridge, start, _NEAR[self.newton.whole], system)
            fit = self.newton.with_own_system(fit)
            losses = self.newton.loss.values(self._targets, left_out_predictor(self.newton, fit))
            loss = float(self._weights @ losses / self._weights.sum())
            excess = np.maximum(fit.system.dimensions - self._class_rows, 0.0)
            total = loss + float(np.sum(excess * self._row_share))
            if total < min(self.totals.values(), default=np.inf) or self.lowest is None:
                self.lowest, self.lowest_at = fit, position
            self.solutions[position], self.training[position] = fit.solution, fit.loss
            self.losses[position], self.totals[position] = loss, total
        return self.totals[position]

    def best(self, total_weight: float) -> tuple[LossPath, RidgeSolution, System]:
        """Return what was tried, the solution at the largest ridge of those that do equally well, and a system near it.

        The system is that of the lowest loss.
        """
        assert self.lowest is not None
        tried = np.array(sorted(self.losses))
        losses, totals, training = (
            np.array([values[k] for k in tried]) for values in (self.losses, self.totals, self.training)
        )
        chosen = int(np.argmax(totals <= totals.min() + max(_AS_GOOD * totals.min(), self.least_gain)))
        values = self.ridges.values
        path = LossPath(
            values[tried], losses, training / total_weight, "loo", chosen, float(values.min()), float(values.max())
        )
        return path, self.solutions[int(tried[chosen])], self.lowest.system


def rows_of_classes(newton: Newton) -> tuple[Floats, Floats]:
    """Return how many groups of rows have each class, and the mean share of such a group in the total weight.

    The groups are those that can be left out. There is one number for each target; of two classes those of the class
    with fewer rows.
    """
    assert isinstance(newton.loss, ClassLoss)
    rows, groups = newton.passes.left_out().indices, newton.passes.left_out_groups()
    targets, weights = newton.passes.targets()[rows], groups.weights[rows]
    shares = newton.loss.indicators(targets if groups.gaps is None else targets + groups.gaps[rows])
    counts = np.maximum(np.count_nonzero(shares > _NO_ROW, axis=0), 1)  # a class may have hardly any weight
    each = weights @ shares / (weights.sum() * counts)
    fewest = [int(counts.argmin())]
    return (counts, each) if targets.shape[1] > 1 else (counts[fewest], each[fewest])
