"""The ridge from the data: closed-form leave-one-out, or generalised cross-validation, over a whole path of ridges."""

from ridgemark.path.downhill import walk_downhill
from ridgemark.path.kept_rows import KeptRows, keep_rows
from ridgemark.path.left_out import LeaveOneOut, leave_one_out, left_out_errors
from ridgemark.path.loss_search import LossPath, LossSearch, leave_out, left_out_predictor, rows_of_outcomes
from ridgemark.path.ridges import RidgePath, Ridges, loo_path, ridge_path, searched_path
