"""What passes cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Passes, kernel entries and time; costs add.

    Attributes
    ----------
    n_passes : int
        How often all rows were read.
    kernel_entries : int
        Kernel values evaluated.
    seconds : float
        Time the passes took.
    waited : float
        Part of that time in which workers waited for rows; one idle worker of m counts 1/m.
    """

    n_passes: int = 0
    kernel_entries: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.n_passes + other.n_passes,
            self.kernel_entries + other.kernel_entries,
            self.seconds + other.seconds,
            self.waited + other.waited,
        )

    @property
    def waiting_share(self) -> float:
        """Share of the time, in [0, 1], in which workers waited for rows."""
        return min(1.0, self.waited / self.seconds) if self.seconds > 0 else 0.0
