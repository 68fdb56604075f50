"""The rule table against the installed cuda-tile: every public name is a row, with the same signature."""

from __future__ import annotations

import inspect

import cuda.tile as ct
import pytest

from transpiler.rules import table
from transpiler.rules.registry import Rule, Table
from transpiler.specialize.values import const

# Public names that aren't operations of a kernel: host functions, types, annotations, enums, errors.
NOT_OPERATIONS = frozenset(
    {
        "launch", "kernel", "function", "compiler_timeout", "tune", "compilation", "ByTarget", "MemoryOrder",
        "MemoryScope", "PaddingMode", "RoundingMode", "DType", "Array", "ArrayAnnotation", "Constant",
        "ConstantAnnotation", "IndexedWithInt64", "ListAnnotation", "Scalar", "ScalarInt64", "Tile", "TiledView",
        "TileCompilerExecutionError", "TileCompilerTimeoutError", "TileError", "TileInternalError",
        "TileRecursionError", "TileStaticAssertionError", "TileStaticEvalError", "TileSyntaxError", "TileTypeError",
        "TileUnsupportedFeatureError", "TileValueError", "StaticException",
    }
)  # fmt: skip


def _operations() -> list[str]:
    names = [n for n in ct.__all__ if n not in NOT_OPERATIONS]
    return [n for n in names if not isinstance(getattr(ct, n), ct.DType)]


def test_every_public_operation_has_a_row() -> None:
    missing = [n for n in _operations() if f"cuda.tile.{n}" not in table().rows]
    assert missing == []


def test_no_row_names_something_that_cuda_tile_does_not_have() -> None:
    known = {f"cuda.tile.{n}" for n in ct.__all__} | {"cuda.tile.dtype_constructor"}
    assert [r.callee for r in table() if r.callee.startswith("cuda.tile.") and r.callee not in known] == []


def test_every_public_method_has_a_row() -> None:
    missing = [
        f"{cls.__name__}.{name}"
        for cls in (ct.Tile, ct.Array, ct.TiledView)
        for name in vars(cls)
        if not name.startswith("_") and f"{cls.__name__}.{name}" not in table().rows
    ]
    assert missing == []


def _shape(parameters: list[inspect.Parameter]) -> list[tuple[str, str, bool]]:
    return [(p.name, p.kind.name, p.default is not p.empty) for p in parameters]


@pytest.mark.parametrize("row", [r for r in table() if r.status == "exact"], ids=lambda r: r.key)
def test_signature_is_cuda_tiles(row: Rule) -> None:
    """Names, kinds and which parameters have defaults agree for every row of a public function."""
    module, _, name = row.callee.rpartition(".")
    if module != "cuda.tile" or name == "dtype_constructor":
        pytest.skip("not a public function of cuda.tile")
    theirs = list(inspect.signature(getattr(ct, name)).parameters.values())
    ours = list(table().signatures[row].parameters.values())
    assert _shape(ours) == _shape(theirs)


def test_every_unsupported_row_says_why() -> None:
    assert [r.key for r in table() if r.status == "unsupported" and not r.reason] == []


def test_every_exact_row_lowers_and_is_documented() -> None:
    assert [r.key for r in table() if r.status == "exact" and (r.lower is None or not r.doc)] == []


def test_two_rows_for_one_call_are_refused() -> None:
    row = Rule("operator.add", "x, y, /", "twice", lambda ev, x, y: x)
    with pytest.raises(ValueError, match=r"two rules match operator\.add"):
        Table([row, row])
    with pytest.raises(ValueError, match="two rules match"):
        Table([Rule("f", "x", "", accepts=("tile",)), Rule("f", "x", "", accepts=("number",))])
    Table([Rule("f", "x", "", accepts=("tile",)), Rule("f", "x", "", accepts=("tuple",))])


def test_defaults_arrive_as_constants() -> None:
    rows = table()
    (row,) = rows.rows["cuda.tile.gather"]
    bound = rows.bind(row, (const(1), const(2)), {})
    assert bound.kwargs["check_bounds"] == const(True)
