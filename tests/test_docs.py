"""The documentation: pages made from code are fresh, links lead somewhere, commands and codes exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools import reference_pages
from transpiler.arguments import COMMANDS
from transpiler.codes import CODES
from transpiler.corpora import REQUIREMENTS
from transpiler.tileir.equivalences import EQUIVALENCES

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return reference_pages.pages()


@pytest.mark.parametrize(
    "name", ["diagnostics.md", "operations.md", "coverage.schema.json", "spec.schema.json", "trust.md"]
)
def test_generated_pages_are_fresh(name: str, made: dict[str, str], request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs" / name
    if request.config.getoption("--update"):
        path.write_text(made[name], encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made[name], "run: python tools/reference_pages.py"


def test_every_public_name_has_a_line(made: dict[str, str]) -> None:
    import cuda.tile as ct

    assert [name for name in ct.__all__ if f"| `ct.{name}" not in made["operations.md"]] == []


def test_the_trust_argument_names_every_equivalence(made: dict[str, str]) -> None:
    assert all(f"**{one.name}**" in made["trust.md"] and one.justification in made["trust.md"] for one in EQUIVALENCES)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_and_commands_that_are_named_exist(page: Path) -> None:
    """Paths of the repository, codes and subcommands in the text."""
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"`((?:transpiler|tests|docs|templates|tools|corpus)/[\w./-]+)`", text)
    made_by_the_page = set(re.findall(r"^```\w+ (\S+)$", text, flags=re.MULTILINE))
    assert [p for p in paths if not (ROOT / p).exists() and p not in made_by_the_page] == []
    if page.name != "diagnostics.md":
        assert [code for code in re.findall(r"\b[EW]\d{4}\b", text) if code not in CODES] == []
    subcommands = set(re.findall(r"^(?: {4}|\$ )transpile ([a-z]+)\b(?!\.)", text, flags=re.MULTILINE))
    assert subcommands <= COMMANDS


def test_the_readme_names_the_versions_that_are_needed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["rust-version"]
    assert f"Rust {rust} or newer" in text and f"pip install --no-deps {REQUIREMENTS['tilegym']}" in text
