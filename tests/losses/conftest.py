"""The command line, as its own tests run it, and pages without figures."""

from tests.cli.conftest import no_figures, ridgemark

__all__ = ["no_figures", "ridgemark"]
