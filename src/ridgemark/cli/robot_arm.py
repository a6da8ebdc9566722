"""A simulated robot arm: the acceleration of its hand from 32 inputs, similar to the pumadyn data sets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

JOINTS = 8
TARGET = "acceleration"
NOISE = 0.3
_ROLES = ("angle", "velocity", "torque", "load")


@dataclass(frozen=True, eq=False)
class ArmRows:
    """Inputs between -1 and 1, the true acceleration, and the measured acceleration."""

    inputs: Floats  # (n, 32)
    signal: Floats  # (n,)
    measured: Floats  # (n,)

    def table(self) -> dict[str, Floats]:
        """Return the columns by name, the measured target last."""
        names = [f"{role} {joint}" for role in _ROLES for joint in range(1, JOINTS + 1)]
        return dict(zip(names, self.inputs.T, strict=True)) | {TARGET: self.measured}


def arm_rows(n_rows: int, rng: np.random.Generator) -> ArmRows:
    """Draw states of the arm uniformly and measure the acceleration with normal noise."""
    inputs = rng.uniform(-1.0, 1.0, (n_rows, JOINTS * len(_ROLES)))
    signal = acceleration(inputs)
    return ArmRows(inputs, signal, signal + NOISE * rng.normal(size=n_rows))


def acceleration(inputs: Floats) -> Floats:
    """Return `(2 torque - tanh(velocity) - weight cos(direction))/(3/4 + weight/4)` at the last joint.

    The hand points in the direction `0.8 + 0.6 angle_8 + 0.3 angle_7` and weighs `1 + load_8/2`. The other inputs
    have no effect; the fit does not know this.
    """
    angle, velocity, torque, load = np.split(inputs, len(_ROLES), axis=1)
    direction = 0.8 + 0.6 * angle[:, -1] + 0.3 * angle[:, -2]
    weight = 1.0 + 0.5 * load[:, -1]
    force = 2.0 * torque[:, -1] - np.tanh(velocity[:, -1]) - weight * np.cos(direction)
    return np.asarray(force / (0.75 + 0.25 * weight))
