"""What another instructor needs: the program, its documentation, and the course with all of its answers."""

from __future__ import annotations

from pathlib import Path

from harness.course import ROOT, Course
from harness.packing import contents
from harness.packing.contents import Content

_MORE = ("requirements-dev.txt", "CHANGELOG.md", "CONTRIBUTING.md")
_README = """\
# {title}: for instructors

This folder holds the answers, the hidden checks and the keys. Keep it from students; `bundle student` makes what they
get.

## Set up

Python 3.11 or newer. From the folder of this file, best in a virtual environment:

```sh
python -m pip install -r requirements.txt
```

## Work

```sh
python grade.py reference                            # one submission: here the course's own answers
python grade.py batch SUBMISSIONS --out RESULTS      # a class
python grade.py check-course                         # right answers pass, wrong ones are caught and named
python grade.py bundle student --out student.zip     # what students get
python grade.py bundle gradescope --out gradescope.zip
```

[docs/instructors.md](docs/instructors.md) says more. `MANIFEST.sha256` has the digest of every file here.
"""


def pack(out: Path, course: Course) -> list[str]:
    """Write the zip: the same course gives the same bytes.

    Args:
        out: the file to write.
        course: what is packed, with all of its answers.

    Returns:
        The names of the files in it.

    Raises:
        Problem: the file cannot be written.
    """
    return contents.write(out, content(course))


def content(course: Course) -> Content:
    """All of the bundle but its manifest, by name."""
    more = {name: (ROOT / name).read_bytes() for name in _MORE if (ROOT / name).exists()}
    readme = {"README.md": _README.format(title=course.title).encode()}
    return contents.program() | contents.pages() | contents.whole_course(course) | more | readme
