"""Options and fixtures that the tests share."""

from __future__ import annotations

import signal

import pytest

from transpiler.cache.folder import PATH_VARIABLE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expected sections of case files")


def pytest_configure() -> None:
    """A shell's background job ignores interrupts, and so would all that the tests interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what another one, or the user, has cached."""
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path_factory.mktemp("cache")))
