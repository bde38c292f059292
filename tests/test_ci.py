"""`python grade.py ci` on real repositories: what it prints, writes and ends with, and what hostile work cannot do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.ci import run
from harness.problem import Problem
from harness.report import from_json
from harness.worker import offer
from tests.support.command import Command, Finished
from tests.support.repository import Upstream, answer, template

GOLDENS = Path(__file__).parent / "goldens" / "ci"
ON_GITHUB = {"GITHUB_ACTIONS": "true"}
# Where there is no sandbox, the rest of what these tests are about is the same.
ISOLATION = offer.probe().isolation


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


def ci(command: Command, upstream: Upstream, *more: str | Path, env: dict[str, str] | None = None) -> Finished:
    environment = {"GITHUB_ACTIONS": "", "GITHUB_STEP_SUMMARY": ""} | (env or {})
    words = ("ci", "--base", "main", "--head", "pr", "--course", upstream.folder, "--isolation", ISOLATION, *more)
    return command.run(*words, cwd=upstream.folder, env=environment)


def test_an_ordinary_pull_request(
    command: Command, upstream: Upstream, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two students: one is right, one has a mistake that has a name. All that is written is looked at."""
    upstream.pull_request({"work/anna/sampling.py": answer(), "work/ben/sampling.py": answer(wrong=True),
                           "README.md": "Changed.\n"})  # fmt: skip
    summary, junit, reports = tmp_path / "summary.md", tmp_path / "junit.xml", tmp_path / "reports.json"
    files = ("--summary", summary, "--junit", junit, "--json", reports)
    done = ci(command, upstream, *files, env=ON_GITHUB)
    assert done.status == 1, done.stderr

    compare(GOLDENS / "summary.md", summary.read_bytes(), request)

    lines = done.stdout.splitlines()
    annotations = [line for line in lines if line.startswith("::error")]
    source = answer(wrong=True).splitlines()
    place = next(number for number, line in enumerate(source, 1) if line.startswith("def temperature_softmax"))
    assert len(annotations) == 1
    assert annotations[0].startswith(f"::error file=work/ben/sampling.py,line={place},endLine={place},title=")
    assert "Which way round should it be?" in annotations[0]
    assert lines.index(annotations[0]) > max(i for i, line in enumerate(lines) if "Score" in line)
    cover = re.fullmatch(r"::stop-commands::([0-9a-f]{32})", lines[0])
    assert cover and lines[-2] == f"::{cover[1]}::"

    found = json.loads(reports.read_text(encoding="utf-8"))
    assert [report["student"]["id"] for report in found] == ["work/anna", "work/ben"]
    assert [from_json(json.dumps(report).encode()).score.final for report in found] == [10, 6]
    cases = ElementTree.parse(junit).getroot().findall("testsuite")
    assert [(suite.get("name"), suite.get("failures")) for suite in cases] == [("work/anna", "0"), ("work/ben", "1")]


@pytest.mark.parametrize(("mark", "status"), [("60", 0), ("60.5", 1)])
def test_the_pass_mark(command: Command, upstream: Upstream, mark: str, status: int) -> None:
    upstream.pull_request({"work/ben/sampling.py": answer(wrong=True)})
    done = ci(command, upstream, "--pass-mark", mark)
    assert done.status == status, done.stderr
    assert f"{mark} % of the points" in done.stdout
    assert "::" not in done.stdout  # plain text outside GitHub


def test_editing_what_judges_changes_nothing(command: Command, upstream: Upstream, tmp_path: Path) -> None:
    upstream.pull_request({
        "work/anna/sampling.py": template(),
        "work/anna/helper.py": "x = 1\n",
        "graders/test_temperature.py": "# nothing to check\n",
        "graders/course.toml": "id = 'none'\n",
        "reference/sampling.py": template(),
        "grade.py": "print('Score 10 / 10')\n",
        ".github/workflows/grade.yml": "on: pull_request\njobs: {}\n",
    })  # fmt: skip
    summary = tmp_path / "summary.md"
    done = ci(command, upstream, "--summary", summary)
    assert done.status == 1, done.stderr
    assert "Score 0 / 10" in done.stdout
    text = summary.read_text(encoding="utf-8")
    unused = text.partition("These changes were not used.")[2]
    assert all(
        f"- {name}" in unused for name in ("graders/test\\_temperature.py", "grade.py", ".github/workflows/grade.yml")
    )


def test_nothing_gradable(command: Command, upstream: Upstream, tmp_path: Path) -> None:
    upstream.pull_request({"README.md": "Changed.\n"})
    reports = tmp_path / "reports.json"
    done = ci(command, upstream, "--json", reports)
    assert done.status == 0, done.stderr
    assert "changes nothing that is graded" in done.stdout
    assert json.loads(reports.read_text(encoding="utf-8")) == []


