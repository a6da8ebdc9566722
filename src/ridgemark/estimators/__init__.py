"""The scikit-learn surface."""

from ridgemark.estimators.nystrom_features import NystromFeatures
from ridgemark.estimators.nystrom_ridge import NystromRidge

__all__ = ["NystromFeatures", "NystromRidge"]
