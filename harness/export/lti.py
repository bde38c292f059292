"""LTI 1.3 Assignment and Grade Services: one score message a line, ready to be posted.

https://www.imsglobal.org/spec/lti-ags/v2p0: POST each to `{line item}/scores` as
`application/vnd.ims.lis.v1.score+json`. Who has no grade has no message: Moodle erases the grade for every
gradingProgress but FullyGraded.
"""

from __future__ import annotations

import datetime
from typing import BinaryIO

import msgspec

from harness.export import feedback, texts
from harness.export.sheet import Sheet, who
from harness.problem import Problem

ABOUT = "LTI 1.3 score messages, a JSON object a line"
TAKES = frozenset({"out_of", "roster"})
SINGLE = False


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the messages.

    Raises:
        Problem: a student's LTI id is not known; what is in `out` must not be used.
    """
    now = (sheet.options.now or datetime.datetime.now(datetime.UTC)).isoformat(timespec="milliseconds")
    seen: dict[str, str] = {}
    for grade in sheet.grades():
        if grade.points is None or grade.out_of is None:
            continue
        user = grade.student.ids.get("lti", "")
        if not user:
            raise Problem(f"The LTI user id of {who(grade.student)} ({grade.key}) is not known.",
                          "Give a roster with the columns id and lti: --roster FILE. The platform's membership service "
                          "(or the sub of a launch) tells these ids.")  # fmt: skip
        if seen.setdefault(user, grade.key) != grade.key:
            raise Problem(f"{seen[user]} and {grade.key} have the same LTI user id {user}.",
                          "Correct the roster, or take one of the two results away.")  # fmt: skip
        message = {
            "userId": user,
            "scoreGiven": float(grade.points),
            "scoreMaximum": float(grade.out_of),
            "activityProgress": "Completed",
            "gradingProgress": "FullyGraded",
            # That of the export: a platform refuses a message that is not newer than its last, and a mark changed by
            # hand does not change the time of the run.
            "timestamp": now,
            "comment": texts.plain(feedback.text(grade.report)),
        }
        out.write(msgspec.json.encode(message) + b"\n")
