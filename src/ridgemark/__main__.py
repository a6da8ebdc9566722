"""The command `ridgemark`, also as `python -m ridgemark`."""

import signal
import sys

from ridgemark.interrupts import INTERRUPTED, ending_at_once


def main() -> None:
    """Run the command; Ctrl-C is one line and exit code 130, also while modules are imported."""
    try:
        with ending_at_once():
            from ridgemark.cli import main as run

        run()
    except KeyboardInterrupt:
        print("ridgemark: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done; only the interpreter has to end


if __name__ == "__main__":
    main()
