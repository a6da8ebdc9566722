"""Kernel ridge regression from a few well-chosen landmarks, with its distance from exact."""

__version__ = "0.1.0.dev0"
