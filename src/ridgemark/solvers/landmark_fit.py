"""Ridge regression on the features from their moments, for one ridge or for every ridge; and the fit from landmarks."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from ridgemark import linalg
from ridgemark.backends import Floats, backend_of, blas_threads_for
from ridgemark.errors import NumericalError
from ridgemark.leverage import Bracket, residual_dimension
from ridgemark.losses import Moments, RidgeSolution
from ridgemark.operators import NystromFactor

ROBUST = 1.6  # factor on tr H in generalised cross-validation
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)  # of sums of squares, relative
_SMALLEST = 1e-280  # the rounding errors of a smaller sum of squares underflow


def generalised_error(training_error: Floats, dimension: float, n_left_out: int, factor: float = ROBUST) -> Floats:
    """Return `training_error / (1 - factor dimension/G)^2` for G groups that can be left out; or else infinity."""
    remaining = 1.0 - factor * dimension / n_left_out
    return training_error / remaining**2 if remaining > 1e-12 else np.full(len(training_error), np.inf)


class CentredMoments:
    """`Bc'W Bc` and `Bc'W yc`, with c for centred features and targets; without an intercept nothing is centred.

    Attributes
    ----------
    gram, cross : arrays of shape (rank, rank) and (rank, targets)
        The two products.
    feature_mean, target_mean : arrays of shape (rank,) and (targets,)
        Zero without an intercept.
    target_variance : array of shape (targets,)
        The weighted mean square of the centred targets.
    """

    def __init__(self, moments: Moments, fit_intercept: bool) -> None:
        self.fit_intercept, self.total_weight, self._gram = fit_intercept, moments.total_weight, moments.gram
        self.cross, square, n = moments.cross, moments.target_square, moments.total_weight
        self.feature_mean, self.target_mean = np.zeros(len(self._gram)), np.zeros(self.cross.shape[1])
        if fit_intercept:
            self.feature_mean, self.target_mean = moments.feature_sum / n, moments.target_sum / n
            self.cross = self.cross - n * np.outer(self.feature_mean, self.target_mean)
            square = square - n * self.target_mean**2
            # These targets are constant up to rounding, which cannot be seen from squares that underflow.
            constant = (square <= _ROUNDING * moments.target_square) & (moments.target_square > _SMALLEST)
            self.cross, square = np.where(constant, 0.0, self.cross), np.where(constant, 0.0, square)
        self.target_variance = np.maximum(square, 0.0) / n

    @cached_property
    def gram(self) -> Floats:
        """`Bc'W Bc`."""
        mean = backend_of(self._gram).from_host(self.feature_mean)
        return self._gram - self.total_weight * (mean[:, None] * mean) if self.fit_intercept else self._gram

    @cached_property
    def size(self) -> float:
        """The Frobenius norm of the Gram matrix, a bound on its largest eigenvalue."""
        return float(backend_of(self.gram).xp.linalg.norm(self.gram))

    @property
    def rounding(self) -> float:
        """The smallest ridge with which the Gram matrix is definite despite its rounding."""
        return 10 * len(self._gram) * linalg.EPS * self.size

    def check_targets(self) -> None:
        """Refuse targets whose squares leave the floating-point range, as errors could not be compared."""
        beyond = ~np.isfinite(self.target_variance)
        beneath = (self.target_variance < 1e-300) & (np.abs(self.cross) > 0).any(axis=0)
        if (beyond | beneath).any():
            what = "exceed" if beyond.any() else "fall below"
            raise NumericalError(f"the squares of the targets {what} the floating-point range; rescale the targets")

    def with_intercept(self, coefficients: Floats) -> RidgeSolution:
        """Return the solution with these coefficients and the intercept for which the mean residual is zero."""
        return RidgeSolution(coefficients, self.target_mean - self.feature_mean @ coefficients)


@dataclass(frozen=True, eq=False)
class RidgeInverse:
    """`(Bc'W Bc + n lambda)^-1 = R diag(d) R'`, for one ridge or for several.

    Attributes
    ----------
    root : array of shape (rank, rank)
        R: for one ridge the inverse of the Cholesky factor, upper triangular; for several the eigenvectors.
    factors : array of shape (rank, ridges)
        d: ones, or `1/(s + n lambda)` with s the eigenvalues.
    is_triangular : bool
        Whether R is a triangle.
    """

    root: Floats
    factors: Floats
    is_triangular: bool

    def of_target(self, number: int) -> "RidgeInverse":
        """Return the inverse for the ridge of one target, which may be that of all."""
        column = min(number, self.factors.shape[1] - 1)
        return replace(self, factors=self.factors[:, column : column + 1])

    def solve(self, right: Floats) -> Floats:
        """Return the inverse times `right`: for one ridge, or the columns belong to the ridges."""
        return self.root @ (self.factors * (self.root.T @ right))

    def coordinates(self, coefficients: Floats) -> Floats:
        """Return `R^-1 c`."""
        return linalg.solve_triangle(self.root, coefficients) if self.is_triangular else self.root.T @ coefficients

    def of_features(self, values: Floats) -> Floats:
        """Return `B'x` for `C'x`, with `C = B R` the coordinates of the features B."""
        return linalg.solve_triangle(self.root, values, transposed=True) if self.is_triangular else self.root @ values

    def shrinkage(self, scaled_ridge: Floats) -> Floats:
        """Return `n lambda tr (Bc'W Bc + n lambda)^-1`: the dimensions that the ridges leave unused."""
        if not self.is_triangular:
            return (self.factors * scaled_ridge).sum(axis=0)
        return np.array([linalg.squared_norm_of_triangle(self.root, np.sqrt(scaled_ridge[0]))])

    def squared_shrinkage(self, scaled_ridge: Floats) -> Floats:
        """Return the trace of the square of `n lambda (Bc'W Bc + n lambda)^-1`."""
        if not self.is_triangular:
            return ((self.factors * scaled_ridge) ** 2).sum(axis=0)
        return np.array([linalg.squared_norm_of_product(np.sqrt(scaled_ridge[0]) * self.root)])


class OneRidge(NamedTuple):
    """The results of `SpectralSolver` at one ridge.

    Attributes
    ----------
    solution : RidgeSolution
        The solution of `(B'WB + scaled_ridge I) c = B'Wy`, centred.
    effective_dimension : float
        `tr L (L + scaled_ridge)^-1`, without the intercept.
    training_error : array of shape (targets,)
        The weighted mean squared residual.
    inverse : RidgeInverse
        `(B'WB + scaled_ridge I)^-1`.
    size : float
        The Frobenius norm of the centred Gram matrix.
    """

    solution: RidgeSolution
    effective_dimension: float
    training_error: Floats
    inverse: RidgeInverse
    size: float


def solve_one_ridge(centred: CentredMoments, scaled_ridge: float) -> OneRidge | None:
    """Solve by the Cholesky factor `B'WB + scaled_ridge I = U'U`; None where the ridge is below the rounding of B'WB.

    That is a tenth of an eigendecomposition's work. The effective dimension is `rank - scaled_ridge |U^-1|^2`.
    """
    rank, cross, gram = len(centred.gram), centred.cross, linalg.sent(centred.gram)
    linalg.check_range(gram)
    if not rank or not scaled_ridge > centred.rounding:
        return None
    with blas_threads_for(rank):
        triangle = linalg.cholesky_(linalg.copy_with_ridge(gram, scaled_ridge))
    if triangle is None:
        return None
    coefficients = linalg.solve_cholesky(triangle, cross)
    root = linalg.inverse_triangle_(triangle)
    root = backend_of(root).to_host(root)
    inverse = RidgeInverse(root, np.ones((rank, 1)), True)
    explained = ((cross + scaled_ridge * coefficients) * coefficients).sum(axis=0)
    return OneRidge(
        centred.with_intercept(coefficients),
        max(0.0, rank - float(inverse.shrinkage(np.array([scaled_ridge]))[0])),
        np.maximum(centred.target_variance - explained / centred.total_weight, 0.0),
        inverse,
        centred.size,
    )


class SpectralSolver(CentredMoments):
    """Solves `(B'WB + scaled_ridge I) c = B'Wy`, on centred features and targets where there is an intercept.

    With `Bc'W Bc = V diag(s) V'` and `u = V' Bc'W yc`, the coefficients are `V u/(s + scaled_ridge)`; the mean
    squared residual and the trace of the hat matrix follow from s and u alone.
    """

    def __init__(self, moments: Moments, fit_intercept: bool, like: "SpectralSolver | None" = None) -> None:
        """Decompose the Gram matrix, or take the decomposition of a solver of the same one for other targets."""
        super().__init__(moments, fit_intercept)
        eigen = linalg.symmetric_eigen(self.gram) if like is None else (like.spectrum, like.rotation)
        self.spectrum: Floats = eigen[0]
        self.rotation: Floats = eigen[1]
        self.rotated = self.rotation.T @ self.cross

    def solution(self, scaled_ridge: float | Floats) -> RidgeSolution:
        """Return the solution for one ridge, or for one ridge per target."""
        # Eigenvalues below their rounding error are not known, and with a tinier ridge this would divide by zero.
        rounding = linalg.EPS * self.spectrum.max(initial=0.0)
        shrunk = self.rotated / np.maximum(self.spectrum[:, None] + np.asarray(scaled_ridge), rounding)
        return self.with_intercept(self.rotation @ shrunk)

    def inverse(self, scaled_ridge: float | Floats) -> Floats:
        """Return `1/(s + scaled_ridge)`, shape (rank, 1), or with one column for each ridge."""
        return 1.0 / (self.spectrum[:, None] + scaled_ridge)

    def at_ridges(self, scaled_ridges: Floats) -> RidgeInverse:
        """Return the inverse for some ridges."""
        return RidgeInverse(self.rotation, self.inverse(scaled_ridges), False)

    def effective_dimension(self, scaled_ridge: float) -> float:
        """Return the trace of `L (L + scaled_ridge)^-1`, without the intercept."""
        return float((self.spectrum / (self.spectrum + scaled_ridge)).sum())

    def training_error(self, scaled_ridge: float | Floats) -> Floats:
        """Return the weighted mean squared residual, per target, for one ridge or for one ridge per target."""
        inverse = self.inverse(scaled_ridge)
        # Scaled before squaring, so that the squares do not exceed those of the targets.
        explained = np.sum((np.sqrt(inverse * (1.0 + scaled_ridge * inverse)) * self.rotated) ** 2, axis=0)
        return np.maximum(self.target_variance - explained / self.total_weight, 0.0)

    def generalised_cross_validation(self, scaled_ridge: float, n_left_out: int, factor: float = ROBUST) -> Floats:
        """Return `training_error / (1 - factor tr H/G)^2` per target, for G groups that can be left out.

        It is infinite where `factor tr H >= G`. H includes the intercept. With factor 1, the plain criterion, the
        minimum is often at a far too small ridge when rows are few or their leverages uneven; `docs/theory.md` shows
        what the factor does.
        """
        dimension = self.effective_dimension(scaled_ridge) + self.fit_intercept
        return generalised_error(self.training_error(scaled_ridge), dimension, n_left_out, factor)


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """The function `f(x) = b(x)' coefficients + intercept + target_origin`, with the sums it was solved from."""

    factor: NystromFactor
    moments: Moments
    fit_intercept: bool
    scaled_ridge: Annotated[Floats, "(t)", "> 0"]  # n lambda for each target
    target_origin: Annotated[Floats, "(t)"]  # subtracted from the targets in the moments
    weight_unit: Annotated[float, "> 0"]  # divisor of the weights in the moments and in `scaled_ridge`
    solution: RidgeSolution  # the coefficients of the features, and the intercept measured from `target_origin`
    training_error: Annotated[Floats, "(t)", ">= 0"]  # the weighted mean squared residual
    effective_dimension: Bracket  # d_eff of the exact kernel at the smallest ridge
    spectral: SpectralSolver | None = field(default=None, compare=False, repr=False)  # where it was computed
    known_size: float | None = field(default=None, compare=False, repr=False)  # of `centred`, where computed
    known_inverse: RidgeInverse | None = field(default=None, compare=False, repr=False)  # likewise

    @cached_property
    def centred(self) -> CentredMoments:
        """The moments, measured from their means where there is an intercept."""
        return self.spectral or CentredMoments(self.moments, self.fit_intercept)

    @cached_property
    def inverse(self) -> RidgeInverse:
        """`(Bc'W Bc + n lambda)^-1`: one ridge for all targets where theirs are equal, otherwise one for each."""
        if self.known_inverse is not None:
            return self.known_inverse
        ridges = self.scaled_ridge if np.ptp(self.scaled_ridge) > 0 else self.scaled_ridge[:1]
        # By Cholesky even if there is an eigendecomposition: a fit from a file has none, and must give the same bytes.
        solved = solve_one_ridge(self.centred, float(ridges[0])) if len(ridges) == 1 else None
        return self.solver.at_ridges(ridges) if solved is None else solved.inverse

    @property
    def dimensions(self) -> Floats:
        """The trace of `L (L + n lambda)^-1`, one more with an intercept, for every target."""
        unused = self.inverse.shrinkage(self.scaled_ridge)
        return np.maximum(len(self.inverse.root) - unused, 0.0) + self.fit_intercept

    @property
    def degrees_of_freedom(self) -> Floats:
        """`2 tr H - tr H^2`, one more with an intercept, for every target."""
        squares = self.inverse.squared_shrinkage(self.scaled_ridge)
        return np.maximum(len(self.inverse.root) - squares, 0.0) + self.fit_intercept

    @cached_property
    def solver(self) -> SpectralSolver:
        """The eigendecomposition of the moments, for every ridge."""
        return self.spectral or SpectralSolver(self.moments, self.fit_intercept)

    @cached_property
    def size(self) -> float:
        """The Frobenius norm of the centred Gram matrix."""
        return self.centred.size if self.known_size is None else self.known_size

    @cached_property
    def dual_coef(self) -> Floats:
        """The coefficients of the landmarks' kernel values, shape (p, targets)."""
        return self.factor.combine(self.solution.coefficients)

    def of_target(self, number: int) -> "LandmarkFit":
        """Return the function of one target."""
        own = slice(number, number + 1)
        moments, solution = self.moments, self.solution
        sums = {name: getattr(moments, name)[own] for name in ("target_sum", "target_square")}
        return replace(
            self,
            moments=replace(moments, cross=moments.cross[:, own], **sums),
            scaled_ridge=self.scaled_ridge[own],
            target_origin=self.target_origin[own],
            solution=RidgeSolution(solution.coefficients[:, own], solution.intercept[own]),
            training_error=self.training_error[own],
            spectral=None,
            known_inverse=None,
        )

    @property
    def intercept(self) -> Floats:
        """The constant in the targets' own units, shape (targets,)."""
        return self.solution.intercept + self.target_origin


