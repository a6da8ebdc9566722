"""Row sources: arrays, files and data frames as numbered blocks of checked floats."""

from ridgemark.rows.arrays import ArrayRows
from ridgemark.rows.base import DEFAULT_MEMORY_BUDGET, BaseRows, Block, RowSource, block_rows_for, dense, row_weights
from ridgemark.rows.column import without_features
from ridgemark.rows.csv import CsvRows
from ridgemark.rows.dask import DaskRows, computed, is_dask
from ridgemark.rows.distinct import DistinctRows, RowGroups, find_distinct, group_rows, row_hashes, share_in_common
from ridgemark.rows.labels import text_labels
from ridgemark.rows.open import open_rows
from ridgemark.rows.places import listed, shown
from ridgemark.rows.tables import refuse_large_integers
