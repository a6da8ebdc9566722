"""Matrices with one row for each row of the data, as operators: C, B and K; held only where they fit into memory."""

from ridgemark.operators.blocks import CrossTask, FeatureTask, cross_block, diagonal_block, feature_block
from ridgemark.operators.factor import NystromFactor, in_order, nystrom_factor
from ridgemark.operators.held import hold_on_device
from ridgemark.operators.kernel_matrix import KernelMatrix, kernel_diagonal
from ridgemark.operators.row_matrix import Cross, Features, hold_features
from ridgemark.operators.weighting import ShiftedInverse, Weighting
