"""What leave-one-out residuals add to a fitted model: residuals of all rows, and a sample of them for intervals."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Flags, Floats
from ridgemark.fitted import FittedModel
from ridgemark.intervals import CalibrationRows, CalibrationSets, NoiseLevel, calibration_of, constant_noise
from ridgemark.passes import RowPasses
from ridgemark.passes.columns import Columns
from ridgemark.path import LeaveOneOut
from ridgemark.path.left_out import GroupPulls
from ridgemark.rows import DistinctRows, RowGroups
from ridgemark.rows.groups import Hashes, evenly
from ridgemark.sampling import make_generator

_LARGEST_SAMPLE = 4096  # most calibration rows: enough for quantiles accurate to a percent


def draw_rows(
    model: FittedModel,
    passes: RowPasses,
    everything: bool,
    random_state: Any,
    pulls: GroupPulls | None = None,
    sets: Hashes | None = None,
) -> CalibrationRows:
    """Return a uniform sample of the rows for calibration, and what intervals from them promise.

    Of rows that leave in groups it is one of the rows of those groups that have pulls, with as many rows of one group
    as of another, as far as groups have them; and of named sets in the same way.

    `everything` says whether the rows are all rows of the fit. For a guarantee the noise must be known without the
    calibration rows: it is that of the rows that chose the landmarks, or of one size everywhere.
    """
    fit = model.expanded
    assert fit is not None
    eligible = passes.row_counts() > 0
    if pulls is not None:
        eligible &= np.isin(passes.left_out().kind, pulls.groups)
    guaranteed, reason = _promise(model, passes, everything)
    if guaranteed and everything:
        eligible &= ~with_landmarks(model, passes)
    rows = np.flatnonzero(eligible)
    # With their features, calibration rows take at most a quarter of the budget.
    most = passes.budget // (32 * (model.function.n_points + model.schema.n_encoded))
    most = max(100, min(_LARGEST_SAMPLE, most))
    drawn = make_generator(random_state).permutation(rows)
    together = passes.left_out().kind if passes.leaves_groups else np.zeros(passes.source.n_rows, dtype=np.intp)
    if sets is not None:
        together = np.unique(np.stack([together.astype(np.uint64), sets]), axis=1, return_inverse=True)[1]
    sample = np.sort((drawn if sets is None and not passes.leaves_groups else evenly(drawn, together))[:most])
    block, groups = passes.take(sample), passes.row_groups()
    gaps = None if groups.gaps is None else groups.gaps[sample]
    noise = (model.noise or constant_noise(fit)) if guaranteed or not everything else None
    of_sample, own = RowGroups(groups.weights[sample], gaps), passes.row_counts()[sample]
    return CalibrationRows(
        block.features, sample, block.targets, own, of_sample, guaranteed, reason, noise, passes.memory_budget
    )


def with_calibration(
    model: FittedModel,
    passes: RowPasses,
    left_out: LeaveOneOut,
    everything: bool,
    random_state: Any,
    sets: Hashes | None = None,
    ratios: Floats | None = None,
) -> FittedModel:
    """Return the model calibrated by `draw_rows`, from residuals of all rows of the passes.

    `sets` has hashes of the labels of named sets, and `ratios` the density ratios of all rows.
    """
    drawn = draw_rows(model, passes, everything, random_state, left_out.pulls, sets)
    assert model.expanded is not None
    calibration = calibration_of(drawn, passes, model.expanded, left_out, drawn.indices)
    if sets is not None:
        hashes, of_rows = np.unique(sets[drawn.indices], return_inverse=True)
        shares = np.array([np.count_nonzero((sets == k) & (passes.row_counts() > 0)) for k in hashes])
        factors = np.ones(len(hashes)) if passes.leaves_groups else shares / np.bincount(of_rows)
        calibration = replace(
            calibration, sets=CalibrationSets(hashes, of_rows), weights=calibration.weights * factors[of_rows]
        )
    if ratios is not None:
        calibration = replace(calibration, ratios=ratios[drawn.indices])
    return replace(model, calibration=calibration, drawn=None)


def with_landmarks(model: FittedModel, passes: RowPasses) -> Flags:
    """Return which rows are landmarks, or leave together with one."""
    rows, among = np.zeros(passes.source.n_rows, dtype=bool), rows_among(model, passes)
    assert among is not None
    rows[among] = True
    return np.isin(passes.left_out().kind, passes.left_out().kind[among]) if passes.leaves_groups else rows


def noise_before(model: FittedModel) -> NoiseLevel | None:
    """Return the noise of the rows that chose the landmarks, for calibration by rows added later."""
    assert model.sums is not None
    calibration = model.calibration
    if calibration is None or model.sums.moments.n_rows > model.choice.sums.n_rows:
        return model.noise
    return replace(calibration.noise, outside=True)


def rows_among(model: FittedModel, passes: RowPasses) -> NDArray[np.intp] | None:
    """Return the landmarks' row numbers where these rows begin as those did that the landmarks were drawn from."""
    landmarks, indices = model.function.points, model.function.numbers
    if indices is None or indices.max(initial=0) >= passes.source.n_rows:
        return None
    if (
        model.function.kernel.pairwise
    ):  # one row cannot be told from another by its features alone, but by its own column
        assert model.expanded is not None
        rows = passes.take(indices).features
        known = model.expanded.factor.landmark_kernel
        return indices if np.allclose(rows[:, indices], known, rtol=1e-6, atol=1e-6 * abs(known).max()) else None
    difference = abs(passes.take(indices).features - landmarks)
    return indices if difference.max() <= 1e-6 * abs(landmarks).max() else None


