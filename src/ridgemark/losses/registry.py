"""The losses by their names."""

from typing import Any

from ridgemark.errors import ParameterError
from ridgemark.losses.huber import Huber
from ridgemark.losses.logistic import Logistic, Softmax
from ridgemark.losses.loss import Loss, SquaredLoss
from ridgemark.losses.quantile import Quantile
from ridgemark.losses.rates import Gamma, Poisson

OF_NUMBERS: dict[str, type[Loss]] = {kind.name: kind for kind in (Huber, Poisson, Gamma, Quantile)}
LOSSES: dict[str, type[Loss]] = OF_NUMBERS | {kind.name: kind for kind in (SquaredLoss, Logistic, Softmax)}


def make_loss(loss: Any, quantiles: Any = None) -> Loss:
    """Return the loss that a name or an object stands for, with the levels of quantiles."""
    if isinstance(loss, str) and loss in OF_NUMBERS:
        made = OF_NUMBERS[loss]()
    elif isinstance(loss, Loss) and not isinstance(loss, SquaredLoss | Logistic | Softmax):
        made = loss
    else:
        names = ", ".join(map(repr, OF_NUMBERS))
        raise ParameterError(
            f"loss must be one of {names}, or a loss of ridgemark.losses for numbers, got {loss!r}; for squared errors "
            "use NystromRidge, for labels NystromClassifier"
        )
    if quantiles is None:
        return made
    if not isinstance(made, Quantile):
        raise ParameterError(f'quantiles are for loss="quantile"; got quantiles={quantiles!r} with loss={loss!r}')
    try:
        levels = tuple(quantiles)
    except TypeError:
        raise ParameterError(
            f"quantiles must be a list of levels, such as [0.1, 0.5, 0.9], got {quantiles!r}"
        ) from None
    return Quantile(levels, made.width)
