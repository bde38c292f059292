"""Three languages: the catalogues are whole, the language is the reader's, nothing English is left over."""

from __future__ import annotations

import ast
import gettext
import io
import itertools
import keyword
import locale
import re
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from harness import cli, messages, report, terminal
from harness.authoring import translations
from harness.i18n import CATALOGUES, LANGUAGES, Translator, pick_language
from harness.outcome import Evidence, Frame, Status
from harness.report import Text
from harness.wrapping import breaks
from tests.support.command import ROOT, Command
from tests.support.shown import MISTAKE

GOLDENS = ROOT / "tests" / "goldens"
OTHERS = translations.OTHERS
CATALOGUE = [(domain, language) for domain in CATALOGUES for language in OTHERS]
PLACEHOLDER = re.compile(r"\{\w+\}")
ENGLISH = re.compile(r"[A-Za-z]{2,}(?: [a-z]{2,}){2,}")  # three words in a row


@pytest.mark.parametrize(("domain", "language"), CATALOGUE)
def test_every_text_is_translated_from_the_english_of_today(domain: str, language: str) -> None:
    catalogue = translations.read(domain, language)
    texts = translations.texts(domain)
    help = "run `python grade.py translations` and translate what it lists"
    assert [message.id for message in catalogue if message.id] == list(texts), help
    assert not catalogue.obsolete, help
    for id, english in texts.items():
        message = catalogue.get(id)
        assert message is not None and message.string and not message.fuzzy, f"{id}: {help}"
        assert translations.english_of(catalogue, id) == " ".join(english.split()), f"{id}: {help}"
        assert set(PLACEHOLDER.findall(str(message.string))) == set(PLACEHOLDER.findall(english)), id


@pytest.mark.parametrize(("domain", "language"), CATALOGUE)
def test_the_compiled_catalogue_is_that_of_the_source(domain: str, language: str) -> None:
    with translations.path_of(domain, language, ".mo").open("rb") as file:
        compiled = {message.id: message.string for message in read_mo(file) if message.id}
    source = {message.id: message.string for message in translations.read(domain, language) if message.id}
    assert compiled == source, "run `python grade.py translations`"


@pytest.mark.parametrize(("domain", "language"), CATALOGUE)
def test_punctuation_is_that_of_the_language(domain: str, language: str) -> None:
    for message in translations.read(domain, language):
        found = re.search(
            r"[\u3040-\u30ff\u4e00-\u9fff] ?[,.;:!?](?!\w)|[\u3040-\u30ff\u4e00-\u9fff]\(", str(message.string)
        )
        assert not message.id or found is None, f"{message.id}: {message.string}"
        assert not message.id or not ENGLISH.search(str(message.string)), f"{message.id}: {message.string}"


def test_one_id_is_one_text() -> None:
    domains = [set(translations.texts(domain)) for domain in CATALOGUES]
    assert not set.intersection(*domains)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_hint_is_as_it_was_read_last(language: str, request: pytest.FixtureRequest) -> None:
    words = Translator(language)
    hints = {id: english for id, english in translations.texts("course").items() if id.endswith(".hint")}
    assert len(hints) > 100
    shown = "\n".join(f"{id}\n  {words.text(Text(id, english))}\n" for id, english in hints.items())
    golden = GOLDENS / f"hints.{language}.txt"
    if request.config.getoption("--update-goldens"):
        golden.write_text(shown, encoding="utf-8", newline="\n")
    assert golden.read_text(encoding="utf-8") == shown, "read them, then --update-goldens"


# Picking


@pytest.mark.parametrize(
    ("option", "environ", "expected"),
    [
        ("zh", {"LANG": "ja_JP.UTF-8"}, "zh"),
        (None, {"LANG": "ja_JP.UTF-8"}, "ja"),
        (None, {"LANG": "ja_JP.UTF-8", "LC_MESSAGES": "zh_CN"}, "zh"),
        (None, {"LANG": "ja_JP.UTF-8", "LC_MESSAGES": "zh_CN", "LC_ALL": "C.UTF-8"}, "en"),
        (None, {"LANG": "ja_JP.UTF-8", "LC_ALL": ""}, "ja"),
        (None, {"LANG": "zh-Hans-CN"}, "zh"),
        (None, {"LANG": "de_DE.UTF-8"}, "en"),
        (None, {"LANG": "jam_JM"}, "en"),
        (None, {"LANG": "POSIX"}, "en"),
    ],
)
def test_the_language_is_the_option_then_the_locale(option: str | None, environ: dict[str, str], expected: str) -> None:
    assert pick_language(option, environ) == expected


@pytest.mark.parametrize(
    ("system", "expected"),
    [("Japanese_Japan", "ja"), ("Chinese (Simplified)_China", "zh"), ("zh_CN", "zh"), ("English_Canada", "en"),
     (None, "en")],
)  # fmt: skip
def test_without_variables_the_system_is_asked(
    monkeypatch: pytest.MonkeyPatch, system: str | None, expected: str
) -> None:
    monkeypatch.setattr(locale, "getlocale", lambda: (system, None))
    assert pick_language(None, {}) == expected


