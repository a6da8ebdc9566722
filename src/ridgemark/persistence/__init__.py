"""Models in one file: a safetensors file of arrays and JSON, read by a fixed schema.

A file chooses no code: a class is looked up by name among those the caller allows, every name, type and shape is one
that the schema lists, and anything else is a `ModelFileError`.
"""

from ridgemark.persistence.container import read_model, write_model
from ridgemark.persistence.encoding import Encoder
from ridgemark.persistence.files import refusing

__all__ = ["Encoder", "read_model", "refusing", "write_model"]
