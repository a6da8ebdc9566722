"""Rows in groups, of sizes from one row to more than the landmarks, one with most of the weight."""

import numpy as np


def group_numbers(n_rows, rng, largest):
    """Return the number of every row's group: a group of `largest` rows, some of one row, others of a few."""
    rest = n_rows - largest
    numbers = np.concatenate([np.zeros(largest), rng.integers(1, 1 + rest // 3, rest)]).astype(int)
    return rng.permutation(numbers)


def patients(n_patients=42, rows_each=20, seed=0, offset=1.0, noise=0.3, columns=2):
    """Return rows of patients, whose own columns tell them apart and whose offsets no column explains.

    The first `columns` columns differ between patients only. Returns X, y and the patients' numbers.
    """
    rng = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(n_patients), rows_each)
    own, offsets = rng.normal(size=(n_patients, columns)), offset * rng.normal(size=n_patients)
    t = rng.uniform(-1.0, 1.0, len(numbers))
    y = offsets[numbers] + np.sin(3.0 * t) + noise * rng.normal(size=len(numbers))
    return np.c_[own[numbers], t], y, numbers
