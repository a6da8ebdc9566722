"""`python -m ridgemark`."""

from ridgemark.cli import main

main()
