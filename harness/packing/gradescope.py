"""The autograder that Gradescope installs: a zip with setup.sh, run_autograder and the course."""

from __future__ import annotations

import shlex
from decimal import Decimal
from pathlib import Path

from harness.course import Course
from harness.export.grades import number
from harness.packing import contents

_SETUP = """\
#!/usr/bin/env bash
# Runs once, when Gradescope builds the image. Choose an Ubuntu of 22.04 or newer there.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
cd /autograder/source

apt-get update
apt-get install -y --no-install-recommends libseccomp2
python=""
for candidate in python3.13 python3.12 python3.11; do
    if apt-get install -y --no-install-recommends "$candidate" "$candidate-venv"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "setup.sh: no Python of 3.11 or newer; choose a newer base image" >&2
    exit 1
fi

"$python" -m venv /autograder/venv
pip=(/autograder/venv/bin/python -m pip install --no-cache-dir)
{torch}"${{pip[@]}}" -r requirements.txt
/autograder/venv/bin/python - <<'END'
import torch
if torch.version.cuda:
    print("setup.sh: this is a CUDA build of PyTorch, several GB larger than needed; pack with --torch-index")
END
chmod -R go-rwx /autograder/source
"""

_TORCH = """\
"${{pip[@]}}" --index-url {index} "$(grep -m 1 '^torch==' requirements.txt)"
"""

_RUN = """\
#!/usr/bin/env bash
# Runs for each submission. grade.py writes results.json in every case.
cd /autograder/source
exec /autograder/venv/bin/python grade.py gradescope{options}
"""


def pack(out: Path, course: Course, out_of: Decimal | None = None, torch_index: str = "") -> list[str]:
    """Write the zip. The same course gives the same bytes.

    Args:
        out: the file to write.
        course: what is graded there, with its answers.
        out_of: the autograder's points in the assignment.
        torch_index: the package index with CPU builds of PyTorch; without it, pip's own settings decide.

    Returns:
        The names of the files in it.

    Raises:
        Problem: the file cannot be written.
    """
    torch = _TORCH.format(index=shlex.quote(torch_index)) if torch_index else ""
    options = f" --out-of {number(out_of)}" if out_of is not None else ""
    scripts = {
        "setup.sh": _SETUP.format(torch=torch).encode(),
        "run_autograder": _RUN.format(options=options).encode(),
    }
    return contents.write(out, contents.program() | contents.whole_course(course) | scripts, executable=scripts)
