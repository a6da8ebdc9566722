"""The command `ridgemark`, also as `python -m ridgemark`."""

import signal
import sys


def main() -> None:
    """Run the command; Ctrl-C is one line and exit code 130, also while modules are imported."""
    try:
        from ridgemark.cli import main as run

        run()
    except KeyboardInterrupt:
        print("ridgemark: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done; only the interpreter has to end


if __name__ == "__main__":
    main()