def repeats_and_columns(passes: RowPasses, distinct: DistinctRows, pairwise: bool) -> dict[str, Any]:
    """Return how many rows equal an earlier one, which columns are constant, and columns of two values with these."""
    n_duplicates = int(np.count_nonzero(distinct.kind >= 0)) - len(distinct)
    if pairwise:
        return {"n_duplicates": n_duplicates, "constant_columns": (), "two_valued": ()}
    columns = passes.columns()
    two = np.flatnonzero(columns.two_valued & ~columns.constant)
    levels = tuple((int(j), float(columns.low[j]), float(columns.high[j])) for j in two)
    constant = tuple(map(int, np.flatnonzero(columns.constant)))
    return {"n_duplicates": n_duplicates, "constant_columns": constant, "two_valued": levels}


def still_two_valued(known: tuple[tuple[int, float, float], ...], more: Columns) -> tuple[Any, ...]:
    """Return the columns of two values that further rows have no other values of."""
    return tuple(
        (j, low, high)
        for j, low, high in known
        if more.two_valued[j] and {float(more.low[j]), float(more.high[j])} <= {low, high}
    )


def _promise(model: FittedModel, passes: RowPasses, everything: bool) -> tuple[bool, str]:
    """Return whether coverage of new rows is proved for the calibration rows, and why."""
    weights, ridge_given = passes.row_counts(), model.solution.path is None
    if np.ptp(weights[weights > 0]) > 0:
        return False, "rows of unequal weights are not exchangeable"
    if not everything:
        if ridge_given:
            reason = "landmarks and bandwidth were chosen from earlier rows, and the ridge was given"
            if passes.left_out().has_repeats:
                reason += "; as some rows are equal, only for new rows that equal none of them"
            return True, reason
        return False, "the ridge was chosen from these rows"
    assert model.sums is not None
    left = model.sums.moments.n_rows - model.function.n_points
    by_chance = model.choice.blind and ridge_given and not passes.distinct_rows().has_repeats
    if by_chance and passes.leaves_groups:
        return _promise_of_groups(model, passes)
    if by_chance and left > 0 and rows_among(model, passes) is not None:
        return True, "ridge and bandwidth were given, landmarks drawn uniformly, and none of them is among the rows"
    return False, "landmarks, bandwidth or ridge were chosen from these rows"


def _promise_of_groups(model: FittedModel, passes: RowPasses) -> tuple[bool, str]:
    """Return the same where rows leave in groups and a given number of landmarks was drawn by chance, at a given ridge.

    Groups without a landmark are exchangeable with a new one only if all have equally many rows: of others those with
    few rows are more likely to have none.
    """
    sizes = passes.left_out().totals((passes.row_counts() > 0).astype(float))
    if np.ptp(sizes) > 0:
        return (
            False,
            "groups of unequal numbers of rows are not exchangeable with a new one, given that none is a landmark",
        )
    if rows_among(model, passes) is None or with_landmarks(model, passes)[passes.row_counts() > 0].all():
        return False, "every group has a landmark among its rows"
    return True, (
        "ridge and bandwidth were given, landmarks drawn uniformly, and none of them is in the groups that calibrate; "
        "for rows of new groups, if groups are exchangeable, each counting equally"
    )
