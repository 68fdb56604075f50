"""The coverage page in headless Chromium: what is shown, filters, sorting, the sources beside each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import coverage_corpus
import pytest
from browser import DESKTOP, PHONE, chromium, open_page
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from transpiler import cli


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    coverage_corpus.write_corpus(folder)
    out = folder / "coverage.html"
    assert cli.main(["coverage", str(folder / "corpus.toml"), "--html", str(out), "-j", "1"]) == 3
    return out


@pytest.fixture(scope="module")
def desktop() -> Iterator[Chrome]:
    with chromium(DESKTOP) as browser:
        yield browser


def shown(browser: Chrome, selector: str) -> list[str]:
    """The texts of the visible elements."""
    return [e.text for e in browser.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]


def content(element: WebElement) -> str:
    """The whole text, scrolled out of view or not."""
    return element.get_attribute("textContent") or ""


def find(browser: Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, selector)


def wait(browser: Chrome, until: Callable[[], bool]) -> None:
    WebDriverWait(browser, 10).until(lambda _: until())


def kernels(browser: Chrome) -> list[str]:
    return shown(browser, "#kernel-table tbody td:first-child a")


def show(browser: Chrome, page: Path, fragment: str) -> None:
    open_page(browser, page, fragment)
    section = fragment[2:].split("/")[0]
    wait(browser, lambda: find(browser, f"#{section}").is_displayed())


def test_one_file_with_everything_in_it(page: Path) -> None:
    text = page.read_text()
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#)", text)
    assert not re.findall(r"url\(|@import|<link|XMLHttpRequest|fetch\(", text)
    assert not re.findall(r"https?://(?!www\.w3\.org/)\S+", text.partition("<script")[0])
    assert str(page.parent) not in text, "no paths of this machine"
    assert "{{" not in text.partition('<script type="application/json"')[0]


def test_summary(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/summary")
    cards = " ".join(shown(desktop, ".card")).split()
    assert "2 / 4 kernels proved" in " ".join(cards)
    assert "3 / 5 checks proved" in " ".join(cards)
    captions = shown(desktop, "figcaption")
    assert (
        "Kernels by verdict" in captions and "Rules by family" in captions and "In the way, kernels blocked" in captions
    )
    assert all(svg.size["height"] > 30 for svg in desktop.find_elements(By.CSS_SELECTOR, "figure svg"))
    texts = [content(e) for e in desktop.find_elements(By.CSS_SELECTOR, "figure svg text")]
    assert {"proved 2", "unmapped 2", "arith", "memory"} <= set(texts)
    log = desktop.get_log("browser")  # type: ignore[no-untyped-call]
    assert [entry for entry in log if entry["level"] == "SEVERE"] == []


def test_filter_kernels(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/kernels")
    assert kernels(desktop) == ["copy_kernel", "largest_kernel", "smallest_kernel", "scale_kernel"]
    find(desktop, "#kernel-verdicts [data-name=unmapped]").click()
    assert kernels(desktop) == ["largest_kernel", "smallest_kernel"]
    find(desktop, "#kernel-text").send_keys("large")
    assert kernels(desktop) == ["largest_kernel"]
    assert find(desktop, "#kernel-count").text == "1 of 4"
    find(desktop, "#kernel-text").clear()
    find(desktop, "#kernel-text").send_keys("nothing like it")
    assert shown(desktop, "#kernel-table tbody") == ["Nothing fits the filters."]


def test_filter_kernels_by_a_rule(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/kernels")
    find(desktop, "#kernel-rule").send_keys("cuda.tile.exp")
    assert kernels(desktop) == ["scale_kernel"]


def test_sort_kernels(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/kernels")
    header = next(b for b in desktop.find_elements(By.CSS_SELECTOR, "#kernel-table th button") if b.text == "Checks")
    header.click()
    assert kernels(desktop)[0] == "scale_kernel"
    ordered = next(t for t in desktop.find_elements(By.CSS_SELECTOR, "#kernel-table th") if t.text.startswith("Checks"))
    assert ordered.get_attribute("aria-sort") == "descending"
    ordered.find_element(By.CSS_SELECTOR, "button").click()
    assert kernels(desktop)[-1] == "scale_kernel"


def test_filter_rules(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/rules")
    first = "#rule-table tbody td:first-child code"
    find(desktop, "#rule-states [data-name=unsupported]").click()
    find(desktop, "#rule-text").send_keys("argmax")
    assert shown(desktop, first) == ["cuda.tile.argmax"]
    assert "largest_kernel" in find(desktop, "#rule-table tbody").text
    find(desktop, "#rule-states [data-name=unsupported]").click()
    find(desktop, "#rule-text").clear()
    Select(find(desktop, "#rule-kind")).select_by_value("construct")
    find(desktop, "#rule-states [data-name=exercised]").click()
    assert "helper function" in shown(desktop, first) and "while" not in shown(desktop, first)
    find(desktop, "#rule-states [data-name=exercised]").click()
    find(desktop, "#rule-states [data-name='never exercised']").click()
    assert "while" in shown(desktop, first) and "helper function" not in shown(desktop, first)


def test_matrix(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/matrix")
    assert find(desktop, "#matrix-count").text.endswith("\u00d7 4 kernels")
    find(desktop, "#matrix-rule").send_keys("cuda.tile.exp")
    find(desktop, "#matrix-kernel").send_keys("scale")
    assert shown(desktop, "#matrix-table tbody th") == ["cuda.tile.exp"]
    assert shown(desktop, "#matrix-table tbody td") == ["2"]
    find(desktop, "#matrix-table tbody td a").click()
    wait(desktop, lambda: find(desktop, "#kernel").is_displayed())
    assert "scale_kernel" in find(desktop, "#source-title").text
    assert Select(find(desktop, "#source-rule")).first_selected_option.text == "cuda.tile.exp \u00d72"


def python_row(browser: Chrome, text: str) -> WebElement:
    rows = browser.find_elements(By.CSS_SELECTOR, "#python .row")
    return next(row for row in rows if text in content(row))


def marked(browser: Chrome, pane: str, how: str) -> list[str]:
    rows = browser.find_elements(By.CSS_SELECTOR, f"#{pane} .row.{how}")
    return [content(row).lstrip("0123456789").strip() for row in rows]


def test_python_beside_rust(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/kernel/scale.scale_kernel")
    python = content(find(desktop, "#python"))
    assert "def scaled(x, factor=FACTOR):" in python and "def scale_kernel(a, b" in python
    assert "import cuda.tile" not in python, "only what the kernel is made of"
    row = python_row(desktop, "return ct.exp(x) * factor")
    row.click()
    assert marked(desktop, "python", "pinned") == ["return ct.exp(x) * factor"]
    rust = " ".join(marked(desktop, "rust", "pinned"))
    assert "exp_with_rounding(" in rust and "fn scale_kernel" not in rust
    facts = find(desktop, "#line-facts").text
    assert facts.startswith("scale.py:7")
    assert "cuda.tile.exp" in facts and "operator.mul" in facts and "exp_with_rounding($0, $rounding)" in facts
    row.click()
    assert marked(desktop, "rust", "pinned") == []


def test_hovering_marks_both_sides(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/kernel/scale.scale_kernel")
    rust = desktop.find_elements(By.CSS_SELECTOR, "#rust .row.linked")
    loads = next(row for row in rust if "load_1d(a" in content(row))
    ActionChains(desktop).move_to_element(find(desktop, "#source-title")).move_to_element(loads).perform()
    wait(desktop, lambda: bool(marked(desktop, "python", "same")))
    assert marked(desktop, "python", "same") == ["x = ct.load(a, index=(i,), shape=(TILE,))"]
    assert "cuda.tile.load" in find(desktop, "#line-facts").text


def test_entries_and_what_is_in_the_way(page: Path, desktop: Chrome) -> None:
    show(desktop, page, "#/kernel/scale.scale_kernel")
    entries = Select(find(desktop, "#source-entry"))
    texts = []
    for index in range(len(entries.options)):
        entries.select_by_index(index)
        texts.append(content(find(desktop, "#rust")))
    assert len(texts) == 2 and sum("y + y" in text for text in texts) == 1
    show(desktop, page, "#/kernel/left.largest_kernel")
    assert "E0302" in find(desktop, "#source-facts").text and "argmax" in find(desktop, "#source-facts").text
    assert "compile_error!" in content(find(desktop, "#rust"))
    show(desktop, page, "#/missing")
    assert shown(desktop, "#missing-table tbody .verdict") == ["E0236", "E0302"]
    assert shown(desktop, "#hole-table tbody code") == ["E0236", "cuda.tile.argmax"]
    show(desktop, page, "#/proofs")
    assert "hint-key-resolved" in find(desktop, "#proof-table").text


@pytest.mark.parametrize(
    "fragment", ["summary", "kernels", "kernel/scale.scale_kernel", "rules", "matrix", "missing", "proofs", "forms"]
)
def test_on_a_phone(page: Path, phone: Chrome, fragment: str) -> None:
    """Nothing is wider than the screen: what is, such as the matrix, scrolls on its own."""
    show(phone, page, f"#/{fragment}")
    assert phone.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
    for box in phone.find_elements(By.CSS_SELECTOR, "input[type=search], select, nav a, .chips button"):
        if box.is_displayed():
            assert box.size["height"] >= 28, "large enough to tap"


def test_tapping_on_a_phone(page: Path, phone: Chrome) -> None:
    show(phone, page, "#/kernel/scale.scale_kernel")
    python_row(phone, "y = y + y")  # the panes stand above each other
    panes = [find(phone, f"#{name}").rect for name in ("python", "rust")]
    assert panes[0]["y"] + panes[0]["height"] <= panes[1]["y"]
    python_row(phone, "return ct.exp(x)").click()
    assert "exp_with_rounding(" in " ".join(marked(phone, "rust", "pinned"))


@pytest.fixture(scope="module")
def phone() -> Iterator[Chrome]:
    with chromium(PHONE) as browser:
        yield browser
