"""Row sources: arrays, files and data frames as numbered blocks of checked floats."""

from ridgemark.rows.arrays import ArrayRows
from ridgemark.rows.base import DEFAULT_MEMORY_BUDGET, BaseRows, Block, RowSource, block_rows_for, row_weights
from ridgemark.rows.csv import CsvRows
from ridgemark.rows.open import open_rows
from ridgemark.rows.tables import refuse_large_integers
