"""The pytest side: fixtures that checks use, and why each check ended as it did."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from harness.bench import Bench
from harness.grading import CheckInfo
from harness.messages import message
from harness.observe import observing
from harness.outcome import Evidence, Frame, Message, Status, Stop, StudentError
from harness.text import terminal
from harness.worker.client import Handle, Root


class Ended(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why a check did not pass, as plain data beside pytest's own record."""

    status: Status
    message: Message
    evidence: Evidence | None = None
    trace: tuple[Frame, ...] = ()
    raised: tuple[str, str] | None = None  # class and text of the submission's exception
    detail: str = ""
    hint: Message | None = None  # of the mistake that the check itself found
    mistake: str = ""


class GradingPlugin:
    """Runs checks against a bench; collects how they ended.

    Args:
        bench: the submission and the oracle; None when checks are only collected.
        friendly: replace pytest's traceback of a failed check by the message for the student.
    """

    def __init__(self, bench: Bench | None, *, friendly: bool = False) -> None:
        self._bench, self.friendly = bench, friendly
        self.checks: list[CheckInfo] = []
        self.output: dict[str, str] = {}
        self.ended: dict[str, Ended] = {}
        self.seen: dict[str, list[object]] = {}

    @property
    def bench(self) -> Bench:
        assert self._bench is not None, "checks run only against a bench"
        return self._bench

    def turn_to(self, bench: Bench) -> None:
        """Judge another submission from here on, forgetting what the last one's checks did."""
        self._bench = bench
        self.output, self.ended, self.seen = {}, {}, {}

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "check(info): a check that counts; see harness.grading.check")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Every test is a check with an id of its own, so that none is lost or counted twice."""
        self.checks = [info_of(item) for item in items]
        seen: set[str] = set()
        for info in self.checks:
            if info.id in seen:
                raise pytest.UsageError(f"two checks are called {info.id}")
            seen.add(info.id)

    @pytest.fixture
    def student(self, request: pytest.FixtureRequest) -> Root:
        """The submission: `student.gpt.CausalSelfAttention(config)`."""
        return self.bench.student(info_of(request.node))

    @pytest.fixture
    def reference(self, request: pytest.FixtureRequest) -> Root:
        """The course's own answer, with the same face as `student`."""
        return self.bench.reference(info_of(request.node))

    @pytest.fixture
    def draw(self, reference: Root) -> Handle:
        """Seeded inputs: `draw.normal(2, 5, 12)`; see harness.oracle.Draw."""
        return self.bench.inputs(reference)

    @pytest.fixture
    def handed_in(self) -> Mapping[str, bytes]:
        """The submitted files, name -> content: for what is read as data, and never run."""
        return MappingProxyType(self.bench.submission.files)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.excinfo is not None:
            trace = call.excinfo.traceback
            # Nobody reads where in the grader a foreseen ending was raised, and telling it takes milliseconds; of
            # another one, what is below the check's own lines.
            foreseen = isinstance(call.excinfo.value, Stop)
            call.excinfo.traceback = type(trace)([]) if foreseen else trace.cut(path=item.path)
        report = yield
        info = info_of(item)
        listener = self.bench.listener
        if call.when != "setup" or listener is None or not listener.has_begun:  # else it was taken when it had begun
            self.output[info.id] = self.output.get(info.id, "") + self.bench.output()
        if call.excinfo is not None and info.id not in self.ended:
            ended = self.ended[info.id] = explain(call.excinfo.value, report.longreprtext)
            if self.friendly and ended.status is not Status.GRADER_ERROR:
                report.longrepr = plain_text(info, ended)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        with observing() as seen:
            self.seen[info_of(pyfuncitem).id] = seen
            return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_runtest_metadata(self, item: pytest.Item) -> dict[str, Any]:
        return {"check": info_of(item).id}


def info_of(item: pytest.Item) -> CheckInfo:
    """What the check says of itself.

    Raises:
        pytest.UsageError: a test in graders/ is not a check.
    """
    mark = item.get_closest_marker("check")
    if mark is None or not (mark.args and isinstance(mark.args[0], CheckInfo)):
        raise pytest.UsageError(f"{item.nodeid} is not a check: decorate it with harness.grading.check")
    return mark.args[0]


def explain(error: BaseException, traceback: str) -> Ended:
    """How a check ended that raised `error`. Whatever is not foreseen is the grader's fault, never the student's."""
    if isinstance(error, StudentError):
        raised = (error.kinds[0], error.said)
        return Ended(status=error.status, message=error.message, trace=error.trace, raised=raised)
    if isinstance(error, Stop):
        return Ended(
            status=error.status,
            message=error.message,
            evidence=error.evidence,
            trace=error.trace,
            hint=error.hint,
            mistake=error.mistake,
        )
    if isinstance(error, AssertionError):
        text = str(error).partition("\n")[0] or "an assertion of this check does not hold"
        return Ended(status=Status.FAILED, message=message("check.assertion", text=text[:500]))
    broken = message("grader-error", kind=type(error).__name__)
    return Ended(status=Status.GRADER_ERROR, message=broken, detail=traceback[-8000:])


def plain_text(info: CheckInfo, ended: Ended) -> str:
    """A failed check as a few lines, for pytest's own terminal."""
    lines = [info.hint] if ended.status is Status.FAILED else []
    lines.append(ended.message.render())
    if ended.evidence is not None:
        lines += [f"{name + ':':<9} {value}" for name, value in ended.evidence.compared]
    return terminal("\n".join(lines))
