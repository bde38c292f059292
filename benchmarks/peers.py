"""otter-grader 7 and nbgrader 0.9.6 for benchmarks/batch.py: installed apart, given the same class and checks.

Each gets the students' files as cells of a notebook and the course's checks in its own format, one test or graded cell
a check (benchmarks/notebook_checks.py), and grades with its own command, without containers. What it gave is compared
with what this harness gives the same answers: a tool that did not grade would be fast.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[1]
# What the checks themselves need, in the versions that judge here.
SHARED = ("torch", "numpy", "msgspec", "pytest", "safetensors")
PREAMBLE = f"import sys\nsys.path.append({str(ROOT)!r})\nfrom benchmarks import notebook_checks\n"


class Unavailable(Exception):
    """A peer cannot be installed or run here; the text says why."""


@dataclass(frozen=True)
class Class:
    """What the peers grade.

    Args:
        course: folder of the course, with the exercises that count.
        submissions: student -> file name -> content.
        checks: id -> points of every check.
        points: student -> what this harness gives.
    """

    course: Path
    submissions: Mapping[str, Mapping[str, bytes]]
    checks: Mapping[str, float]
    points: Mapping[str, float]


class Peer(Protocol):
    """A tool that is ready to grade the class, any number of times."""

    name: str

    def grade(self) -> None:
        """Run the tool's own command on the whole class.

        Raises:
            Unavailable: it failed.
        """
        ...

    def points(self) -> dict[str, float]:
        """What the last `grade` gave each student."""
        ...


def prepare(cache: Path, folder: Path, graded: Class) -> list[Peer]:
    """Install the peers and lay the class out for each; say which cannot be had, and why.

    Args:
        cache: where their environments are kept; a later call uses them again.
        folder: for the class.
        graded: the class.
    """
    ready: list[Peer] = []
    for make, requirement in ((Otter, "otter-grader[grading]>=7,<8"), (Nbgrader, "nbgrader==0.9.6")):
        try:
            ready.append(make(Environment.install(cache, make.name, requirement, folder, graded.course), graded))
        except (Unavailable, OSError) as reason:
            print(f"{make.name} is left out: {reason}", file=sys.stderr)
    return ready


def verify(peer: Peer, graded: Class) -> None:
    """Make sure that a peer graded everybody, as this harness does.

    Raises:
        Unavailable: it did not.
    """
    got = peer.points()
    for student, points in graded.points.items():
        if abs(got.get(student, -1.0) - points) > 0.01:
            raise Unavailable(f"it gave {student} {got.get(student, 'nothing')} and not {points:g} points")


def default_cache() -> Path:
    """A folder of this user's in the system's folder for temporary files."""
    return Path(tempfile.gettempdir(), f"headcheck-peers-{os.getuid() if os.name == 'posix' else 'user'}")


@dataclass(frozen=True)
class Environment:
    """A peer's virtual environment, and a folder for what it reads and writes."""

    bin: Path
    folder: Path
    course: Path

    @classmethod
    def install(cls, cache: Path, name: str, requirement: str, folder: Path, course: Path) -> Environment:
        """Make it, unless an earlier run did.

        Raises:
            Unavailable: pip failed.
        """
        wanted = [requirement, *(f"{package}=={metadata.version(package).partition('+')[0]}" for package in SHARED)]
        place, stamp = cache / name, cache / name / "installed.json"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix" and cache.stat().st_uid != os.getuid():
            raise Unavailable(f"{cache} belongs to another user; name a folder with --peers")
        own = cls(place / ("Scripts" if os.name == "nt" else "bin"), folder / name, course)
        own.folder.mkdir(parents=True)
        if not stamp.is_file() or json.loads(stamp.read_text(encoding="utf-8")) != wanted:
            print(f"installing {requirement} in {place} ...", file=sys.stderr, flush=True)
            shutil.rmtree(place, ignore_errors=True)
            own.run(sys.executable, "-m", "venv", str(place))
            own.run(str(own.bin / "python"), "-m", "pip", "install", "--quiet", *wanted)
            stamp.write_text(json.dumps(wanted), encoding="utf-8")
        return own

    def run(self, *command: str) -> None:
        """Run a command with this environment first on PATH, and none of the user's own settings for Jupyter.

        Raises:
            Unavailable: it failed.
        """
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment["PATH"] = os.pathsep.join((str(self.bin), environment.get("PATH", "")))
        environment["HEADCHECK_COURSE"] = str(self.course)
        for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            environment[variable] = str(self.folder / variable.lower())
        done = subprocess.run(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            encoding="utf-8", errors="replace", check=False,
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            raise Unavailable(f"{Path(command[0]).name} {' '.join(command[1:3])} ended with status "
                              f"{done.returncode}: {' / '.join(said)}")  # fmt: skip


class Otter:
    """`otter run` on each notebook: `otter grade` would start a container for each, which costs more."""

    name = "otter"

    def __init__(self, environment: Environment, graded: Class) -> None:
        self.environment, self.folder = environment, environment.folder
        tests = self.folder / "tests"
        tests.mkdir()
        for exercise in dict.fromkeys(id.partition(".")[0] for id in graded.checks):
            (tests / f"{exercise}.py").write_text(self._tests(exercise, graded.checks), encoding="utf-8")
        for student, files in graded.submissions.items():
            write_notebook(self.folder / f"{student}.ipynb", [cell(text) for text in sources(files).values()])
        environment.run("otter", "generate", "--tests-dir", "tests", "--output-path", "autograder.zip")
        self.students = list(graded.submissions)

    @staticmethod
    def _tests(exercise: str, checks: Mapping[str, float]) -> str:
        """A test file in the format with functions: each gets what the notebook has defined as `env`."""
        chosen = {id: points for id, points in checks.items() if id.partition(".")[0] == exercise}
        lines = ["from otter.test_files import test_case", PREAMBLE, "OK_FORMAT = False", f"name = {exercise!r}",
                 f"points = {sum(chosen.values())!r}"]  # fmt: skip
        for number, (id, points) in enumerate(chosen.items()):
            lines += ["", f"@test_case(name={id!r}, points={points!r})", f"def test_{number}(env):",
                      f"    notebook_checks.run({id!r}, env)"]  # fmt: skip
        return "\n".join(lines) + "\n"

    def grade(self) -> None:
        for student in self.students:
            results = self.folder / "results" / student
            shutil.rmtree(results, ignore_errors=True)
            results.mkdir(parents=True)
            self.environment.run("otter", "run", "--no-logo", "--autograder", "autograder.zip",
                                 "--output-dir", str(results), f"{student}.ipynb")  # fmt: skip

    def points(self) -> dict[str, float]:
        found = {}
        for student in self.students:
            path = self.folder / "results" / student / "results.json"
            if path.is_file():
                tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
                found[student] = sum(float(test.get("score", 0.0)) for test in tests)
        return found


class Nbgrader:
    """`nbgrader autograde` on the assignment."""

    name = "nbgrader"

    def __init__(self, environment: Environment, graded: Class) -> None:
        self.environment, self.folder = environment, environment.folder
        (self.folder / "nbgrader_config.py").write_text(
            'c = get_config()\nc.CourseDirectory.course_id = "class"\n', encoding="utf-8"
        )
        first = next(iter(graded.submissions.values()))
        stub = {name: "### BEGIN SOLUTION\n### END SOLUTION\n" for name in sources(first)}
        self._write("source/work", stub, graded.checks)
        environment.run("nbgrader", "generate_assignment", "work", "--create")
        for student, files in graded.submissions.items():
            self._write(f"submitted/{student}/work", sources(files), graded.checks)

    def _write(self, place: str, cells: Mapping[str, str], checks: Mapping[str, float]) -> None:
        (self.folder / place).mkdir(parents=True)
        made = [cell(text, grade_id=name, solution=True) for name, text in cells.items()]
        made.append(cell(PREAMBLE, grade_id="preamble", locked=True))
        made += [cell(f"notebook_checks.run({id!r}, globals())", grade_id=id.replace(".", "-"), grade=True,
                      locked=True, points=points) for id, points in checks.items()]  # fmt: skip
        write_notebook(self.folder / place / "work.ipynb", made)

    def grade(self) -> None:
        shutil.rmtree(self.folder / "autograded", ignore_errors=True)
        self.environment.run("nbgrader", "autograde", "work", "--create", "--force")

    def points(self) -> dict[str, float]:
        (self.folder / "grades.csv").unlink(missing_ok=True)
        self.environment.run("nbgrader", "export")
        with (self.folder / "grades.csv").open(encoding="utf-8", newline="") as file:
            return {row["student_id"]: float(row["score"] or 0.0) for row in csv.DictReader(file)}


def sources(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files as cells of one notebook, by name without ending: they share its names, so none imports another, and
    what a file does when it is run as a program is left out. Files come before those that import them."""
    own = {name.removesuffix(".py") for name in files}

    class Inlined(ast.NodeTransformer):
        def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
            return ast.Pass() if node.module in own or node.module == "__future__" else node

        def visit_If(self, node: ast.If) -> ast.AST:
            return ast.Pass() if "__name__" in ast.unparse(node.test) else self.generic_visit(node)

    trees = {name.removesuffix(".py"): ast.parse(text) for name, text in files.items()}
    needs = {
        name: {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module in own}
        for name, tree in trees.items()
    }
    ordered: dict[str, str] = {}
    while len(ordered) < len(trees):
        name = next(name for name in trees if name not in ordered and needs[name] <= ordered.keys())
        ordered[name] = ast.unparse(Inlined().visit(trees[name])) + "\n"
    return ordered


def cell(text: str, *, grade_id: str = "", points: float | None = None, **flags: bool) -> dict[str, object]:
    """A code cell; with `grade_id`, one that nbgrader knows, with its flags grade, solution and locked."""
    known: dict[str, object] = {}
    if grade_id:
        known = {"grade_id": grade_id, "schema_version": 3, "task": False}
        known |= {flag: flags.get(flag, False) for flag in ("grade", "solution", "locked")}
        known |= {"points": points} if points is not None else {}
    return {"cell_type": "code", "execution_count": None, "id": uuid.uuid4().hex[:8], "outputs": [],
            "metadata": {"nbgrader": known} if known else {}, "source": text}  # fmt: skip


def write_notebook(path: Path, cells: list[dict[str, object]]) -> None:
    """Write a notebook of format 4.5 for Python."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")
