"""A pytest plugin: TileGym's tests with both backends, and how many of our launches each test made.

    pytest -p plugin --backend-log LOG tests/ops

Keeps the tests of the backends ``cutile`` and ``cutile-rs`` that measure nothing, and writes one line of JSON a test.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cutile_kernels._runtime import launch_count
from cutile_kernels._runtime import tilegym as backend

BACKENDS = tuple(os.environ.get("BENCHMARK_BACKENDS", "cutile,cutile-rs").split(","))

backend.install()
ct: Any = importlib.import_module("cuda.tile")
_launch = ct.launch
_reference_launches = 0


def _counted_launch(*args: Any, **options: Any) -> Any:
    global _reference_launches
    _reference_launches += 1
    return _launch(*args, **options)


ct.launch = _counted_launch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend-log", help="where the outcomes go")


def backend_of(item: pytest.Item) -> str | None:
    """Return the backend that a test runs with; None for a test without one."""
    callspec: Any = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    given = params.get("backend", params.get("framework"))
    return given if isinstance(given, str) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if backend_of(item) in BACKENDS and "perf" not in item.name.partition("[")[0]]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    # Each test beside its counterpart; those that compile for minutes while they tune themselves come first.
    files = list(dict.fromkeys(item.path for item in items))
    kept.sort(key=lambda item: ("test_bmm" not in item.path.name, files.index(item.path), pair(item.nodeid)))
    items[:] = kept


def pair(test: str) -> str:
    """Return a test's name, the same for both backends."""
    return test.replace("cutile_rs", "cutile").replace("cutile-rs", "cutile")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before, reference_before = launch_count(), _reference_launches
    yield
    item.user_properties.append(("launches", launch_count() - before))
    item.user_properties.append(("reference_launches", _reference_launches - reference_before))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    name = backend_of(item)
    report.user_properties = [*item.user_properties, ("backend", name)]


class Log:
    """Writes the outcome of each test, as soon as it is known."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._rows: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        row = self._rows.setdefault(report.nodeid, {"test": report.nodeid, "outcome": "passed"})
        row["backend"] = properties.get("backend")
        for name in ("launches", "reference_launches"):
            given = properties.get(name, 0)
            row[name] = max(row.get(name, 0), given if isinstance(given, int) else 0)
        if report.outcome != "passed" and row["outcome"] != "failed":
            row["outcome"] = report.outcome
            row["why"] = str(report.longrepr)[-1500:]
        if report.when == "teardown":
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--backend-log")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Log(Path(path)), "backend-log")
