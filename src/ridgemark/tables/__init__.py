"""Columns to features: a schema is learned once, saved with the model, and applied to every later table."""

from ridgemark.tables.encoding import SchemaEncoder
from ridgemark.tables.learning import encoded_by_content, learn_schema, warn_of_row_numbers
from ridgemark.tables.schema import Field, Schema, schema_of_numbers
