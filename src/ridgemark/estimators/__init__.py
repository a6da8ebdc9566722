"""The scikit-learn surface."""

from ridgemark.estimators.exact_kernel_ridge import ExactKernelRidge
from ridgemark.estimators.nystrom_classifier import NystromClassifier
from ridgemark.estimators.nystrom_features import NystromFeatures
from ridgemark.estimators.nystrom_regressor import NystromRegressor
from ridgemark.estimators.nystrom_ridge import NystromRidge

__all__ = ["ExactKernelRidge", "NystromClassifier", "NystromFeatures", "NystromRegressor", "NystromRidge"]
