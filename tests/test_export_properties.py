"""Properties that hold for any name and any number (Hypothesis)."""

from __future__ import annotations

import csv
import io
import tempfile
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import jsonschema
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.export import Options, export_one, texts
from harness.export import csv as csv_export
from harness.export import moodle as moodle_export
from harness.export.gradebook import Gradebook
from harness.export.grades import exact, number, scale
from harness.export.sheet import Row, Sheet
from harness.outcome import Status
from harness.report import Report, Text
from tests.support import classroom

# Whatever can be in a name: quotes, delimiters, line breaks, controls, surrogates, bidirectional marks, formulas.
hostile = st.text(
    st.one_of(st.sampled_from(list("\",;\\\n\r\t\x00\x1b\x85\u2028=+-@'\ud800\u202e\uffff")), st.characters())
)
points = st.decimals(0, 1000, places=2)
above_zero = st.decimals("0.01", 1000, places=2)


def with_name(name: str) -> Report:
    """A report whose every free text is `name`."""
    one = classroom.report(0, {"heads.split": Status.FAILED, "heads.merge": Status.ERROR})
    assert one.student is not None
    for check in one.exercises[0].checks:
        if check.hint is not None:
            check.hint = Text("hint", name)
        if check.message is not None:
            check.message = Text("message", name)
    return msgspec.structs.replace(one, student=msgspec.structs.replace(one.student, name=name, section=name))


def export(module: Any, report: Report, **options: Any) -> bytes:
    out = io.BytesIO()
    module.write(Sheet(iter([Row("s01", report)]), Options(**options)), out)
    return out.getvalue()


@given(hostile)
def test_csv_round_trip(name: str) -> None:
    written = export(csv_export, with_name(name), columns="id,name,section,grade,comment")
    header, row = csv.reader(io.StringIO(written.decode("utf-8"), newline=""), strict=True)
    found = dict(zip(header, row, strict=True))
    assert found["name"] == texts.cell(name or "s01") or (not texts.one_line(name) and found["name"] in ("", "s01"))
    assert (found["id"], found["grade"]) == ("s01", "32.5")
    assert not found["name"].startswith(("=", "+", "-", "@", "\t"))
    # A reader that splits at every line break sees two lines as well.
    assert len(written.decode("utf-8").splitlines()) == 2


@given(hostile)
def test_moodle_has_no_backslash_and_one_line_a_student(name: str) -> None:
    written = export(moodle_export, with_name(name), item="x", comments=True).decode("utf-8")
    assert "\\" not in written
    assert len(written.splitlines()) == 2
    assert [len(row) for row in csv.reader(io.StringIO(written, newline=""), strict=True)] == [4, 4]


@given(hostile)
@settings(max_examples=50)
def test_xml_and_json_stay_well_formed(name: str) -> None:
    report = with_name(name)
    for target in ("junit", "ctrf", "gradescope"):
        out = io.BytesIO()
        export_one(target, report, out)
        if target == "junit":
            assert len(xml.fromstring(out.getvalue()).findall("testsuite/testcase")) == 4
        else:
            msgspec.json.decode(out.getvalue())


@given(hostile)
def test_cell_is_stable_and_safe(text: str) -> None:
    once = texts.cell(text)
    assert texts.cell(once) == once
    assert once == once.strip()
    assert not set(once) & set("\r\n\t\x00\x1b\x85\u2028\u202e\ud800")
    assert texts.file_name(text).strip(". ")


@given(points, above_zero, above_zero)
def test_scaling_rounds_once_half_up(given: Decimal, possible: Decimal, out_of: Decimal) -> None:
    exactly = Fraction(given) * Fraction(out_of) / Fraction(possible)
    hundredths = exactly * 100 + Fraction(1, 2)
    assert scale(given, possible, out_of) == Decimal(hundredths.numerator // hundredths.denominator) / 100


@given(points, above_zero)
def test_scaling_keeps_the_ends_and_the_order(given: Decimal, possible: Decimal) -> None:
    assert scale(Decimal(0), possible, Decimal(10)) == 0
    assert scale(possible, possible, Decimal(10)) == 10
    assert scale(given, possible, possible) == given.quantize(Decimal("0.01"), ROUND_HALF_UP)
    assert scale(given, possible, Decimal(10)) <= scale(given + Decimal("0.01"), possible, Decimal(10))


@given(st.floats(0, 1e6).map(lambda value: round(value, 2)))
def test_numbers_are_plain_and_read_back(value: float) -> None:
    text = number(exact(value))
    assert set(text) <= set("0123456789.")
    assert float(text) == value
    assert not text.endswith(".") and (text == "0" or text.strip("0") != "")


cells = st.text(st.sampled_from(list('ab ",;\t\r\né山')), max_size=6)


@given(st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_any_gradebook_is_kept_and_read_like_csv(rows: list[list[str]], end: str) -> None:
    text = io.StringIO(newline="")
    # Python's writer leaves a lone \r bare unless its own line end has one.
    quoting = csv.QUOTE_ALL if any("\r" in cell for row in rows for cell in row) else csv.QUOTE_MINIMAL
    csv.writer(text, lineterminator=end, quoting=quoting).writerows([["Student", "ID"], *rows])
    data = text.getvalue().encode("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "book.csv")
        path.write_bytes(data)
        book = Gradebook(path)
    assert [[book.value(row, at) for at in range(2)] for row in range(len(book.cells))] == [["Student", "ID"], *rows]
    assert book.to_bytes() == data
    book.put(1, 1, 'a"b,c\n')
    read = list(csv.reader(io.StringIO(book.to_bytes().decode("utf-8"), newline=""), strict=True))
    assert read == [["Student", "ID"], [rows[0][0], 'a"b,c\n'], *rows[1:]]


def test_the_ctrf_schema_is_not_empty() -> None:
    """The validator would accept anything against an empty schema; this one refuses."""
    schema = msgspec.json.decode((Path(__file__).parent / "schemas" / "ctrf-schema-0.0.json").read_bytes())
    assert not jsonschema.Draft7Validator(schema).is_valid({"results": {}})
