"""Features whose inner products approximate a kernel, from landmarks, as a scikit-learn transformer."""

from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ridgemark.errors import ParameterError
from ridgemark.estimators.base import LandmarkEstimator
from ridgemark.estimators.cautions import warn_of_few_rows
from ridgemark.estimators.computing import FittedName, in_range, lazy_on_dask
from ridgemark.estimators.hints import stores_parameters
from ridgemark.fitted import FittedFeatures
from ridgemark.fitting import rows_of_fit, settle_kernel
from ridgemark.fitting.stages import draw_landmarks, make_problem
from ridgemark.kernels.base import count_rows
from ridgemark.operators import Cross, nystrom_factor
from ridgemark.sampling import make_generator


class NystromFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LandmarkEstimator):
    """Features `b(x) = k(x, Z) W^-1/2` of landmarks Z, for which `b(x)' b(z)` approximates `k(x, z)`.

    W is the kernel of the landmarks with each other. Replaces scikit-learn's `Nystroem`. Landmarks are chosen as in
    `NystromRidge`, the rank rule takes the scale of the kernel into account, and a precomputed kernel may have fewer
    landmarks than rows.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        The kernel; it is not tuned, since there are no targets.
    bandwidth : "median", float or array of shape (n_features,), default="median"
        The kernel's bandwidth.
    ridge : float, default=1e-3
        Regularisation lambda at which `n_landmarks="auto"` counts dimensions, and at which "bless" and
        `Leverage(match_ridge=False)` take scores; other selections of a given number do not depend on it.
    n_landmarks : int or "auto", default=100
        Number of landmarks and of features.
    selection : str, Selection or array of points, default="auto"
        How landmarks are chosen.
    categorical_features : "from_dtype", list of names or positions, mask, or None, default="from_dtype"
        Which columns of a table are categories, as for `NystromRidge`.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        As for `NystromRidge`.
    memory_budget : int, optional
        Bytes for the blocks of a pass; 1 GiB when not given.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all draws.

    Attributes
    ----------
    components_ : array or sparse matrix of shape (p, n_encoded)
        The landmarks.
    component_indices_ : array of shape (p,)
        Their row numbers in the training data; None if they are not training rows.
    normalization_ : array of shape (p, p)
        The symmetric root `W^-1/2`, pseudo-inverse where W is singular.
    encoded_names_ : list of str
        Names of the columns of `components_`.
    kernel_ : Kernel
        The kernel used, with its bandwidth.
    n_passes_, n_kernel_evaluations_ : int
        Passes over the rows and kernel entries the fit took.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import NystromFeatures
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> B = NystromFeatures(bandwidth=2.0, n_landmarks=80, random_state=0).fit_transform(X)
    >>> K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * 2.0**2))
    >>> bool(abs(B @ B.T - K).max() < 1e-3)
    True
    """

    _supervised = False
    kernel_ = FittedName(lambda model: model.cross_kernel.kernel)
    components_ = FittedName(lambda model: model.components)
    component_indices_ = FittedName(lambda model: model.component_indices)
    normalization_ = FittedName(lambda model: model.normalization)
    _n_features_out = FittedName(lambda model: count_rows(model.components))  # which scikit-learn reads

    @stores_parameters
    def __init__(
        self,
        kernel="gaussian",
        *,
        bandwidth="median",
        ridge=1e-3,
        n_landmarks=100,
        selection="auto",
        categorical_features="from_dtype",
        device="cpu",
        memory_budget=None,
        random_state=None,
    ):
        """Take the parameters; they are checked by `fit`."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:  # type: ignore[override]
        """Choose landmarks.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, n_features), of Dask too, or RowSource
            The rows; with `kernel="precomputed"`, the kernel of all rows with each other.
        y : ignored
        sample_weight : array of shape (n,), optional
            Relative weights; 2 counts a row twice, zero leaves it out.
        groups : None
            Refused: features are chosen without targets, and no row is left out.

        Returns
        -------
        self
        """
        if groups is not None or getattr(X, "has_groups", False):
            raise ParameterError(
                "NystromFeatures leaves no rows out and takes no groups; give them to the next estimator"
            )
        return super().fit(X, None, sample_weight)

    @lazy_on_dask
    def transform(self, X: Any) -> NDArray[Any]:
        """Return the features of rows, shape (n, p), in single precision where the rows are.

        With `kernel="precomputed"` the rows are their kernel values with all training rows.
        """
        self._require_fit()
        source = self._rows(X)
        features = Cross(self._passes(source), self._model.cross_kernel) @ self._model.normalization
        self._warn_of_unseen(source)
        remedy = f"multiply the kernel by a smaller factor, or give rows in double precision in place of {source.dtype}"
        return in_range(features.astype(source.dtype, copy=False), "the feature", remedy)

    def _recipe(self):
        recipe = super()._recipe()
        if not recipe.one_ridge:
            raise ParameterError(
                f"ridge must be a positive number here, where no targets could choose it; got {self.ridge!r}"
            )
        return recipe

    def _model_of(self, recipe, passes, form, random_state):
        """Return the features of landmarks among the rows of these passes."""
        rng = make_generator(random_state)
        rows = rows_of_fit(passes, recipe)
        problem = make_problem(rows, settle_kernel(rows, recipe, rng), recipe, rng)
        landmarks, count = draw_landmarks(problem, recipe, rng)
        factor = nystrom_factor(problem.kernel, landmarks.points, landmarks.indices)
        warn_of_few_rows(self.n_landmarks, count)
        chosen = factor.cross_kernel, landmarks.points, landmarks.indices
        return FittedFeatures(form, *chosen, factor.symmetric_whitener, passes.cost)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
