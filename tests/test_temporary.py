"""Temporary folders: gone after every end of a run, whenever a signal came."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from batch_corpus import BATCH, corpus, group_members

from transpiler.temporary import signals_held, temporary_folder
from transpiler.workers import Pool


class _Stopped(BaseException):
    pass


@pytest.fixture(autouse=True)
def _stop() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Stopped

    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_a_signal_while_the_folder_is_made_or_removed_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupting(act: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **more: object) -> object:
            os.kill(os.getpid(), signal.SIGTERM)
            done = act(*args, **more)
            os.kill(os.getpid(), signal.SIGTERM)
            return done

        return run

    for name in ("tempfile.mkdtemp", "shutil.rmtree"):
        with monkeypatch.context() as patch:
            module, _, function = name.partition(".")
            patch.setattr(name, interrupting(getattr(__import__(module), function)))
            with pytest.raises(_Stopped), temporary_folder("x-") as folder:
                (folder / "file").write_text("text")
        assert not list(place.iterdir())


def test_signals_are_handled_after_the_block() -> None:
    done = []
    with pytest.raises(_Stopped), signals_held(), signals_held():
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("block")
    assert done == ["block"]


@contextmanager
def untidy_worker() -> Iterator[Callable[[str], str]]:
    def handle(task: str) -> str:
        made = tempfile.mkdtemp(prefix="left-")
        if task == "die":
            os._exit(3)
        return made

    yield handle


def test_what_workers_leave_is_removed(place: Path) -> None:
    with Pool(2, untidy_worker) as pool:
        for task in ("one", "die", "two"):
            pool.submit(task)
        made = [Path(str(result)) for task, result in pool.results() if task != "die"]
        assert len({folder.parent for folder in made}) == 1 and all(folder.is_dir() for folder in made)
    assert not list(place.iterdir())


def test_a_signal_while_workers_start_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def started(pool: Pool) -> object:
        begun.append(worker := start(pool))
        os.kill(os.getpid(), signal.SIGTERM)
        return worker

    start = Pool._worker
    monkeypatch.setattr(Pool, "_worker", started)
    with pytest.raises(_Stopped), Pool(2, untidy_worker):
        raise AssertionError("it goes on")
    assert not [worker for worker in begun if worker.process.is_alive()]
    assert not list(place.iterdir())


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("delay", [0.3, 0.6, 0.9, 1.2, 1.6])
def test_terminating_leaves_nothing_behind(place: Path, tmp_path: Path, workers: str, delay: float) -> None:
    corpus(tmp_path, alpha="x * 2", beta="ct.exp(x)")
    command = [workers if part == "2" else part for part in BATCH]
    child = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(delay)
    os.killpg(child.pid, signal.SIGTERM)
    _, err = child.communicate(timeout=60)
    assert child.returncode in (143, -signal.SIGTERM, 0)  # before its first line, and when it was done already
    assert "Traceback" not in err
    assert not group_members(child.pid)
    assert not list(place.iterdir())
