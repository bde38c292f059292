"""Grading inside Gradescope's container.

Grading is a process of its own: its output cannot get into results.json, and if it dies, is killed for its memory or
does not end, results.json still says so.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from harness import files
from harness import report as reports
from harness.course import ROOT
from harness.export import gradescope
from harness.export.grades import grade
from harness.export.sheet import Options
from harness.problem import Problem
from harness.report import Attempt, Report, Student


def run(
    submission: Path, metadata: Path, out: Path, options: Options, isolation: str | None = None, seconds: int = 540
) -> int:
    """Grade `submission` and write `out`, a valid results.json in every case.

    Args:
        submission: the folder that was handed in.
        metadata: what the platform says of it; may be missing.
        out: results.json.
        options: of the grade.
        isolation: passed on to grading.
        seconds: after which grading is stopped.

    Returns:
        0, also if grading failed: results.json says so, and a failed autograder would show nothing of it.

    Raises:
        Problem: `out` cannot be written.
    """
    try:
        document = _graded(submission, metadata, options, isolation, seconds)
    except Problem as problem:
        click.echo(f"grade.py: {problem.what}\n{problem.help}", err=True)
        document = gradescope.failed(problem.what)
    except Exception as error:  # noqa: BLE001 - a fault of ours must not cost a student the result
        click.echo(f"grade.py: {type(error).__name__}: {error}", err=True)
        document = gradescope.failed(f"{type(error).__name__} while the results were written.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(out, gradescope.encode(document))
    except OSError as error:
        raise Problem(f"{out} could not be written: {error.strerror}.", "Name another file with --out.") from error
    return 0


def _graded(submission: Path, metadata: Path, options: Options, isolation: str | None, seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "report.json")
        command = [sys.executable, str(ROOT / "grade.py"), "grade", str(submission), "--json", str(target)]
        command += ["--isolation", isolation] if isolation else []
        log = Path(folder, "log.txt")
        try:
            # Into a file: whatever is left running could hold a pipe open for ever.
            with log.open("wb") as said:
                status = subprocess.run(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    timeout=seconds,
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired:
            raise Problem(f"Grading did not end within {seconds} seconds.") from None
        finally:
            printed = log.read_text(encoding="utf-8", errors="replace")
            click.echo(printed, err=True)  # the instructor's log
        if not target.is_file():
            raise Problem(_ending(status, printed))
        report = reports.from_json(target.read_bytes())
    student, attempt = who_and_which(metadata)
    report = msgspec.structs.replace(report, student=student, attempt=attempt)
    return gradescope.results(_grade(report, options))


def _grade(report: Report, options: Options) -> Any:
    student = report.student or Student(id=report.submission.name)
    return grade(student.id, student, report, out_of=options.out_of)


def _ending(status: int, said: str) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-status).name
            return f"Grading was ended by {name}" + ("; it may have run out of memory." if name == "SIGKILL" else ".")
    lines = [line for line in said.splitlines() if line.startswith("grade.py: ")]
    return lines[-1].removeprefix("grade.py: ") if lines else f"Grading ended with status {status}."


def who_and_which(path: Path) -> tuple[Student | None, Attempt | None]:
    """The student and the attempt, as far as the platform tells; grading does not depend on it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        users, earlier = data.get("users") or [], data.get("previous_submissions") or []
        created = data.get("created_at")
        attempt = Attempt(number=len(earlier) + 1, submitted=created if isinstance(created, str) else None)
        if not users:
            return None, attempt
        first = users[0]
        identity = str(first["id"])
        student = Student(id=identity, name=str(first.get("name", "")), email=str(first.get("email", "")),
                          ids={"gradescope": identity})  # fmt: skip
        return student, attempt
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, None
