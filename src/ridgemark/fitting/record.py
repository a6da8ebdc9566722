"""What a fit found, stage by stage."""

from dataclasses import dataclass

from ridgemark.certificates import Certificate
from ridgemark.fitted import Tolerance
from ridgemark.fitting.kernel import FitKernel
from ridgemark.fitting.rows import FitRows
from ridgemark.fitting.squares import Solved
from ridgemark.fitting.sums import Sums
from ridgemark.path import KeptRows
from ridgemark.selection import LandmarkCount, Landmarks, Problem


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found, stage by stage."""

    rows: FitRows
    kernel: FitKernel
    problem: Problem  # for which landmarks were drawn
    landmarks: Landmarks
    count: LandmarkCount
    sums: Sums
    kept: KeptRows | None  # rows for leave-one-out, when all others are gone
    solved: Solved
    certificate: Certificate | None = None  # of `certify_with`
    tolerance: Tolerance | None = None