def test_a_locale_never_asks_for_what_the_output_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert cli.translator(None).language == "ja"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert cli.translator(None).language == "en"
    assert cli.translator("ja").language == "ja"  # who asks for it gets it


# Translating


def test_what_is_unknown_or_does_not_fit_stays_english() -> None:
    words = Translator("ja")
    assert words.text(Text("no.such-id", "As it was said.")) == "As it was said."
    assert words.text(Text("expect.shape", "of another version", {"something": 1})) == "of another version"
    assert words.title("no-such-check", "Its title") == "Its title"
    assert words.code("print((1)  # all 1") == "print((1)  # all 1"  # no Python
    with pytest.raises(KeyError):
        words.ui("ui.no-such-word")


def test_a_parameter_that_is_a_check_is_shown_as_its_title() -> None:
    said = Text("follow-through", "...", {"check": "heads.merge", "cause": "heads.split"})
    for language in OTHERS:
        shown = Translator(language).text(said)
        assert "merge_heads" in shown and "heads.split" not in shown and "heads.merge" not in shown


def test_comments_are_translated_and_code_is_not() -> None:
    code = 'print("# all 1")  # all 1\nx = 1\n'
    assert Translator("zh").code(code) == 'print("# all 1")  # 全是 1\nx = 1\n'
    assert Translator("en").code(code) == code


def test_a_reworded_sentence_is_not_shown_until_someone_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CATALOGUES["harness"], tmp_path / "harness")
    monkeypatch.setitem(CATALOGUES, "harness", tmp_path / "harness")
    assert translations.update() == []
    monkeypatch.setitem(messages.ENGLISH, "timeout.call", "It took more than {seconds} seconds.")
    monkeypatch.setitem(messages.ENGLISH, "brand-new", "A sentence nobody has translated.")
    monkeypatch.delitem(messages.ENGLISH, "crashed.call")
    assert {path.suffix for path in translations.update()} == {".po", ".mo"}
    listed = translations.missing()
    assert [line.split(":")[0:2] for line in listed] == [
        [language, f" {id}"]
        for language in OTHERS
        for id in ("timeout.call has changed", "brand-new is not translated")
    ]
    catalogue = gettext.translation("harness", tmp_path / "harness", ["ja"])
    for id in ("timeout.call", "brand-new", "crashed.call"):
        assert catalogue.gettext(id) == id
    assert catalogue.gettext("expect.close") != "expect.close"  # the others are kept
    with translations.path_of("harness", "ja", ".po").open("rb") as file:
        kept = read_po(file, locale="ja")
    assert kept["timeout.call"].fuzzy and "{seconds}" in str(kept["timeout.call"].string)


def test_another_course_brings_its_own_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "graders" / "locale" / "ja" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    catalogue = Catalog(locale="ja")
    catalogue.add("heads.title", "別の課題")
    with (folder / "course.mo").open("wb") as file:
        write_mo(file, catalogue)
    assert Translator("ja", tmp_path).title("heads", "Heads") == "別の課題"
    assert Translator("ja", tmp_path).title("rope", "Turning") == "Turning"  # nothing of this course is mixed in
    assert Translator("ja", tmp_path).ui("ui.score", earned="1", possible="2") == "得点 1 / 2"
    monkeypatch.setenv("HEADCHECK_COURSE", str(tmp_path))
    assert Translator("ja").title("heads", "Heads") == "別の課題"


# What checks say besides sentences


