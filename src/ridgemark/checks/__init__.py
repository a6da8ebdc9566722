"""A look at a table before any fit: what is seen in it, why that matters, and which option answers it."""

from typing import Any

import numpy as np

from ridgemark.checks.codes import find_codes
from ridgemark.checks.columns import find_constants, find_far_values, find_identifiers
from ridgemark.checks.drift import find_differences
from ridgemark.checks.groups import find_groups
from ridgemark.checks.leaks import find_leaks
from ridgemark.checks.record import DataCheck, Finding
from ridgemark.checks.repeats import find_repeats
from ridgemark.checks.table import Column, Table, read_table
from ridgemark.checks.targets import find_in_target
from ridgemark.checks.texts import find_texts
from ridgemark.errors import DataError
from ridgemark.rows.places import listed

__all__ = ["DataCheck", "Finding", "check"]

_OF_COLUMNS = find_identifiers, find_constants, find_texts, find_far_values, find_codes, find_leaks


def check(X: Any, y: Any = None, *, new: Any = None, groups: Any = None) -> DataCheck:
    """Look at a table before a fit, in seconds, and say what may spoil it; nothing is changed.

    Looked for are identifiers and columns that number the rows, constant columns, repeated rows, rows of nearly the
    same features with different targets, integers that are codes, text that is money or per cent, values far beyond the
    others, columns that know the target too well, groups of rows that are alike, skewed targets and rare labels. Of a
    table of more than some 4 million cells, stretches of rows spread evenly over it are read.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame, Arrow table or stream, path of a file, or RowSource
        The table.
    y : array of shape (n,), or name of a column, optional
        The target: numbers, or labels of classes. Without one, fewer things can be seen. A RowSource brings its own.
    new : same as X, optional
        A second table, such as the rows to predict: levels that it has and X lacks, and values that have moved.
    groups : array of shape (n,), or name of a column, optional
        Which group, such as a patient, each row belongs to: says how much larger the error is for new groups. Without
        it, columns are looked for whose values are such groups.

    Returns
    -------
    DataCheck
        Prints as one line for each finding, with the option that answers it.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import check
    >>> rng = np.random.default_rng(0)
    >>> area, number = rng.uniform(50, 200, 300), rng.permutation(300) + 1000
    >>> table = {"number": number, "area": area, "roof": np.full(300, "tile")}
    >>> for finding in check(table, 3 * area + rng.normal(0, 40, 300)).findings:
    ...     print(finding.fault, *finding.columns)
    identifier number
    constant roof
    """
    table = read_table(X, np.asarray(y) if isinstance(y, list | tuple) else y)
    labels = None if groups is None else _groups(table, groups)
    findings = [finding for look in _OF_COLUMNS for finding in look(table)]
    # The others see the table as if these findings were heeded: no column knows the target, codes are categories.
    heeded = table.without(_columns(findings, "leak")).with_levels(_columns(findings, "codes"))
    findings += find_repeats(heeded)
    findings += find_in_target(heeded)
    findings += find_groups(heeded, labels)
    if new is not None:
        codes = _columns(findings, "codes")
        findings += find_differences(table.with_levels(codes), read_table(new).with_levels(codes))
    return DataCheck(tuple(findings), table.n_rows, len(table.columns), table.n_looked_at)


def _columns(findings: list[Finding], fault: str) -> list[str]:
    return [name for finding in findings if finding.fault == fault for name in finding.columns]


def _groups(table: Table, groups: Any) -> Column:
    """Return the groups at the rows that are looked at."""
    if isinstance(groups, str):
        if groups in table.names:
            return table.columns[table.names.index(groups)]
        raise DataError(f"groups: there is no column {groups!r} in the table; its columns are {listed(table.names)}")
    labels = np.asarray(groups)
    if labels.ndim != 1 or len(labels) != table.n_rows + table.n_skipped:
        raise DataError(
            f"groups must be a column, or one label for each of {table.n_rows + table.n_skipped:,} rows; got shape "
            f"{labels.shape}"
        )
    return read_table({"groups": labels[table.rows]}).columns[0]
