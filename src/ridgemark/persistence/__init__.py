"""Models in one file: a safetensors file of arrays and JSON, read by the types of the records it holds.

A file cannot choose code to run: a class is looked up by name in the schema, the annotations of its fields state types,
shapes and ranges, and anything else is a `ModelFileError`.
"""

from ridgemark.persistence.checking import Checker
from ridgemark.persistence.container import read_model, write_model
from ridgemark.persistence.decoding import Decoder
from ridgemark.persistence.encoding import Encoder
from ridgemark.persistence.files import refusing
from ridgemark.persistence.schema import OBJECTS, SCHEMA, Contents
