"""The leave-one-out error of a small landmark model, its gradient in the metric, and its minimum over ridges.

Letters are those of the theory page: C and W hold kernel values of rows and of landmarks with the landmarks,
`Q'(W + jitter I)Q = I`, `B = (C - 1m')Q` with m the weighted mean row of C. Weights sum to one, so that lambda stands
for n lambda.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ridgemark.backends import NUMPY, Array, Backend, Floats, Indices, backend_of
from ridgemark.kernels import CrossKernel, Kernel, Mixture
from ridgemark.passes.device import placed
from ridgemark.tuning.coordinates import Slopes
from ridgemark.tuning.left_out import LeftOutGroups
from ridgemark.tuning.pairs import Pairs
from ridgemark.tuning.scratch import Scratch

# Added to W's diagonal. A smooth criterion needs a fixed term, where the fit itself decides W's rank.
_JITTER = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
_LEAST_KEPT = 1e-10  # smallest 1 - h
_FEWEST_UNITS = 5  # groups that judge, each as one observation
_STRIDES = (5, 2, 1)  # over the ridges, where rows leave in groups: every ridge then takes long


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct rows in units of their columns, targets in units of their deviations; the first rows are landmarks."""

    features: Any  # (n, d), dense or sparse
    targets: Floats
    weights: Floats  # they sum to one
    n_landmarks: int
    fit_intercept: bool
    backend: Backend = NUMPY  # that computes with the rows
    groups: Indices | None = None  # (n,): the number of each row's group, where rows of a group leave together

    @property
    def landmarks(self) -> Any:
        """The landmarks' rows."""
        return self.features[: self.n_landmarks]

    @property
    def all_landmarks(self) -> bool:
        """Whether all rows are landmarks."""
        return self.n_landmarks == len(self.weights)

    @property
    def is_single(self) -> bool:
        """Whether the rows are in single precision."""
        return bool(self.features.dtype == np.float32)

    @cached_property
    def placed(self) -> Sample:
        """The same rows as arrays of the backend; sparse rows stay on the host."""
        return placed(self, self.backend, self.features)[1]

    def bound(self, kernel: Kernel, landmarks: Any) -> CrossKernel:
        """Return the kernel bound to landmarks, for values with the placed rows."""
        return placed(kernel.bind(landmarks), self.backend, self.features)[1]

    def starting_with(self, numbers: Indices) -> Sample:
        """Return the same rows with these as landmarks."""
        order = np.concatenate([numbers, np.setdiff1d(np.arange(len(self.weights)), numbers)])
        features, targets, weights = (array[order] for array in (self.features, self.targets, self.weights))
        groups = None if self.groups is None else self.groups[order]
        return Sample(features, targets, weights, len(numbers), self.fit_intercept, self.backend, groups)

    def in_single_precision(self) -> Sample:
        """Return the same rows in single precision."""
        single: list[Any] = [array.astype(np.float32) for array in (self.features, self.targets, self.weights)]
        return replace(self, features=single[0], targets=single[1], weights=single[2])

    def first(self, n_rows: int, n_landmarks: int) -> Sample:
        """Return the sample's first rows, with fewer landmarks."""
        shares = self.weights[:n_rows] / self.weights[:n_rows].sum()
        n_landmarks = min(n_landmarks, self.n_landmarks)
        features, targets = self.features[:n_rows], self.targets[:n_rows]
        groups = None if self.groups is None else self.groups[:n_rows]
        return Sample(features, targets, shares, n_landmarks, self.fit_intercept, self.backend, groups)

    def of_units(self, errors: Floats) -> Floats:
        """Return the errors of rows as those of groups with the same mean, if there are enough groups."""
        groups, sizes = (None, ()) if self.groups is None else self._numbered
        if groups is None or len(sizes) < _FEWEST_UNITS:
            return errors
        return np.bincount(groups, errors).astype(float) * (len(sizes) / len(errors))

    @cached_property
    def _numbered(self) -> tuple[Indices, Indices]:
        """Every row's group, counted from 0, and the sizes of the groups."""
        assert self.groups is not None
        _, which, sizes = np.unique(self.groups, return_inverse=True, return_counts=True)
        return which, sizes

    @cached_property
    def by_group(self) -> tuple[Indices, Indices]:
        """The rows sorted by groups, the smallest groups first, and the sizes of the groups."""
        which, sizes = self._numbered
        return np.lexsort((which, sizes[which])), np.sort(sizes)


