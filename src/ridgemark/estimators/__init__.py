"""The scikit-learn surface."""

from ridgemark.estimators.nystrom_ridge import NystromRidge

__all__ = ["NystromRidge"]
