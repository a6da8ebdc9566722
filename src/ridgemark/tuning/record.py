"""What tuning did: the levels tried, how each was judged, and which was chosen."""

from dataclasses import dataclass, field

from ridgemark.backends import Floats


@dataclass(frozen=True, eq=False)
class TriedKernel:
    """A kernel family with the best of the lengths tried for it.

    Errors are RMS, in standard deviations of the target (with several targets, of their mean square).
    """

    kernel: str
    factor: float  # the bandwidth over the median distance, or over the one tuned
    error: float


@dataclass(frozen=True, eq=False)
class Descended:
    """One descent; errors as in `TriedKernel`."""

    level: str
    kernel: str
    start: str  # the metric it started from
    judged_error: float  # the best on the judging rows
    loo_errors: Floats  # (evaluations,): leave-one-out on the tuning rows, one for each evaluation
    looks: Floats  # (looks, 2): evaluations before a look at the judging rows, and the error on these


@dataclass(frozen=True, eq=False)
class Level:
    """The best metric of one level, and why it was taken or not."""

    level: str
    kernel: str  # the family
    judged_error: float
    gain: float  # share of the judged error that it saves over the level chosen before it
    standard_errors: float  # paired gain in squared error, in standard errors
    better: float  # share of the judging rows that it predicts better
    taken: bool


@dataclass(frozen=True, eq=False)
class TuningResult:
    """How kernel and metric were tuned.

    Attributes
    ----------
    level : {"shared", "per_feature", "metric"}
        What was chosen: one bandwidth for standardised columns, one bandwidth per feature, or a matrix.
    kernel : str
        The kernel family.
    reason : str
        Why this level.
    n_tuning, n_judging, n_landmarks : int
        Numbers of tuning rows, of judging rows, and of landmarks of the small models.
    tried : tuple of TriedKernel
        The families at the first level, best first, with their leave-one-out errors.
    descents : tuple of Descended
        Every descent with its trajectory.
    levels : tuple of Level
        How each level was judged. A family that is not a function of the distance, such as the Laplacian, comes last
        with its own bandwidths; it and the kernel chosen before it are compared with more rows and landmarks.
    compared : tuple of TriedKernel
        The families with the metric chosen, judged once more with more rows and landmarks; if the number of the fit's
        landmarks is given, with the error expected for this number.
    uniform_landmarks : bool
        Whether uniform landmarks predicted the judging rows better by 1% or more than those by randomly pivoted
        Cholesky; `selection="auto"` then draws uniform landmarks.
    n_evaluations : int
        Evaluations of the leave-one-out error with its gradient.
    seconds : float
        Time; not saved.
    """

    level: str
    kernel: str
    reason: str
    n_tuning: int
    n_judging: int
    n_landmarks: int
    tried: tuple[TriedKernel, ...]
    descents: tuple[Descended, ...]
    levels: tuple[Level, ...]
    compared: tuple[TriedKernel, ...]
    uniform_landmarks: bool
    n_evaluations: int
    seconds: float | None = field(default=None, compare=False, metadata={"saved": False})

    @property
    def judged_error(self) -> float | None:
        """The error on the judging rows of the level taken; None if no level was judged."""
        return next((one.judged_error for one in reversed(self.levels) if one.taken), None)
