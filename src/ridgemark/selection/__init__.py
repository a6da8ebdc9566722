"""Ways to choose landmarks, one file each."""

from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.errors import ParameterError
from ridgemark.selection.auto import Auto
from ridgemark.selection.base import Landmarks, Problem, Selection
from ridgemark.selection.bless import Bless
from ridgemark.selection.count import LandmarkCount, count_landmarks
from ridgemark.selection.diagonal import Diagonal
from ridgemark.selection.given import Given
from ridgemark.selection.kmeans import KMeans
from ridgemark.selection.leverage import Leverage
from ridgemark.selection.rank_leverage import RankLeverage
from ridgemark.selection.recursive import Recursive
from ridgemark.selection.rpcholesky import RPCholesky
from ridgemark.selection.uniform import Uniform

__all__ = [
    "Auto",
    "Bless",
    "Diagonal",
    "Given",
    "KMeans",
    "LandmarkCount",
    "Landmarks",
    "Leverage",
    "Problem",
    "RPCholesky",
    "RankLeverage",
    "Recursive",
    "Selection",
    "Uniform",
    "count_landmarks",
    "make_selection",
]

NAMED: dict[str, type[Selection]] = {
    "auto": Auto,
    "uniform": Uniform,
    "diagonal": Diagonal,
    "leverage": Leverage,
    "recursive": Recursive,
    "bless": Bless,
    "rpcholesky": RPCholesky,
    "kmeans": KMeans,
    "rank_leverage": RankLeverage,
}


def make_selection(selection: Any) -> Selection:
    """Return the selection for a name, a Selection, or an array of points."""
    if isinstance(selection, Selection):
        return selection
    if isinstance(selection, str):
        if selection in NAMED:
            return NAMED[selection]()
        raise ParameterError(
            f"selection must be one of {', '.join(NAMED)}, a Selection or an array of points, got {selection!r}"
        )
    if selection is None or isinstance(selection, type) or (np.ndim(selection) < 2 and not sparse.issparse(selection)):
        raise ParameterError(
            f"selection must be a name, a Selection object or a 2-d array of points, got {selection!r}; "
            "row numbers are given as Given(indices=...)"
        )
    return Given(points=selection)
