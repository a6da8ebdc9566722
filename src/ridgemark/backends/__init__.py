"""The few array operations that differ between array libraries.

Arithmetic operators, slicing and assignment mean the same to every array type and are used as they are; what is
spelled differently is a method of `Backend`. Callers name the backend they want; nothing is guessed from a type.
"""

from ridgemark.backends.base import Array, Backend
from ridgemark.backends.numpy import NUMPY

__all__ = ["NUMPY", "Array", "Backend"]
