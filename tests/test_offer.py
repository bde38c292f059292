"""The probe of what a machine offers: what it finds here, what it says where something is missing."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from harness.worker import linux, offer

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="these mechanisms are Linux's")


def test_finds_the_plain_facts() -> None:
    found = offer.probe()
    assert found.cores >= 1
    assert found.memory_bytes > 1 << 20
    assert (found.start_method == "fork") == (sys.platform == "linux")


@linux_only
def test_leaves_the_calling_process_as_it_was() -> None:
    offer.probe()
    socket.socket().close()
    assert Path("/etc/passwd").read_text(encoding="utf-8")


@linux_only
def test_isolation_follows_what_works() -> None:
    found = offer.probe()
    assert found.landlock_abi == linux.landlock_abi()
    assert found.isolation == ("sandbox" if found.landlock_abi and found.seccomp else "process")
    if found.isolation == "process":
        assert found.missing


@linux_only
@pytest.mark.parametrize(("code", "says"), [(errno.ENOSYS, "older than 5.13"), (errno.EOPNOTSUPP, "switched off")])
def test_says_why_there_is_no_landlock(monkeypatch: pytest.MonkeyPatch, code: int, says: str) -> None:
    def none() -> int:
        ctypes.set_errno(code)
        return 0

    monkeypatch.setattr(linux, "landlock_abi", none)
    found = offer.probe()
    assert found.isolation == "process"
    assert any("Landlock" in sentence and says in sentence for sentence in found.missing)


@linux_only
def test_says_how_to_get_libseccomp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offer.ctypes.util, "find_library", lambda name: None)
    found = offer.probe()
    assert not found.seccomp and found.isolation == "process"
    assert any("libseccomp2" in sentence for sentence in found.missing)


@linux_only
@pytest.mark.parametrize("package", ["landlock", "pyseccomp"])
def test_says_which_package_is_missing(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    real = offer.find_spec
    monkeypatch.setattr(offer, "find_spec", lambda name: None if name == package else real(name))
    found = offer.probe()
    assert found.isolation == "process"
    assert any(f"package {package} is not installed" in sentence for sentence in found.missing)


@linux_only
def test_a_filter_that_the_kernel_does_not_take_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offer.syscalls, "compile_filter", lambda: b"\xff" * 16)
    found = offer.probe()
    assert not found.seccomp
    assert any("did not accept" in sentence for sentence in found.missing)


@linux_only
def test_a_filter_that_refuses_nothing_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_everything = (0x06).to_bytes(2, sys.byteorder) + b"\0\0" + (0x7FFF0000).to_bytes(4, sys.byteorder)
    monkeypatch.setattr(offer.syscalls, "compile_filter", lambda: allow_everything)
    assert not offer.probe().seccomp


@linux_only
def test_memory_and_cores_follow_the_control_group(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"memory.max": ["max", str(3 << 20)], "cpu.max": ["max 100000", "50000 100000"]}
    monkeypatch.setattr(offer, "_cgroup_settings", lambda name, *_: answers[name])
    found = offer.probe()
    assert (found.memory_bytes, found.cores) == (3 << 20, 1)


def test_elsewhere_a_process_is_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offer.sys, "platform", "darwin")
    found = offer.probe()
    assert (found.isolation, found.start_method, found.landlock_abi) == ("process", "spawn", 0)
    assert any("needs Linux" in sentence for sentence in found.missing)


def test_probes_aside_as_it_does_here() -> None:
    assert offer.probe_aside()() == offer.probe()


@linux_only
def test_probes_here_when_the_other_process_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parent, real = os.getpid(), offer.probe

    def only_here() -> offer.Offer:
        if os.getpid() != parent:
            os._exit(1)
        return real()

    monkeypatch.setattr(offer, "probe", only_here)
    assert offer.probe_aside()() == real()