@dataclass(frozen=True, eq=False)
class SmallModel:
    """A landmark model of a sample: `f(x) = k(x) coefficients + constant`."""

    kernel: Kernel
    landmarks: Floats
    coefficients: Floats
    constant: Floats

    def squared_errors(self, rows: Sample) -> Floats:
        """Return each row's squared error, the mean over targets."""
        values = rows.bound(self.kernel, self.landmarks)(rows.placed.features)
        backend = backend_of(values)
        predicted = backend.to_host(values @ backend.from_host(self.coefficients)) + self.constant
        return ((rows.targets - predicted) ** 2).mean(axis=1)


@dataclass(frozen=True, eq=False)
class SmallDesign:
    """The features B of a sample, and its centred targets."""

    sample: Sample
    whitener: Floats  # Q
    mean: Floats  # m
    features: Floats  # B
    target_mean: Floats
    targets: Floats  # centred

    @classmethod
    def of(cls, sample: Sample, cross: Floats, landmark_kernel: Floats, space: Scratch | None = None) -> SmallDesign:
        """Return the design for kernel values C, which become B, and W; raise LinAlgError if W is not definite."""
        backend, rows = backend_of(cross), sample.placed
        jitter = _JITTER[backend.precision(cross)] * float(landmark_kernel.diagonal().max())
        landmark_kernel = backend.copy(landmark_kernel)
        backend.diagonal(landmark_kernel)[...] += jitter
        whitener = _inverse_factor(landmark_kernel)
        mean, target_mean = rows.weights @ cross * 0.0, rows.weights @ rows.targets * 0.0
        if sample.fit_intercept:
            mean, target_mean = rows.weights @ cross, rows.weights @ rows.targets

        def whiten(part: slice) -> None:
            own = cross[part]
            own -= mean
            backend.times_triangle_(own, whitener)

        (space or Scratch()).over_rows(cross, whiten)
        return cls(sample, whitener, mean, cross, target_mean, rows.targets - target_mean)

    @property
    def weights(self) -> Floats:
        """The weights of the sample."""
        return self.sample.placed.weights

    def best_ridge(self, ridges: Floats) -> tuple[float, float, Floats]:
        """Return the smallest leave-one-out error over these ridges, its ridge, and the coefficients c there."""
        w, constant, backend = self.weights, float(self.sample.fit_intercept), backend_of(self.features)
        values, rotation = backend.xp.linalg.eigh(_weighted_gram(self.features, w, Scratch()))
        rotated = self.features @ rotation
        projected = rotated.T @ (w[:, None] * self.targets)
        if self.sample.groups is not None:
            best, error = self._best_for_groups(ridges, values, rotated, projected)
            solution = projected / (backend.at_least(values, 0.0)[:, None] + float(ridges[best]))
            return error, float(ridges[best]), rotation @ solution
        inverse = 1.0 / (backend.at_least(values, 0.0)[:, None] + backend.from_host(ridges, like=values))
        kept = backend.at_least(1.0 - w[:, None] * (rotated**2 @ inverse + constant), _LEAST_KEPT)
        errors = np.zeros(len(ridges))
        for target, part in zip(self.targets.T, projected.T, strict=True):
            residuals = (target[:, None] - rotated @ (inverse * part[:, None])) / kept
            errors += backend.to_host(w @ residuals**2) / len(projected.T)
        best = int(np.argmin(errors))
        return float(errors[best]), float(ridges[best]), rotation @ (inverse[:, best, None] * projected)

    def without_groups(self, whitened: Array, residuals: Array) -> LeftOutGroups:
        """Return what predicts every row without its group, from A and the residuals e."""
        sample = self.sample
        return LeftOutGroups.of(sample.by_group, sample.weights, whitened, residuals, float(sample.fit_intercept))

    def _best_for_groups(self, ridges: Floats, values: Array, rotated: Array, projected: Array) -> tuple[int, float]:
        """Return the position of the best ridge and its error: of every fifth one, then of those beside the best."""
        errors: dict[int, float] = {}

        def evaluate(position: int) -> float:
            if not 0 <= position < len(ridges):
                return np.inf
            if position not in errors:
                inverse = 1.0 / (backend.at_least(values, 0.0) + float(ridges[position]))
                residuals = self.targets - rotated @ (inverse[:, None] * projected)
                errors[position] = self.without_groups(rotated * backend.xp.sqrt(inverse), residuals).error
            return errors[position]

        backend = backend_of(rotated)
        best = min(range(min(2, len(ridges) - 1), len(ridges), _STRIDES[0]), key=evaluate)
        for stride in _STRIDES[1:]:
            best = min((best, best - stride, best + stride), key=evaluate)
        return best, errors[best]

    def model(self, kernel: Kernel, coefficients: Floats) -> SmallModel:
        """Return the function of coefficients c; `kernel` gave the kernel values."""
        of_landmarks = self.whitener @ coefficients
        constant = self.target_mean - self.mean @ of_landmarks
        backend = backend_of(of_landmarks)
        return SmallModel(kernel, self.sample.landmarks, backend.to_host(of_landmarks), backend.to_host(constant))


