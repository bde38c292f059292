"""The catalogues: which texts there are, what of them is translated, and the files that gettext reads.

A catalogue's keys are message ids. The English stands above each as an extracted comment, so that a reworded sentence
is noticed: its translations become fuzzy, which gettext leaves out, until someone has looked at them.
"""

from __future__ import annotations

import ast
import datetime
import io
import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from harness import VERSION, files
from harness.authoring.variants import load_variants
from harness.course import ROOT, read_course
from harness.i18n import CATALOGUES, LANGUAGES, comments
from harness.messages import ENGLISH, INTERFACE
from harness.problem import Problem
from harness.quiz import read_quiz

_WORD = re.compile("[a-z]{2,}")  # comments of numbers alone are the same in every language
OTHERS = tuple(language for language in LANGUAGES if language != "en")


def texts(domain: str) -> dict[str, str]:
    """Every id of a domain with its English text, in the order of the sources.

    Raises:
        Problem: a text of a check is no constant, or one id stands for two texts.
    """
    if domain == "harness":
        return {**ENGLISH, **INTERFACE}
    found: dict[str, str] = {}
    for id, english in _course_texts():
        if found.setdefault(id, english) != english:
            raise Problem(f"The id {id} stands for two texts.", "Give a check, a misconception or a sentence another.")
    return found


def _course_texts() -> Iterator[tuple[str, str]]:
    graders = ROOT / "graders"
    course = read_course()
    yield f"{course.id}.title", course.title
    for exercise in course.exercise:
        yield f"{exercise.id}.title", exercise.title
        if exercise.id == "quiz":
            yield from _quiz_texts(graders / "quiz.toml")
        else:
            yield from _check_texts(graders / exercise.grader)
    for mistake in load_variants(graders / "misconceptions"):
        yield f"{mistake.id}.hint", mistake.hint


def _quiz_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Titles and hints of the questions, and what is said of wrong answers."""
    for question in read_quiz(path):
        yield f"quiz.{question.id}.title", question.title
        yield f"quiz.{question.id}.hint", question.hint
        yield from ((f"quiz.{question.id}.{answer}.hint", hint) for answer, hint in question.wrong.items())


def _check_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Titles, hints, sentences of a grader and the comments of its lines to try, read from its source: nothing is
    imported."""
    calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if ast.unparse(call.func) == "check":
            id = _constant(call.args[0], path)
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            for part in ("title", "hint"):
                yield f"{id}.{part}", _constant(named[part], path)
            if "reproduce" in named:
                found = (comment for comment, *_ in comments(_constant(named["reproduce"], path).strip("\n")))
                yield from ((comment, comment) for comment in found if _WORD.search(comment))
        elif ast.unparse(call.func) == "expect.true":
            yield _constant(call.args[1], path), _constant(call.args[2], path)


def _constant(node: ast.expr, path: Path) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise Problem(f"{path.name}, line {node.lineno}: {ast.unparse(node)} is not a constant text.",
                  "Only constants can be translated; what varies goes into the parameters.")  # fmt: skip


def path_of(domain: str, language: str, suffix: str) -> Path:
    """Where a catalogue is kept; `suffix` is .po or .mo."""
    return CATALOGUES[domain] / language / "LC_MESSAGES" / f"{domain}{suffix}"


def read(domain: str, language: str) -> Catalog:
    """The catalogue as it is in its .po file; an empty one if there is no file."""
    path = path_of(domain, language, ".po")
    if not path.is_file():
        return _empty(domain, language)
    with path.open("rb") as file:
        return read_po(file, locale=language, domain=domain)


def english_of(catalogue: Catalog, id: str) -> str:
    """The English text that a translation was made from, as its comment says."""
    found = catalogue.get(id)
    return "" if found is None else _in_one_line(" ".join(found.auto_comments))


def update() -> list[Path]:
    """Bring every .po file up to the texts of today and compile it; returns what was written.

    Translations are kept. One whose English has changed becomes fuzzy; one whose id is gone is dropped.
    """
    written: list[Path] = []
    for domain in CATALOGUES:
        for language in OTHERS:
            updated = _updated(domain, language)
            po, mo = io.BytesIO(), io.BytesIO()
            write_po(po, updated, width=100, no_location=True, ignore_obsolete=True)
            write_mo(mo, updated)
            for suffix, data in ((".po", po.getvalue()), (".mo", mo.getvalue())):
                path = path_of(domain, language, suffix)
                if not path.is_file() or path.read_bytes() != data:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    files.write_atomically(path, data)
                    written.append(path)
    return written


def _empty(domain: str, language: str) -> Catalog:
    now = datetime.datetime.now(datetime.UTC).replace(second=0, microsecond=0)
    return Catalog(
        locale=language, domain=domain, project="headcheck", version=VERSION, fuzzy=False, charset="utf-8",
        header_comment=f"# The texts of headcheck, domain {domain}, language {language}.",
        msgid_bugs_address="-", last_translator="-", language_team="-", creation_date=now, revision_date=now,
    )  # fmt: skip


def _updated(domain: str, language: str) -> Catalog:
    old = read(domain, language)
    new = _empty(domain, language)
    new.creation_date = old.creation_date
    for id, english in texts(domain).items():
        before = old.get(id)
        string = before.string if before is not None else ""
        flags = set(before.flags) if before is not None else set()
        if string and english_of(old, id) != _in_one_line(english):
            flags.add("fuzzy")
        own = before.user_comments if before is not None else []
        flags.discard("python-brace-format")  # the .po of some other tool; our ids are no format strings
        new.add(id, string, flags=flags, auto_comments=[english], user_comments=own)
    if _content(new) == _content(old):  # the date of the last change, not of the last look
        new.revision_date = old.revision_date
    return new


def _content(catalogue: Catalog) -> list[tuple[str, str, bool, str]]:
    return [(str(m.id), str(m.string), m.fuzzy, english_of(catalogue, str(m.id))) for m in catalogue if m.id]


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def missing() -> list[str]:
    """A line for each text that a language lacks, or that has changed since it was translated."""
    return [
        f"{language}: {message.id} {'has changed' if message.fuzzy else 'is not translated'}: "
        f"{' '.join(message.auto_comments)}"
        for domain in CATALOGUES
        for language in OTHERS
        for message in read(domain, language)
        if message.id and (message.fuzzy or not message.string)
    ]
