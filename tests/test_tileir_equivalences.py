"""Each named equivalence: programs that are equal by it, and near misses that must differ."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transpiler.tileir import compare, parse, selfcheck
from transpiler.tileir.equivalences import BY_NAME

CASES = Path(__file__).parent / "tileir_cases" / "equivalences.txt"
PARAMETERS = (
    "%p: tile<ptr<f32>>, %q: tile<ptr<i32>>, %n: tile<i32>, %m: tile<i32>, %c: tile<i1>, %d: tile<i1>, "
    "%x: tile<4x8xf32>, %v: tile<8xf32>, %i: tile<8xi32>, %s: tile<f32>"
)


def program(body: str) -> str:
    """Put a case's body into an entry."""
    return f"entry @k({PARAMETERS}) optimization_hints=<default = {{}}> {{\n{body}\n  return\n}}\n"


def blocks() -> list[tuple[str, list[tuple[str, str]]]]:
    """Read the case file: (equivalence, [(section, body)])."""
    found = []
    for block in re.split(r"^## ", CASES.read_text(), flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        sections = re.findall(r"^--- (\S+)\n(.*?)(?=^--- |\Z)", rest, flags=re.MULTILINE | re.DOTALL)
        found.append((name.strip(), [(kind, body.strip()) for kind, body in sections]))
    return found


BLOCKS = blocks()
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(BLOCKS)]


@pytest.mark.parametrize(("name", "sections"), BLOCKS, ids=IDS)
def test_equal_by_the_equivalence(name: str, sections: list[tuple[str, str]]) -> None:
    bodies = dict(sections)
    result = compare(parse(program(bodies["reference"])), parse(program(bodies["ours"])), target="sm_90")
    assert result.equal, result.differences
    assert result.equivalences.get(name, 0) > 0, result.equivalences
    back = compare(parse(program(bodies["ours"])), parse(program(bodies["reference"])), target="sm_90")
    assert back.equal or name == "fact-implied", back.differences


@pytest.mark.parametrize(("name", "sections"), BLOCKS, ids=IDS)
def test_near_misses_differ(name: str, sections: list[tuple[str, str]]) -> None:
    reference = dict(sections)["reference"]
    misses = [body for kind, body in sections if kind == "near-miss"]
    assert misses
    for body in misses:
        result = compare(parse(program(reference)), parse(program(body)), target="sm_90")
        assert not result.equal, body
        assert all(d.message for d in result.differences)


@pytest.mark.parametrize(("name", "sections"), BLOCKS, ids=IDS)
def test_every_program_equals_itself_reordered(name: str, sections: list[tuple[str, str]]) -> None:
    for _, body in sections:
        entry = parse(program(body)).entry()
        assert all(selfcheck(entry, target="sm_90", seed=seed) for seed in range(4)), body


def test_every_equivalence_has_a_case() -> None:
    assert {name for name, _ in BLOCKS} == set(BY_NAME)


def test_every_equivalence_is_justified() -> None:
    assert all(len(row.justification) > 40 for row in BY_NAME.values())