@dataclass(frozen=True, eq=False)
class SmallSolution:
    """The ridge solution on a design, with what its leave-one-out error needs."""

    design: SmallDesign
    space: Scratch
    ridge: float
    inverse_root: Array  # G, upper triangular: `GG' = F^-1`, F = B'diag(w)B + lambda I
    coefficients: Floats  # c = F^-1 B'(w y)
    residuals: Floats  # e = y - Bc
    whitened: Floats  # A = BG
    kept: Floats  # q = 1 - h, h_i = w_i (1 + a_i'a_i); no 1 without an intercept
    groups: LeftOutGroups | None  # where rows leave in groups

    @classmethod
    def of(cls, design: SmallDesign, ridge: float, space: Scratch) -> SmallSolution:
        """Solve at one ridge."""
        features, w, backend = design.features, design.weights, backend_of(design.features)
        gram = _weighted_gram(features, w, space)
        backend.diagonal(gram)[...] += ridge
        inverse_root = _inverse_factor(gram)
        coefficients = inverse_root @ (inverse_root.T @ (features.T @ (w[:, None] * design.targets)))
        whitened = space.array("whitened", features.shape, features)

        def whiten(part: slice) -> Array:
            own = whitened[part]
            own[...] = features[part]
            return backend.squared_norms(backend.times_triangle_(own, inverse_root))

        lengths = backend.xp.concat(space.over_rows(features, whiten))
        kept = backend.at_least(1.0 - w * (float(design.sample.fit_intercept) + lengths), _LEAST_KEPT)
        residuals = design.targets - features @ coefficients
        groups = None if design.sample.groups is None else design.without_groups(whitened, residuals)
        return cls(design, space, ridge, inverse_root, coefficients, residuals, whitened, kept, groups)

    @property
    def left_out(self) -> Floats:
        """The leave-one-out residuals, `r = e/q`; of rows that leave in groups as `LeftOutGroups` has them."""
        if self.groups is None:
            return self.residuals / self.kept[:, None]
        return backend_of(self.kept).from_host(self.groups.residuals, like=self.kept)

    @property
    def error(self) -> float:
        """`E = sum w r^2`, the mean over targets."""
        return float((self.design.weights @ self.left_out**2).mean())

    def gradients(self) -> tuple[Floats, Floats, float]:
        """Return dE/dC, dE/dW and dE/dlambda; A is overwritten.

        With `u = 2 w r/q`, `g = u r`, `v = F^-1 B'u`, `N = A'diag(g w)A`, `R = QG` and `J X = X - w(1'X)`:
        `dE/dC = J[2 (diag(g w)A - diag(w)AN)R' - (u - w Bv)(Qc)' - (w e)(Qv)']`,
        `dE/dW = lambda (((Qv)(Qc)' + (Qc)(Qv)')/2 - RNR')` and `dE/dlambda = v'c - tr GNG'`, u and g summed over the
        targets. Where rows leave in groups, `diag(g w)` is D of `LeftOutGroups`, and u is its u.
        """
        design, w = self.design, self.design.weights
        features, whitener, c = design.features, design.whitener, self.coefficients
        backend, whitened = backend_of(features), self.whitened
        if self.groups is not None:  # A is not needed any more: `weighted` is DA
            u, weighted, spread = (backend.from_host(part, like=w) for part in self.groups.multipliers())
        else:
            left_out = self.left_out
            u = left_out * (2.0 * w / (self.kept * c.shape[1]))[:, None]
            g = (u * left_out).sum(axis=1)
            spread = _weighted_gram(whitened, g * w, self.space)
        v = self.inverse_root @ (self.inverse_root.T @ (features.T @ u))
        by_ridge = (v * c).sum() - (spread * (self.inverse_root.T @ self.inverse_root)).sum()
        triangle = backend.times_triangle_(backend.copy(whitener), self.inverse_root)
        left = backend.xp.concat([u - w[:, None] * (features @ v), w[:, None] * self.residuals], axis=1)
        c, v = whitener @ c, whitener @ v
        right = backend.copy(backend.xp.concat([c, v], axis=1).T)
        by_cross = self.space.array("weighted", whitened.shape, whitened)

        def derive(part: slice) -> Array:
            own, twice = by_cross[part], 2.0 * w[part, None]
            backend.matmul(whitened[part], -spread, out=own)
            if self.groups is None:
                whitened[part] *= g[part, None]
                own += whitened[part]
                own *= twice
            else:
                own *= twice
                own += 2.0 * weighted[part]
            backend.times_triangle_(own, triangle, transposed=True)
            backend.subtract_product_(own, left[part], right)
            return own.sum(axis=0)

        total = self.space.sum_over_rows(by_cross, derive)[None]
        if design.sample.fit_intercept:
            column = backend.copy(w[:, None])
            self.space.over_rows(by_cross, lambda part: backend.subtract_product_(by_cross[part], column[part], total))
        for _ in range(2):  # N R', then R N R'
            spread = backend.times_triangle_(backend.copy(spread.T), triangle, transposed=True)
        return by_cross, self.ridge * ((v @ c.T + c @ v.T) / 2.0 - spread), float(by_ridge)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The criterion at one kernel and ridge."""

    kernel: Mixture
    error: float
    model: SmallModel
    slopes: Slopes
    left_out: Floats  # squared leave-one-out residual of every row, times its relative weight


def evaluate(kernel: Mixture, ridge: float, sample: Sample, space: Scratch | None = None) -> Evaluation:
    """Return the leave-one-out error of a mixture, with its derivatives; all in the arrays of a workspace.

    The first rows are the landmarks, so W is the top of C, and `dE/dC` takes the symmetric part of `dE/dW` there.
    """
    space = Scratch() if space is None else space
    pairs = Pairs.of(kernel, sample.placed.features, sample.n_landmarks, space)
    among = pairs.values[: sample.n_landmarks]
    solved = SmallSolution.of(SmallDesign.of(sample, pairs.values, (among + among.T) / 2.0, space), ridge, space)
    by_cross, by_landmarks, ridge_slope = solved.gradients()
    by_cross[: sample.n_landmarks] += by_landmarks
    model = solved.design.model(kernel, solved.coefficients)
    backend = backend_of(solved.kept)
    left_out = backend.to_host((solved.left_out**2).mean(axis=1)) * (sample.weights * len(sample.weights))
    return Evaluation(kernel, solved.error, model, pairs.slopes(by_cross, ridge_slope), left_out)


def best_ridge(kernel: Kernel, sample: Sample, ridges: Floats) -> tuple[float, float]:
    """Return the smallest leave-one-out error of a kernel over some ridges, and its ridge."""
    return _design(kernel, sample).best_ridge(ridges)[:2]


def best_model(kernel: Kernel, sample: Sample, ridges: Floats) -> tuple[SmallModel, float]:
    """Return the landmark model of a sample at the ridge of the smallest leave-one-out error, and that error."""
    design = _design(kernel, sample)
    error, _, coefficients = design.best_ridge(ridges)
    return design.model(kernel, coefficients), error


def fit_small(kernel: Kernel, sample: Sample, ridge: float) -> tuple[SmallModel, float]:
    """Return the landmark model of a sample at one ridge, and its leave-one-out error."""
    design = _design(kernel, sample)
    solved = SmallSolution.of(design, ridge, Scratch())
    return design.model(kernel, solved.coefficients), solved.error


def _design(kernel: Kernel, sample: Sample) -> SmallDesign:
    bound, rows = sample.bound(kernel, sample.landmarks), sample.placed
    cross, among = bound(rows.features), bound.symmetric_block(rows.landmarks)  # the second in double precision
    return SmallDesign.of(sample, cross, backend_of(cross).xp.astype(among, cross.dtype, copy=False))


def _inverse_factor(matrix: Array) -> Array:
    """Return R, upper triangular, with `R'AR = I`; raise LinAlgError if A is not definite."""
    backend = backend_of(matrix)
    upper = np.linalg.cholesky(matrix).T if backend is NUMPY else backend.cholesky(matrix)
    if upper is None:
        raise np.linalg.LinAlgError
    return backend.inverse_triangle(upper)


def _weighted_gram(features: Array, weights: Array, space: Scratch) -> Array:
    """Return `B'diag(w)B`, in half the work of a general product."""
    weighted, roots = space.array("weighted", features.shape, features), backend_of(weights).xp.sqrt(weights)

    def gram(part: slice) -> Array:
        own = weighted[part]
        own[...] = features[part]
        own *= roots[part, None]
        return own.T @ own

    return space.sum_over_rows(features, gram)
