"""The limit for the assembler's time: it ends assemblers of this process, nothing else, and only while it holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from transpiler.runtime import compiler_timeout

SLEEP = shutil.which("sleep") or ""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[object]:
    """Start a program of a name that sleeps for a minute."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> subprocess.Popen[bytes]:
        shutil.copy(SLEEP, tmp_path / name)
        started.append(subprocess.Popen([tmp_path / name, "60"]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_an_assembler_that_takes_too_long_is_ended(sleeper: type[subprocess.Popen[bytes]]) -> None:
    with compiler_timeout(0.3):
        slow, other = sleeper("tileiras"), sleeper("ptxas")
        assert slow.wait(30) == -9
        assert other.poll() is None
        again = sleeper("tileiras")
        assert again.wait(30) == -9


def test_what_the_assembler_runs_is_ended_too(tmp_path: Path) -> None:
    """It holds the assembler's pipes, so that who waits for its output waits for both."""
    program = tmp_path / "tileiras"
    program.write_text("#!/bin/sh\nsh -c 'sleep 60; true'; true\n")
    program.chmod(0o755)
    with compiler_timeout(0.3):
        done = subprocess.run([program], capture_output=True, check=False, timeout=30)
    assert done.returncode == -9


def test_the_limit_ends_with_the_block(sleeper: type[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(KeyError), compiler_timeout(0.2):
        raise KeyError
    slow = sleeper("tileiras")
    time.sleep(0.6)
    assert slow.poll() is None


def test_of_nested_limits_the_shortest_holds(sleeper: type[subprocess.Popen[bytes]]) -> None:
    with compiler_timeout(0.2), compiler_timeout(50):
        assert sleeper("tileiras").wait(30) == -9


def test_an_assembler_of_another_process_is_left_alone(tmp_path: Path) -> None:
    shutil.copy(SLEEP, tmp_path / "tileiras")
    text = "import subprocess, sys; print(subprocess.run([sys.argv[1], '0.8']).returncode)"
    other = subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path / "tileiras")], stdout=subprocess.PIPE, text=True
    )
    with compiler_timeout(0.1):
        assert other.communicate()[0] == "0\n"


def test_the_limit_of_cuda_tile_holds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import cuda.tile as ct

    limits: list[float | None] = []

    @contextmanager
    def theirs(seconds: float) -> Iterator[None]:
        limits.append(seconds)
        yield
        limits.append(None)

    monkeypatch.setattr(ct, "compiler_timeout", theirs)
    with compiler_timeout(7):
        assert limits == [7]
    assert limits == [7, None]
