"""Tuning: the parts of the kernel and their metric, by closed-form leave-one-out."""

from ridgemark.tuning.choice import choose_kernel, make_tuner
from ridgemark.tuning.coordinates import LEVELS
from ridgemark.tuning.median import median_distance
from ridgemark.tuning.record import Baselines, Descended, Level, Part, TuningResult
from ridgemark.tuning.tuner import Tuner

__all__ = [
    "LEVELS",
    "Baselines",
    "Descended",
    "Level",
    "Part",
    "Tuner",
    "TuningResult",
    "choose_kernel",
    "make_tuner",
    "median_distance",
]
