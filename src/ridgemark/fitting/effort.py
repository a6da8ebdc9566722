"""How much work a fit does where nothing else is asked for: evaluations of the tuner, and landmarks."""

from dataclasses import dataclass
from typing import Any

from ridgemark.errors import ParameterError
from ridgemark.tuning import Tuner


@dataclass(frozen=True)
class Effort:
    """The tuner of a fit, and limits on its number of landmarks."""

    tuner: Tuner
    per_dimension: float = 2.0  # landmarks for each effective dimension
    work: float = 1.0  # factor of the largest n p^2 + 4 p^3

    @property
    def limits(self) -> dict[str, float]:
        """What `count_landmarks` takes."""
        return {"per_dimension": self.per_dimension, "work": self.work}


EFFORTS = {
    "fast": Effort(Tuner(rows=1500, landmarks=150, evaluations=25, patience=2), work=1 / 8),
    "default": Effort(Tuner()),
    "high": Effort(Tuner(landmarks=800, evaluations=80), per_dimension=4.0, work=4.0),
}


def effort_of(name: Any) -> Effort:
    """Return the effort of this name."""
    if not (isinstance(name, str) and name in EFFORTS):
        raise ParameterError(f"effort must be one of {', '.join(map(repr, EFFORTS))}, got {name!r}")
    return EFFORTS[name]