def constants(node: ast.AST) -> list[str]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_what_checks_compare_is_written_as_code() -> None:
    """Such texts are shown in every language as they are."""
    found: list[tuple[str, str]] = []
    for path in [*sorted((ROOT / "graders").glob("test_*.py")), ROOT / "harness" / "expect.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            texts: list[str] = []
            if isinstance(node, ast.Call):
                texts += [t for k in node.keywords if k.arg in ("what", "expected", "actual") for t in constants(k)]
                if ast.unparse(node.func) == "_fail":
                    texts += [t for argument in node.args[2:] for t in constants(argument)]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "what":
                texts += constants(node.value)
            found += [(f"{path.name}:{node.lineno}", text) for text in texts]  # type: ignore[attr-defined]
    assert len(found) > 100
    for where, text in found:
        words = re.findall(r"(?<![\w.])([a-z]{2,}) (?=([a-z]{2,})(?![\w.(\[=]))", text)
        assert all(keyword.iskeyword(word) for pair in words for word in pair), f"{where}: {text}"


def everything(stored: Path) -> report.Report:
    """A report that holds every sentence of the engine and the course, from a real one."""
    real = report.from_json(stored.read_bytes())
    first = real.exercises[0].checks[0]
    evidence = Evidence(what="f(x)", expected="1", actual="2", tolerance=0.0, error=1.0)
    said = [
        Text(id, english.format(**params), params)
        for id, english in messages.ENGLISH.items()
        if (params := {name: "f(x)" for name in re.findall(r"\{(\w+)\}", english)}) is not None
    ]
    checks = [
        msgspec.structs.replace(
            first, id=f"x.{number}", title="f(x)", status=status, message=message, evidence=evidence, hidden=False,
            trace=[Frame("gpt.py", 3, "forward", "x = 1")], hint=None, caused_by="",
        )
        for number, message in enumerate(said)
        for status in [[s for s in Status if s is not Status.PASSED][number % (len(Status) - 1)]]
    ]  # fmt: skip
    hints = [
        msgspec.structs.replace(first, id=f"y.{number}", title="f(x)", status=Status.FAILED, hint=Text(id, english))
        for number, (id, english) in enumerate(translations.texts("course").items())
        if id.endswith(".hint")
    ]
    exercise = msgspec.structs.replace(real.exercises[0], checks=checks + hints)
    notes = [message for message in said if message.id.startswith(("submission.", "intake."))]
    info = msgspec.structs.replace(real.submission, notes=notes)
    return msgspec.structs.replace(real, exercises=[*real.exercises, exercise], submission=info)


@pytest.fixture(scope="module")
def stored(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report, in English, of work with a mistake, a part that is not begun, and a file that Python cannot read."""
    desk = tmp_path_factory.mktemp("desk")
    shutil.copytree(ROOT / "reference", desk / "work", ignore=shutil.ignore_patterns("__pycache__"))
    right = (desk / "work" / "gpt.py").read_text(encoding="utf-8")
    assert MISTAKE[0] in right
    (desk / "work" / "gpt.py").write_text(right.replace(*MISTAKE), encoding="utf-8")
    shutil.copy(ROOT / "student_template" / "heads_positions.py", desk / "work")
    (desk / "work" / "rope.py").write_text("def apply_rope(x\n", encoding="utf-8")
    done = command.run("grade", "work", cwd=desk)
    assert done.status == 1 and "Your output is exactly what comes out" in done.stdout
    return desk / "report.json"


def displayed(shown: report.Report, language: str, width: int = 80) -> list[str]:
    out = io.StringIO()
    terminal.show(shown, Console(file=out, width=width, highlight=False), verbose=True, words=Translator(language))
    return out.getvalue().splitlines()


def is_code(line: str) -> bool:
    return line.startswith(("    >>> ", "    ...", "    def ", "    raise "))


@pytest.mark.parametrize("language", OTHERS)
def test_a_stored_report_is_shown_without_an_english_sentence(stored: Path, language: str) -> None:
    whole = everything(stored)
    python = "'(' was never closed"  # its own words
    lines = [line.replace(python, "...") for line in displayed(whole, language)]
    assert len(lines) > 500
    for line in lines:
        assert is_code(line) or not ENGLISH.search(line), line
        assert is_code(line) or cell_len(line) <= 80, line
    english = displayed(whole, "en")
    assert sum(bool(ENGLISH.search(line)) for line in english) > 200  # the pattern does find sentences


def test_show_prints_what_grading_printed(stored: Path, command: Command) -> None:
    again = command.run("show", stored)
    assert again.status == 0 and "Score 0 /" not in again.stdout
    assert "Your output is exactly what comes out" in again.stdout and "Score" in again.stdout
    for language, word in (("ja", "得点"), ("zh", "得分")):
        by_option = command.run("show", stored, "--lang", language)
        assert word in by_option.stdout and "Score" not in by_option.stdout
        by_locale = command.run("show", stored, env={"LC_ALL": f"{language}_XX.UTF-8"})
        assert by_locale.stdout == by_option.stdout


def test_show_says_what_is_no_report(command: Command, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    for name, words in (("missing.json", "cannot be read"), ("other.json", "is not a report")):
        done = command.run("show", tmp_path / name)
        assert done.status == 2 and words in done.stderr and "Traceback" not in done.stderr


# Lines


@pytest.mark.parametrize("width", [10, 17, 40])
@pytest.mark.parametrize("language", OTHERS)
def test_lines_break_where_the_language_allows(language: str, width: int) -> None:
    for message in translations.read("course", language):
        text = str(message.string)
        starts = [0, *breaks(text, width), len(text)]
        lines = [text[a:b] for a, b in itertools.pairwise(starts)]
        for line in lines:
            assert cell_len(line.rstrip()) <= width, line
        if width == 40 and message.id.endswith(".hint"):
            for line in lines:
                assert line[0] not in "。、，：？）」”ー" and line.rstrip()[-1] not in "（「“", line


@given(st.text("ab 漢字。「（x) \t", max_size=60), st.integers(2, 20))
def test_no_line_is_wider_than_asked(text: str, width: int) -> None:
    starts = [0, *breaks(text, width), len(text)]
    assert starts == sorted(starts)
    for a, b in itertools.pairwise(starts):
        assert cell_len(text[a:b].rstrip()) <= width
