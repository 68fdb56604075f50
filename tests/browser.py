"""Headless Chromium for tests of pages: Debian's `chromium` and `chromium-driver`, which `make test` installs."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

DESKTOP = (1400, 900)
PHONE = (390, 844)


@contextlib.contextmanager
def chromium(size: tuple[int, int]) -> Iterator[webdriver.Chrome]:
    """A browser whose window is ``size`` wide and high; skips the test where there is none, but fails it in CI."""
    program, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if program is None or driver is None:
        message = "no Chromium: install Debian's chromium and chromium-driver (`make browser` does it, as root)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["http://*", "https://*"]})
        yield browser
    finally:
        browser.quit()


def open_page(browser: webdriver.Chrome, path: Path, fragment: str = "") -> None:
    """Open a local page anew."""
    browser.get("about:blank")
    browser.get(path.as_uri() + fragment)
