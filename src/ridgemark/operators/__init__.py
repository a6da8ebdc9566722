"""Matrices with one row for each row of the data, as operators: C, B and K; held only where they fit into memory."""

from ridgemark.operators.blocks import cross_block, feature_block
from ridgemark.operators.cross import Cross
from ridgemark.operators.factor import NystromFactor, nystrom_factor
from ridgemark.operators.features import Features
from ridgemark.operators.kernel_matrix import KernelMatrix, kernel_diagonal
from ridgemark.operators.rotated import RotatedFeatures
from ridgemark.operators.shifted import ShiftedInverse
from ridgemark.operators.weighting import Weighting

__all__ = [
    "Cross",
    "Features",
    "KernelMatrix",
    "NystromFactor",
    "RotatedFeatures",
    "ShiftedInverse",
    "Weighting",
    "cross_block",
    "feature_block",
    "kernel_diagonal",
    "nystrom_factor",
]
