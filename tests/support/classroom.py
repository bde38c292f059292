"""A class of twelve invented students with awkward names, one for each way in which a report can end."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness import report as reports
from harness.outcome import Evidence, Frame, Status
from harness.report import (
    Adjustment,
    Attempt,
    CheckResult,
    CourseInfo,
    Environment,
    ExerciseResult,
    Report,
    Student,
    SubmissionInfo,
    Text,
)

ROOT = Path(__file__).resolve().parents[2]

# Family and given names are words, not people's.
NAMES = (
    "Comma, Carla",
    'Quote "Quinn" Quill',
    "O'Apostrophe Olga",
    "Ácçent Zoë Ñandú",
    "山田 試験",
    "Emoji 🎓 Emma",
    "מבחן דוגמה",
    "=SUM(A1:A9) Formula",
    "Back\\slash Ben",
    "@At Sign",
    "New\r\nLine Nora",
    "Under_score / Ulf\u202egnp",
)

_CHECKS = (
    ("heads.split", "Split the channels into heads", 10.0),
    ("heads.merge", "Merge is the inverse of split", 7.5),
    ("heads.causal", "No position sees the future", 12.5),
    ("order.blind", "One layer without positions is order-blind", 20.0),
)
_HINT = Text("heads.split.hint", 'Did you view before you transposed? Try "x.view(B, T, H, D)", then transpose.')
_RAISED = Text(
    "error.raised", "split_heads raised RuntimeError: shape '[1, 5]' is invalid\nfor C:\\work\\gpt.py, \"line\" 3"
)


def student(place: int) -> Student:
    """Student number `place`, known to every platform."""
    return Student(
        id=f"s{place + 1:02}",
        name=NAMES[place],
        email=f"student{place + 1}@example.org",
        section="Lab 1, Monday" if place % 2 else "Lab 2",
        ids={
            "canvas": str(9001 + place),
            "sis": f"U{place + 1:04}",
            "login": f"user{place + 1}",
            "moodle": str(501 + place),
            "lti": f"lti-{place + 1}",
            "openedx": str(70 + place),
        },
    )


def report(place: int, statuses: dict[str, Status], **changes: object) -> Report:
    """The report of student number `place`; checks that are not named passed."""
    exercises = [_exercise(name, statuses) for name in ("heads", "order")]
    base = Report(
        submission=SubmissionInfo(name=f"s{place + 1:02}", digest="0" * 64, files={"gpt.py": "1" * 64}),
        course=CourseInfo(id="course", title="Attention and positions", graders="2" * 64, reference="3" * 64),
        environment=Environment(
            headcheck="0.1.0",
            python="3.11.7",
            torch="2.13.0",
            platform="Linux",
            isolation="sandbox",
            start_method="fork",
        ),
        seed=7,
        score=reports.total(exercises),
        student=student(place),
        attempt=Attempt(number=1, submitted="2026-03-01T12:00:00+01:00"),
        review=Status.GRADER_ERROR in statuses.values(),
        exercises=exercises,
        started="2026-03-02T09:30:00+01:00",
        seconds=1.25,
    )
    changed = msgspec.structs.replace(base, **changes)
    return msgspec.structs.replace(changed, score=reports.total(changed.exercises, changed.adjustments))


def _exercise(name: str, statuses: dict[str, Status]) -> ExerciseResult:
    checks = [_check(*check, statuses.get(check[0], Status.PASSED)) for check in _CHECKS if check[0].startswith(name)]
    return ExerciseResult(
        id=name,
        title={"heads": "Attention with several heads", "order": "The order of the characters"}[name],
        earned=reports.points(check.points for check in checks),
        possible=reports.points(check.possible for check in checks),
        checks=checks,
    )


def _check(identity: str, title: str, points: float, status: Status) -> CheckResult:
    passed = status is Status.PASSED
    result = CheckResult(
        id=identity, title=title, status=status, points=points if passed else 0.0, possible=points, seconds=0.0125
    )
    if status is Status.FAILED:
        result.hint = _HINT
        result.message = Text("expect.close", "split_heads(x) differs from the expected values, first at [0, 1, 0, 3].")
        result.evidence = Evidence(what="split_heads(x)", expected="0.25", actual="-1.5", tolerance=1e-6, error=1.75)
    elif status is Status.ERROR:
        result.message, result.trace = _RAISED, [Frame("gpt.py", 3, "split_heads", "return x.view(1, 5)")]
        result.output = "printed by the submission\x1b[31m\x00"
    elif not passed:
        result.message = Text(f"test.{status}", f"{title}: {status}.")
    return result


def classroom() -> list[Report]:
    """Twelve reports: s06 waits for a person, s08's grader broke down, s12 handed in nothing, s09 is late, s10 has a
    mark by hand, s11 has more than the maximum."""
    failed, error = Status.FAILED, Status.ERROR
    late = Adjustment(kind="late", points=-5, reason=Text("late", "1 day late"))
    by_hand = Adjustment(
        kind="by-hand", points=7.5, reason=Text("by-hand", "=right, but\nunreadable"), check="heads.merge"
    )
    extra = Adjustment(kind="by-hand", points=2.0, reason=Text("by-hand", "Found a fault in the lesson"))
    everything = [
        report(0, {}),
        report(1, {"heads.split": failed}),
        report(2, {"heads.split": failed, "heads.merge": failed}),
        report(3, {"heads.causal": error}),
        report(4, dict.fromkeys([check[0] for check in _CHECKS], Status.NOT_STARTED)),
        report(5, {"order.blind": Status.PENDING}),
        report(6, {"heads.split": Status.TIMEOUT}),
        report(7, {"heads.merge": Status.GRADER_ERROR}),
        report(8, {"heads.split": error}, adjustments=[late]),
        report(9, {"heads.merge": Status.PENDING}, adjustments=[by_hand]),
        report(10, {}, adjustments=[extra]),
        report(11, {}, exercises=[]),
    ]
    return everything


def write_results(folder: Path, found: list[Report]) -> Path:
    """The results folder of a class, as grading a class leaves it."""
    for item in found:
        assert item.student is not None
        place = folder / item.student.id
        (place / "submission").mkdir(parents=True)
        (place / "report.json").write_bytes(reports.to_json(item))
    return folder


def canvas_gradebook() -> bytes:
    """What Canvas exports: students in another order, three more rows, a read-only column, one excused student."""
    rows = [
        [
            "Student",
            "ID",
            "SIS User ID",
            "SIS Login ID",
            "Section",
            "Essay (17)",
            "Attention (55)",
            "Essay Final Score",
        ],
        ["    Points Possible", "", "", "", "", "20", "10.00", "(read only)"],
    ]
    for place in (11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0):
        one = student(place)
        grade = {4: "EX", 5: "3.5"}.get(place, "")
        rows.append([one.name.replace("\r\n", " "), one.ids["canvas"], one.ids["sis"], one.ids["login"], one.section,
                     "18,5", grade, "92.5"])  # fmt: skip
    rows.append(["Absent, Abe", "9999", "U9999", "user99", "Lab 2", "", "", ""])
    rows.append(["Student, Test", "10000", "", "abcdef0123", "Lab 2", "", "", ""])
    return "".join(",".join(map(_always_quoted_if_text, row)) + "\n" for row in rows).encode("utf-8")


def moodle_worksheet() -> bytes:
    """What Moodle offers for offline grading: a mark, LF, and one grade that is locked."""
    header = ('Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
              '"Last modified (submission)","Online text","Last modified (grade)","Feedback comments"')  # fmt: skip
    rows = [header]
    for place in range(12):
        one = student(place)
        name = '"' + one.name.replace("\r\n", " ").replace('"', '""') + '"'
        changeable = "No" if place == 6 else "Yes"
        when = '"Sunday, 1 March 2026, 12:00 PM"'
        who = f'"Participant {one.ids["moodle"]}",{name},{one.email}'
        rows.append(f'{who},"Submitted for grading",,100.00,{changeable},{when},"two\nlines",-,')  # fmt: skip
    return b"\xef\xbb\xbf" + "\n".join(rows).encode("utf-8") + b"\n"


def moodle_gradebook() -> bytes:
    """A gradebook as a Moodle in Japanese exports it: semicolons, CRLF, a mark."""
    rows = ["姓;名;IDナンバー;メールアドレス;課題: 注意機構 (実数);メモ"]
    for place in range(12):
        one = student(place)
        name = '"' + one.name.replace("\r\n", " ").replace('"', '""') + '"'
        rows.append(f'{name};;{one.ids["sis"]};{one.email.upper()};-;"a;b"')
    return b"\xef\xbb\xbf" + "\r\n".join(rows).encode("utf-8") + b"\r\n"


def _always_quoted_if_text(text: str) -> str:
    bare = not text or (text.isascii() and text.replace(".", "").isalnum())
    return text if bare else '"' + text.replace('"', '""') + '"'
