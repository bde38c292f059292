"""The front door: `python grade.py [PATH]`; `python grade.py --help` shows the rest."""

from harness.cli import run
from harness.leaving import leave

if __name__ == "__main__":
    leave(run())
