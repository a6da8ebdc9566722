"""The regressors of `benchmarks/accuracy.py`: this package's and its peers, made for one set of training rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ridgemark import ExactKernelRidge, NystromRidge
from ridgemark.backends import Floats
from ridgemark.fitting.recipe import default_ridges
from ridgemark.tuning import median_distance

_PROCESS_ROWS, _PROCESS_STEPS = 2000, 50  # rows that a Gaussian process is fitted to, and steps of its search
_EXACT_TOLERANCE = 1e-3  # in standard deviations of y


class Method(NamedTuple):
    """A regressor: its heading, what makes it from seed, training rows and targets, and the package it needs."""

    heading: str
    make: Callable[[int, Floats, Floats], Any]
    package: str = "sklearn"


def nystroem(X: Floats, seed: int) -> Any:
    """Return scikit-learn's `Nystroem(1000) + RidgeCV` with the median bandwidth and our ridges."""
    count = min(1000, len(X))
    bandwidth = median_distance(X[np.random.default_rng(seed).choice(len(X), count, replace=False)])
    return make_pipeline(
        Nystroem(gamma=1 / (2 * bandwidth**2), n_components=count, random_state=seed),
        RidgeCV(alphas=len(X) * default_ridges(1.0)),
    )


class _GaussianProcess:
    """scikit-learn's Gaussian process with one length scale per feature, on 2,000 of the rows, standardised."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Floats, y: Floats) -> None:
        # From the distance of standardised rows: with short length scales all is noise, and the search stays there.
        scales = np.full(X.shape[1], np.sqrt(X.shape[1]))
        kernel = ConstantKernel() * RBF(scales, (1e-2, 1e4)) + WhiteKernel(0.1)
        process = GaussianProcessRegressor(kernel, optimizer=_some_steps, normalize_y=True, random_state=self.seed)
        self.model = make_pipeline(StandardScaler(), process).fit(X[:_PROCESS_ROWS], y[:_PROCESS_ROWS])

    def predict(self, X: Floats) -> Floats:
        return np.concatenate([self.model.predict(part) for part in np.array_split(X, len(X) // 5000 + 1)])


def _some_steps(criterion: Callable[..., Any], start: Floats, bounds: Any) -> tuple[Floats, float]:
    """Minimise as scikit-learn does, in fewer steps: with many columns each takes seconds."""
    found = minimize(criterion, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _PROCESS_STEPS})
    return found.x, found.fun


class _RecursiveFeatureMachine:
    """xRFM with its defaults, on a GPU where there is one, standardised; a fifth of the rows validate."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Floats, y: Floats) -> None:
        import torch
        import xrfm

        self.columns, self.targets = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tensor: Callable[[Floats], Any] = lambda rows: torch.from_numpy(rows).float().to(device)
        self.model = xrfm.xRFM(device=device, tuning_metric="mse", random_state=self.seed)
        rows = [self.tensor(self.columns.transform(X)), self.tensor(self.targets.transform(y[:, None]))]
        cut = len(X) * 4 // 5
        self.model.fit(*(part[:cut] for part in rows), *(part[cut:] for part in rows))

    def predict(self, X: Floats) -> Floats:
        predicted = np.asarray(self.model.predict(self.tensor(self.columns.transform(X))))
        return np.asarray(self.targets.inverse_transform(predicted.reshape(-1, 1))[:, 0])


def _light_boosting(seed: int) -> Any:
    """Return LightGBM with its defaults but the number of trees, which a fifth of the rows chooses."""
    import lightgbm

    class StoppedEarly(lightgbm.LGBMRegressor):
        def fit(self, X: Floats, y: Floats) -> Any:
            cut = len(X) * 4 // 5
            stop = lightgbm.early_stopping(50, verbose=False)
            return super().fit(X[:cut], y[:cut], eval_set=[(X[cut:], y[cut:])], callbacks=[stop])

    return StoppedEarly(n_estimators=10_000, random_state=seed, verbose=-1)


def _ordered_boosting(seed: int) -> Any:
    import catboost

    return catboost.CatBoostRegressor(random_seed=seed, verbose=False, allow_writing_files=False)


def _network(seed: int) -> Any:
    """Return RealMLP with its tuned defaults, on a GPU where there is one."""
    import torch
    from pytabkit import RealMLP_TD_Regressor

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return RealMLP_TD_Regressor(device=device, random_state=seed, n_cv=1, verbosity=0)


METHODS = {
    "default": Method("`NystromRidge()`", lambda seed, X, y: NystromRidge(random_state=seed)),
    "many": Method("`n_landmarks=5000`", lambda seed, X, y: NystromRidge(n_landmarks=5000, random_state=seed)),
    "exact": Method(
        "`ExactKernelRidge()`",
        lambda seed, X, y: ExactKernelRidge(tol=_EXACT_TOLERANCE * float(y.std()), random_state=seed),
    ),
    "median": Method('`bandwidth="median"`', lambda seed, X, y: NystromRidge(bandwidth="median", random_state=seed)),
    "boosting": Method("HistGradientBoosting", lambda seed, X, y: HistGradientBoostingRegressor(random_state=seed)),
    "lightgbm": Method("LightGBM, early stopping", lambda seed, X, y: _light_boosting(seed), "lightgbm"),
    "catboost": Method("CatBoost", lambda seed, X, y: _ordered_boosting(seed), "catboost"),
    "realmlp": Method("RealMLP", lambda seed, X, y: _network(seed), "pytabkit"),
    "nystroem": Method(
        "Nystroem(1000) + RidgeCV",
        lambda seed, X, y: make_pipeline(StandardScaler(), nystroem(StandardScaler().fit_transform(X), seed)),
    ),
    "process": Method("Gaussian process, 2,000 rows", lambda seed, X, y: _GaussianProcess(seed)),
    "xrfm": Method("xRFM", lambda seed, X, y: _RecursiveFeatureMachine(seed), "xrfm"),
}
"""All methods by name."""
