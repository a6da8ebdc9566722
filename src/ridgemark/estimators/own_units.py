"""Effects on a transformed target, in the units of the target."""

import numpy as np

from ridgemark.rows import ArrayRows, dense


def effects_in_own_units(values, mapped, transform, effects, function, source):
    """Return effects in units of the target, (n, effects, 1).

    Of a derivative by the chain rule, `dP/df df/dx` with P the way back from the mapped target f; a difference between
    two settings is that of P at both. `mapped` has f at the rows, and `function` gives it at others.
    """
    result = values * transform.slope(mapped)[:, None]
    changed = [k for k, effect in enumerate(effects) if effect.before]
    if changed:
        features = dense(source.take(np.arange(source.n_rows)).features).astype(float)
        for k in changed:
            before = features.copy()
            before[:, list(effects[k].columns)] = effects[k].before
            first = function(ArrayRows(before))
            result[:, k] = transform.predicted(first + values[:, k]) - transform.predicted(first)
    return result
