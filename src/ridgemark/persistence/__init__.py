"""Models in one file: a safetensors file of arrays and JSON, read by a fixed schema.

A file cannot choose code to run: a class is looked up by name among those the caller allows, the schema lists every
name, type and shape, and anything else is a `ModelFileError`.
"""

from ridgemark.persistence.container import read_model, write_model
from ridgemark.persistence.encoding import Encoder
from ridgemark.persistence.files import refusing

__all__ = ["Encoder", "read_model", "refusing", "write_model"]
