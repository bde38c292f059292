"""The front door: `python grade.py [PATH]`; `python grade.py --help` shows the rest."""

import sys

from harness.cli import run

if __name__ == "__main__":
    sys.exit(run())
