"""Moodle: the zip with a feedback file for each student, for Upload multiple feedback files in a zip."""

from __future__ import annotations

from typing import BinaryIO

from harness.export import feedback, texts
from harness.export.archive import Archive
from harness.export.grades import number
from harness.export.sheet import Sheet, who
from harness.problem import Problem

ABOUT = "Moodle feedback zip"
TAKES = frozenset({"out_of", "roster"})
SINGLE = False


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the zip. Moodle finds a student by the participant's number in the folder's name.

    Raises:
        Problem: a student's number is not known; what is in `out` must not be used.
    """
    seen: dict[str, str] = {}
    with Archive(out) as archive:
        for grade in sheet.grades():
            number_of = grade.student.ids.get("moodle", "")
            if not number_of.isdecimal():
                raise Problem(f"The participant number of {who(grade.student)} in {grade.key} is not known.",
                              "It is in the names of Moodle's download of all submissions, or in a roster's column "
                              "moodle: --roster FILE.")  # fmt: skip
            if seen.setdefault(number_of, grade.key) != grade.key:
                raise Problem(f"{seen[number_of]} and {grade.key} have the same participant number {number_of}.",
                              "Correct the roster, or take one of the two results away.")  # fmt: skip
            name = texts.file_name(grade.student.name or grade.student.id).replace("_", " ")
            score = f"{number(grade.points)} / {number(grade.out_of)}" if grade.points is not None else grade.why
            said = texts.plain(f"{score}\n\n{feedback.text(grade.report)}\n")
            archive.add(f"{name}_{number_of}_assignfeedback_file_/feedback.txt", said.encode("utf-8"))
