"""What the columns do to predictions: effects of each at rows, and their averages with errors."""

from ridgemark.effects.averages import (
    average_effects,
    effect_deviations,
    effect_values,
    predicted_effects,
    summarise_effects,
    summary_of,
)
from ridgemark.effects.columns import Effect, effects_of_columns, effects_of_table
from ridgemark.effects.summary import EffectsSummary
