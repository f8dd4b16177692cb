"""Run `positions` as `python -m check_positions`."""

import sys

from check_positions.cli import main

if __name__ == "__main__":
    sys.exit(main())
