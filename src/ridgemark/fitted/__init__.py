"""What a fit knows: frozen records of read-only arrays.

An estimator holds one of them and its parameters. A method that changes the fit makes a new record and assigns it in
one statement, so that a model is never half of one fit and half of another.
"""

from ridgemark.fitted.form import Form, Targets
from ridgemark.fitted.frozen import read_only
from ridgemark.fitted.left_out import Classes, ClassScores, LeftOutRows, LeftOutTargets
from ridgemark.fitted.model import (
    Choice,
    FittedExact,
    FittedFeatures,
    FittedModel,
    Function,
    RowFacts,
    Solution,
    Tolerance,
)
from ridgemark.fitted.run import RunRecord
