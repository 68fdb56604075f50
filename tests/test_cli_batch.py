"""Batches: crashes are contained, shards add up, output doesn't depend on hash seeds or workers, Ctrl-C is clean."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from batch_corpus import BATCH, corpus, files, group_members, timeless

from transpiler import cli
from transpiler.diagnostics import TranspileError
from transpiler.jobs import KernelJob, OperatorJob, display_path, operator_name
from transpiler.shards import distinct_names, shard
from transpiler.spec import Specialization
from transpiler.workers import Crash, Pool

# The pool


@contextlib.contextmanager
def worker() -> Iterator[Callable[[object], object]]:
    def handle(task: object) -> object:
        if task == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "hang":
            time.sleep(60)
        return f"did {task}"

    yield handle


def test_a_crash_costs_one_task() -> None:
    with Pool(2, worker) as pool:
        for task in ("a", "die", "b", "c"):
            pool.submit(task)
        results = dict(pool.results())
    assert results == {"a": "did a", "b": "did b", "c": "did c", "die": Crash("killed by signal 9")}


def test_a_task_that_takes_too_long_is_stopped() -> None:
    started = time.monotonic()
    with Pool(1, worker, time_limit=1.0) as pool:
        pool.submit("hang", cost=2.0)
        pool.submit("a")
        results = list(pool.results())
    assert results == [("hang", Crash("it took more than 1 s")), ("a", "did a")]
    assert time.monotonic() - started < 20


def test_expensive_tasks_go_first_and_more_may_come() -> None:
    seen = []
    with Pool(1, worker) as pool:
        for task, cost in (("small", 1.0), ("large", 9.0), ("middle", 5.0)):
            pool.submit(task, cost)
        for task, _ in pool.results():
            seen.append(task)
            if task == "large":
                pool.submit("urgent", 99.0)
    assert seen == ["large", "urgent", "middle", "small"]


# Jobs


def job(name: str, *counts: int) -> OperatorJob:
    kernels = tuple(
        KernelJob(f"k{i}", tuple(Specialization(name=f"s{n}", params={}) for n in range(count)))
        for i, count in enumerate(counts)
    )
    return OperatorJob(name, Path(f"{name}.py"), None, kernels)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_share_out_every_check_once(count: int) -> None:
    jobs = [job("a", 40, 3), job("b", 1), job("c", 7, 7)]
    everything = {(j.name, k.name, s.name) for j in jobs for k in j.kernels for s in k.specializations}
    names = [(j.name, [(k.name, [s.name for s in k.specializations]) for k in j.kernels]) for j in jobs]
    parts = [shard(names, index, count) for index in range(1, count + 1)]
    assert sorted(key for wanted in parts for key in wanted) == sorted(everything)
    sizes = [len(wanted) for wanted in parts]
    assert max(sizes) - min(sizes) <= 8


def test_names_of_operators_and_paths() -> None:
    assert operator_name(Path("my-kernels.v2.py")) == "my_kernels_v2"
    assert operator_name(Path("2d.py")) == "_2d"
    assert operator_name(Path("/x/pack/__init__.py")) == "pack"
    assert display_path(Path("./a/../b.py")) == "b.py"
    assert display_path(Path("../b.py")) is None
    assert display_path(Path("/x/b.py")) is None
    assert operator_name(Path("src.py")) == "src_"
    distinct_names([job("a"), job("b"), job("a_b")])


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("a", "a", "the operator `a`"),
        ("scale", "Scale", "`scale` and `Scale` are the same to Rust"),
        ("addRows", "addrows", "file systems that ignore case"),
        ("addRows", "add_rows", "are the same to Rust"),
        ("support", "support_", "are the same to Rust"),
    ],
)
def test_operators_that_would_share_a_place_are_refused(one: str, other: str, said: str) -> None:
    with pytest.raises(TranspileError, match=said) as caught:
        distinct_names([job("x"), job(one), job(other)])
    assert caught.value.diagnostic.code == "E0806"


def test_kernels_that_differ_in_case_only_have_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kernel = "@ct.kernel\ndef {0}(a):\n    ct.store(a, (0,), ct.full((16,), {1}, ct.float32))\n\n\n"
    launches = "def host(s, a):\n" + "".join(f"    ct.launch(s, (1,), {name}, (a,))\n" for name in ("fill", "Fill"))
    text = "import cuda.tile as ct\n\n\n" + kernel.format("fill", 1.0) + kernel.format("Fill", 2.0) + launches
    Path("two.py").write_text(text, encoding="utf-8")
    assert cli.main(["two.py"]) == 0
    written = [p.relative_to("cutile_rs").as_posix() for p in Path("cutile_rs").rglob("*") if p.is_file()]
    assert len({name.casefold() for name in written}) == len(written)
    assert cli.main(["verify", "cutile_rs"]) == 0


# Whole runs


def run(folder: Path, *arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONHASHSEED": seed}
    command = [sys.executable, "-m", "transpiler.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_one_failing_kernel_does_not_stop_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path, good="x * 2", hole="ct.frobnicate(x)", refused="ct.reshape(x, (3,))")
    (tmp_path / "broken.py").write_text("def f(:")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["batch", "corpus.toml", "broken.py", "-j", "2", "--json", "out.json", "-o", "out"]) == 1
    report = json.loads((tmp_path / "out.json").read_text())
    verdicts = {
        kernel["name"]: {check["verdict"] for entry in kernel["entries"] for check in entry["checks"]}
        for operator in report["operators"]
        for kernel in operator["kernels"]
    }
    assert verdicts == {"good": {"proved"}, "hole": {"unmapped"}, "refused": {"rejected"}}
    assert [o["name"] for o in report["operators"]] == ["broken", "good", "hole", "refused"]
    assert report["operators"][0]["diagnostics"][0]["code"] == "E0102"
    assert report["totals"]["checks"] == 12
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"good", "hole", "refused", "manifest.json"}
    assert not (tmp_path / "out" / "broken").exists()


def test_hash_seeds_and_workers_change_nothing(tmp_path: Path) -> None:
    corpus(tmp_path, alpha="x * 2 + 1", beta="ct.exp(x)")
    for name, seed, workers in (("a", "1", "1"), ("b", "77", "2")):
        done = run(tmp_path, "batch", "corpus.toml", "-j", workers, "-o", name, "--json", f"{name}.json", seed=seed)
        assert done.returncode == 0, done.stderr
    assert files(tmp_path / "a") == files(tmp_path / "b")
    reports = [timeless(json.loads((tmp_path / f"{name}.json").read_text())) for name in "ab"]
    assert reports[0] == reports[1]


def test_merged_shards_are_what_one_run_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path, alpha="x * 2", beta="ct.exp(x)", gamma="ct.frobnicate(x)")
    with (tmp_path / "corpus.toml").open("a") as manifest:  # host code alone goes with the first shard
        manifest.write('[[operators]]\nname = "only_host"\npath = "only_host.py"\nhost_only = true\n')
    (tmp_path / "only_host.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["batch", "corpus.toml", "-j", "1", "-o", "whole", "--json", "whole.json"]) == 3
    for part in ("1", "2"):
        command = [
            "batch",
            "corpus.toml",
            "-j",
            "1",
            "--shard",
            f"{part}/2",
            "-o",
            f"o{part}",
            "--json",
            f"{part}.json",
        ]
        assert cli.main(command) in (0, 3)
    assert cli.main(["merge", "2.json", "1.json", "--json", "merged.json"]) == 3
    whole, merged = (timeless(json.loads((tmp_path / f"{n}.json").read_text())) for n in ("whole", "merged"))
    assert merged == whole
    assert [(Path(f"o{part}") / "only_host/host.py").is_file() for part in "12"] == [True, False]


def test_what_is_merged_has_to_be_one_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus(tmp_path, alpha="x * 2", beta="ct.exp(x)")
    monkeypatch.chdir(tmp_path)
    for name, more in {"1": ["--shard", "1/3"], "3": ["--shard", "3/3"], "half": ["--shard", "1/2"], "whole": [],
                       "other": ["--shard", "2/3", "--target", "sm_100"]}.items():  # fmt: skip
        assert cli.main(["batch", "corpus.toml", "-j", "1", "-o", "out", "--json", f"{name}.json", *more]) == 0

    def merged(*names: str) -> tuple[int, str]:
        capsys.readouterr()
        status = cli.main(["merge", *(f"{name}.json" for name in names), "--json", "merged.json"])
        return status, capsys.readouterr().err

    status, said = merged("1", "3")
    assert status == 0 and "warning[W0813]: 1 of 3 shards is missing (2/3): these are " in said
    shard = json.loads(Path("merged.json").read_text())["shard"]
    assert (shard["shards"], shard["count"]) == ([1, 3], 3)
    for others, why in {"half": "shards of different batches", "other": "shards of different batches",
                        "whole": "whole.json is the report of a whole run"}.items():  # fmt: skip
        status, said = merged("1", others)
        assert status == 2 and "error[E0812]" in said and why in said
    assert merged("whole", "whole") == (0, "")


@contextlib.contextmanager
def named_worker() -> Iterator[Callable[[str], tuple[str, int]]]:
    def handle(task: str) -> tuple[str, int]:
        time.sleep(0.05)
        return task, os.getpid()

    yield handle


def test_a_worker_goes_on_with_what_it_has_made() -> None:
    with Pool(2, named_worker) as pool:
        for index in range(4):
            pool.submit(f"long {index}", 9.0 - index, "long")
            pool.submit(f"short {index}", 5.0 - index, "short")
        pool.submit("first", 99.0)
        done = [result for _, result in pool.results()]
    assert len(done) == 9
    assert "first" in [task for task, _ in done[:2]]
    by_kind = [{pid for task, pid in done if task.startswith(kind)} for kind in ("long", "short")]
    assert [len(pids) for pids in by_kind] == [1, 1]
    assert by_kind[0] != by_kind[1]


def test_an_idle_worker_helps_with_what_another_has_made() -> None:
    with Pool(2, named_worker) as pool:
        for index in range(6):
            pool.submit(f"long {index}", 1.0, "long")
        assert len({pid for _, (_, pid) in pool.results()}) == 2


@contextlib.contextmanager
def deaf_worker() -> Iterator[Callable[[str], str]]:
    """Can't be told to leave, and answers late."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def handle(task: str) -> str:
        time.sleep(0.5 if task == "late" else 0)
        return task

    yield handle


def test_a_worker_whose_parent_left_ends_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    with Pool(2, deaf_worker) as pool:
        pool.submit("late")
        pool.submit("early")
        assert next(pool.results()) == ("early", "early")
    assert capfd.readouterr().err == ""


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    corpus(tmp_path, alpha="x * 2", beta="ct.exp(x)")
    before = files(tmp_path)
    child = subprocess.Popen(
        BATCH, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_for_worker(child)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert "interrupted" in err
    assert files(tmp_path) == before
    assert not group_members(child.pid)


def _wait_for_worker(child: subprocess.Popen[str]) -> None:
    """Wait until the run has forked its workers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        if len(group_members(child.pid)) > 2:
            return
        time.sleep(0.02)
    raise AssertionError("no workers")
