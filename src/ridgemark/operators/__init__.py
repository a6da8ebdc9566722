"""Matrices with one row for each row of the data, as operators: C, B and K; held only where they fit into memory."""

from ridgemark.operators.factor import NystromFactor, in_order, nystrom_factor
from ridgemark.operators.held import hold_on_device
from ridgemark.operators.kernel_matrix import KernelMatrix
from ridgemark.operators.row_matrix import (
    Cross,
    CrossTask,
    Features,
    FeatureTask,
    check_diagonal,
    cross_block,
    diagonal_block,
    feature_block,
    hold_features,
    kernel_diagonal,
)
from ridgemark.operators.weighting import ShiftedInverse, Weighting
