"""Models in one file: a safetensors file of arrays and JSON, read by the types of the records it holds.

A file cannot choose code to run: a class is looked up by name among those the caller allows, the records state every
name and type, rules their shapes and ranges, and anything else is a `ModelFileError`.
"""

from ridgemark.persistence.container import read_model, write_model
from ridgemark.persistence.decoding import Decoder, Rule, refusal
from ridgemark.persistence.encoding import Encoder
from ridgemark.persistence.files import refusing
