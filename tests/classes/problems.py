"""Labelled rows whose log-odds are smooth functions."""

import numpy as np


def labelled(n, n_classes, seed=0, sharpness=2.0):
    """Rows of two columns, and labels drawn with the probabilities of smooth functions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    eta = sharpness * np.stack([np.sin(X @ rng.normal(size=2) + k) for k in range(n_classes)], axis=1)
    p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    return X, (p.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)


def indicators(labels, n_classes):
    return labels[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[labels]
