"""A simulated robot arm: the acceleration of its hand from 32 inputs, similar to the pumadyn data sets."""

from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Flags, Floats

JOINTS = 8
TARGET = "acceleration"
NOISE = 0.1
_ROLES = ("angle", "velocity", "torque", "load")
_EFFECTIVE = [6, 7, 15, 23, 31]  # angles 7 and 8, velocity 8, torque 8, load 8
_RARE = 0.04  # share of the states outside the working range
_WORKING = 0.25  # size of the working range of an effective input, whose full range is 1


@dataclass(frozen=True, eq=False)
class ArmRows:
    """Inputs between -1 and 1, the true acceleration, the measured acceleration, and which states are rare."""

    inputs: Floats  # (n, 32)
    signal: Floats  # (n,)
    measured: Floats  # (n,)
    rare: Flags  # (n,)

    def table(self) -> dict[str, Floats]:
        """Return the columns by name, the measured target last."""
        names = [f"{role} {joint}" for role in _ROLES for joint in range(1, JOINTS + 1)]
        return dict(zip(names, self.inputs.T, strict=True)) | {TARGET: self.measured}


def arm_rows(n_rows: int, rng: np.random.Generator) -> ArmRows:
    """Draw states of the arm and measure the acceleration with normal noise.

    96% of the states have the effective inputs within a quarter of their range, 4% anywhere in it; the other inputs
    are uniform.
    """
    inputs = rng.uniform(-1.0, 1.0, (n_rows, JOINTS * len(_ROLES)))
    rare = rng.random(n_rows) < _RARE
    inputs[:, _EFFECTIVE] *= np.where(rare, 1.0, _WORKING)[:, None]
    signal = acceleration(inputs)
    return ArmRows(inputs, signal, signal + NOISE * rng.normal(size=n_rows), rare)


def acceleration(inputs: Floats) -> Floats:
    """Return `(2 torque - tanh(2 velocity) - weight cos(direction))/(3/4 + weight/4)` at the last joint.

    The hand points in the direction `1.6 + 3.6 angle_8 + 1.8 angle_7` and weighs `1 + load_8/2`. The other 27 inputs
    have no effect; the fit does not know this.
    """
    angle, velocity, torque, load = np.split(inputs, len(_ROLES), axis=1)
    direction = 1.6 + 3.6 * angle[:, -1] + 1.8 * angle[:, -2]
    weight = 1.0 + 0.5 * load[:, -1]
    force = 2.0 * torque[:, -1] - np.tanh(2.0 * velocity[:, -1]) - weight * np.cos(direction)
    return np.asarray(force / (0.75 + 0.25 * weight))
