"""The command line, as its own tests run it."""

from tests.cli.conftest import ridgemark

__all__ = ["ridgemark"]
