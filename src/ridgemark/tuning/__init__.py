"""Tuning: the kernel's family, its bandwidths or its metric, by closed-form leave-one-out."""

from ridgemark.tuning.choice import choose_kernel, make_tuner
from ridgemark.tuning.levels import LEVELS
from ridgemark.tuning.median import median_distance
from ridgemark.tuning.record import Descended, Level, TriedKernel, TuningResult
from ridgemark.tuning.tuner import Tuner

__all__ = [
    "LEVELS",
    "Descended",
    "Level",
    "TriedKernel",
    "Tuner",
    "TuningResult",
    "choose_kernel",
    "make_tuner",
    "median_distance",
]
