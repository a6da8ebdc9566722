"""Uncertainty of predictions: standard deviations, and intervals from leave-one-out residuals."""

from ridgemark.intervals.calibration import (
    Calibration,
    CalibrationGroups,
    CalibrationRows,
    CalibrationSets,
    calibration_of,
)
from ridgemark.intervals.covariance import noise_terms
from ridgemark.intervals.deviations import noise_variance, standard_deviations
from ridgemark.intervals.ends import interval_ends
from ridgemark.intervals.noise import NoiseLevel, constant_noise
from ridgemark.intervals.quantiles import check_coverage, quantile_levels, rows_needed