def test_work_in_the_wrong_place_does_not_pass(command: Command, upstream: Upstream) -> None:
    upstream.pull_request({"elsewhere/sampling.py": answer()})
    done = ci(command, upstream, "--path", "work", env=ON_GITHUB)
    assert done.status == 1, done.stderr
    assert "::error file=elsewhere/sampling.py,title=Not graded::" in done.stdout


HOSTILE = '''
def temperature_softmax(logits, temperature):
    """Fails in every way that could speak to the runner."""
    print("::error::printed")
    print("::add-mask::a")
    raise RuntimeError("::set-output name=x::y\\n::error file=graders/course.toml::raised\\n##[error]old\\r::debug::z "
                       "</pre><img src=http://example.org/x> ![x](http://example.org/x) @everyone | `code`")
'''


def test_workflow_commands_in_output_and_names_are_not_obeyed(
    command: Command, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.raw_pull_request({
        b"work/a,b:%0A::error::x/sampling.py": ("100644", HOSTILE.encode()),
        b"work/a,b:%0A::error::x/n\n::error::y.py": ("100644", b"x = 1\n"),
        b"other\n::error::z.txt": ("100644", b"x"),
    })  # fmt: skip
    summary = tmp_path / "summary.md"
    done = ci(command, upstream, "--summary", summary, env=ON_GITHUB)
    assert done.status == 1, done.stderr
    obeyed = [line for line in runner(done.stdout) if not line.startswith("::error file=work/a%2Cb%3A%250A%3A%3A")]
    assert obeyed == []
    errors = [line for line in runner(done.stdout) if line.startswith("::error")]
    assert errors and len(errors) <= 10
    assert all("sampling.py,line=6,endLine=6,title=" in line for line in errors)  # where it raises
    text = summary.read_text(encoding="utf-8")
    assert "<img" not in text and "&lt;/pre&gt;" in text
    markdown = re.sub(r"(?s)<pre>.*?</pre>", "", text)  # in there, nothing is Markdown
    assert "![x]" in text and "![x]" not in markdown
    assert "::" not in done.stderr


def runner(text: str) -> list[str]:
    """The lines that GitHub's runner would take for commands: actions/runner, ActionCommandManager."""
    found, stopped = [], ""
    for line in re.split(r"\r\n|\r|\n", text):
        bare = line.strip()
        if stopped:
            stopped = "" if bare == f"::{stopped}::" else stopped
        elif bare.startswith("::stop-commands::"):
            stopped = bare.removeprefix("::stop-commands::")
        elif bare.startswith("::") or (not bare.startswith("::") and "##[" in line):
            found.append(bare)
    assert not stopped
    return found


def test_the_cover_is_needed(command: Command, upstream: Upstream) -> None:
    """The same work graded without GitHub prints lines that the runner would obey, were they not covered."""
    upstream.raw_pull_request({b"work/m/sampling.py": ("100644", HOSTILE.encode())})
    assert runner(ci(command, upstream).stdout)


def test_what_cannot_be_read_is_a_result(command: Command, upstream: Upstream, tmp_path: Path) -> None:
    too_many = {f"work/anna/f{number}.txt": "x" for number in range(501)}
    upstream.pull_request({**too_many, "work/anna/sampling.py": answer(), "work/ben/sampling.py": answer()})
    reports = tmp_path / "reports.json"
    done = ci(command, upstream, "--json", reports, "--pass-mark", "0", env=ON_GITHUB)
    assert done.status == 1, done.stderr
    assert "::error title=work/anna::work/anna holds more than 500 files." in done.stdout
    assert [report["student"]["id"] for report in json.loads(reports.read_bytes())] == ["work/ben"]


def test_a_missing_commit_is_told_to_github(command: Command, upstream: Upstream) -> None:
    done = ci(command, upstream, env=ON_GITHUB)  # nobody made `pr`
    assert done.status == 2
    assert done.stdout.startswith("::error title=headcheck::There is no commit pr in this clone.%0A")
    plain = ci(command, upstream)
    assert plain.status == 2 and plain.stderr.startswith("grade.py: There is no commit pr in this clone.")


def test_no_sandbox_no_grading(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = type("Lacking", (), {"isolation": "process", "missing": ["Landlock is off."]})()
    monkeypatch.setattr(offer, "probe", lambda: lacking)
    with pytest.raises(Problem, match=r"no sandbox.*Landlock is off") as caught:
        run.check_isolation("sandbox")
    assert "--isolation process" in caught.value.help
    run.check_isolation("process")


def test_the_summary_file_that_github_names(command: Command, upstream: Upstream, tmp_path: Path) -> None:
    upstream.pull_request({"README.md": "Changed.\n"})
    summary = tmp_path / "step-summary"
    done = ci(command, upstream, env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert done.status == 0, done.stderr
    assert summary.read_text(encoding="utf-8").startswith("## Picking the next token\n")


def compare(golden: Path, made: bytes, request: pytest.FixtureRequest) -> None:
    """`--update-goldens` writes the file instead."""
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(made)
    assert made == golden.read_bytes(), "python -m pytest --update-goldens writes it anew: look at what changed"
