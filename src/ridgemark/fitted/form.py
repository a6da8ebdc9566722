"""The form of the rows and targets of a fit: numbers and names of columns, and how these become features."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ridgemark.fitted.frozen import Frozen
from ridgemark.tables.schema import Schema, column_names

_Library = Literal["numpy", "torch", "cupy", "array_api_strict"]


@dataclass(frozen=True)
class Targets:
    """The form in which targets were given."""

    count: Annotated[int, "(t)", "> 0"]
    flat: bool  # an array of shape (n,)
    single: bool  # rows and targets in single precision

    def check_record(self) -> None:
        """Refuse what a fit does not make: a file may hold it."""
        if self.flat and self.count > 1:
            raise ValueError("several targets cannot be in one column")


class Form(Frozen):
    """The form of the rows and targets of a fit, in the user's columns."""

    n_features: Annotated[int, "(d)", "> 0"]
    feature_names: Annotated[NDArray[Any] | None, "(d)"]
    targets: Targets
    n_encoded: Annotated[int, "(e)", "> 0"]  # features that the kernel sees
    table: Schema | None  # how columns become features; None where they are features as they are
    arrays: Annotated[str, _Library] = "numpy"  # the library of the rows: "torch" where they were tensors

    def check_record(self) -> None:
        """Refuse what a fit does not make: a file may hold it."""
        columns, features = (len(self.table.fields), len(self.table.encoded_names)) if self.table else (None, None)
        if (columns or self.n_features, features or self.n_features) != (self.n_features, self.n_encoded):
            raise ValueError("the schema does not have the numbers of columns and features of the fit")

    @property
    def used(self) -> list[int]:
        """Positions of the columns that are features; a fit leaves out those of one value, for example."""
        parts = [True] * self.n_features if self.table is None else [field.parts for field in self.table.fields]
        return [j for j, known in enumerate(parts) if known]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the user's columns."""
        return column_names(self.feature_names, self.n_features)

    @property
    def owners(self) -> NDArray[np.intp]:
        """Position of the user's column that each feature comes from."""
        return np.arange(self.n_features) if self.table is None else self.table.owners

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the features that the kernel sees."""
        return column_names(self.feature_names, self.n_features) if self.table is None else self.table.encoded_names