def solve_landmarks(
    factor: NystromFactor,
    moments: Moments,
    fit_intercept: bool,
    scaled_ridge: Floats,
    target_origin: Floats,
    weight_unit: float = 1.0,
    spectral: SpectralSolver | None = None,
    solved: OneRidge | None = None,
) -> LandmarkFit:
    """Solve at one ridge for every target, unless that is done already.

    By one Cholesky factor if all ridges are equal and no eigendecomposition is given; otherwise, and if the ridge is
    below the rounding of the moments, by an eigendecomposition. d_eff is that of L, and at most `residual_dimension`
    more.
    """
    smallest = float(scaled_ridge.min())
    if solved is None and spectral is None and np.ptp(scaled_ridge) == 0:
        solved = solve_one_ridge(CentredMoments(moments, fit_intercept), smallest)
    moments = moments.on_host()
    if solved is not None:
        solution, error, lower = solved.solution, solved.training_error, solved.effective_dimension
    else:
        spectral = spectral or SpectralSolver(moments, fit_intercept)
        solution, lower = spectral.solution(scaled_ridge), spectral.effective_dimension(smallest)
        error = spectral.training_error(scaled_ridge)
    return LandmarkFit(
        *(factor, moments, fit_intercept, scaled_ridge, target_origin, weight_unit),
        *(solution, error, dimension_bracket(lower, moments, smallest), spectral),
        *((None, None) if solved is None else (solved.size, solved.inverse)),
    )


def dimension_bracket(lower: float, moments: Moments, scaled_ridge: float) -> Bracket:
    """Return bounds on d_eff from that of the landmarks: K - L adds no more than its trace and its rank allow."""
    n = moments.n_rows
    return Bracket(lower, min(float(n), lower + residual_dimension(moments.trace_residual / scaled_ridge, n)))
