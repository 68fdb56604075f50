"""Declarations that a generated module adds to ``cutile::core``: operations that cutile 0.5 lacks or types too
narrowly, and small functions that make kernels readable.  A module holds only those that it uses.
"""

from __future__ import annotations

from collections.abc import Iterable

_CONSTANT = (
    '#[cuda_tile::op(name = "cuda_tile.constant", since = "V13_2", params = [], attribute_params = ["value:dense"])]'
)
_I32 = "Tile<i32, { [] }>"


def _constant(name: str, generic: str, value: str, element: str, doc: str) -> str:
    bounds = f"{generic}: ElementType, " if generic else ""
    return (
        f"/// {doc}\n{_CONSTANT}\n#[cuda_tile::variadic_op(N = 6)]\n"
        f"fn {name}<{bounds}const S: [i32; N]>(value: {value}, shape: Shape<S>) -> Tile<{element}, S> {{\n"
        "    unreachable!()\n}\n"
    )


def _scalar_constant(name: str, value: str, element: str, doc: str) -> str:
    return (
        f"/// {doc}\n{_CONSTANT}\nfn {name}(value: {value}) -> Tile<{element}, {{ [] }}> {{\n"
        "    let _ = value;\n    unreachable!()\n}\n"
    )


def _grid(name: str, op: str, doc: str) -> str:
    return (
        f'/// {doc}\n#[cuda_tile::op(name = "cuda_tile.{op}", since = "V13_2", params = [])]\n'
        f"fn {name}() -> ({_I32}, {_I32}, {_I32}) {{\n    unreachable!()\n}}\n"
    )


def _wrapping(op: str, doc: str) -> str:
    return (
        f'/// {doc}\n#[cuda_tile::op(name = "cuda_tile.{op}", since = "V13_2", params = ["lhs", "rhs"], '
        'named_attributes = ["overflow=none"])]\n#[cuda_tile::variadic_op(N = 6)]\n'
        f"fn {op}_wrap<E: ElementType, const S: [i32; N]>(lhs: Tile<E, S>, rhs: Tile<E, S>) -> Tile<E, S> {{\n"
        "    unreachable!()\n}\n"
    )


_UNSIGNED_PREDICATES = ", ".join(
    f"{rust}: comparison_predicate=#cuda_tile.cmp_predicate<{ir}>"
    for rust, ir in (
        ("Equal", "equal"),
        ("NotEqual", "not_equal"),
        ("LessThan", "less_than"),
        ("LessThanOrEqual", "less_than_or_equal"),
        ("GreaterThan", "greater_than"),
        ("GreaterThanOrEqual", "greater_than_or_equal"),
    )
)

# name -> text (rustfmt's layout), in the order in which they are written
DECLARATIONS: dict[str, str] = {
    "make_strided_view": "use cutile::tileir::*;\n",
    "make_gather_scatter_view": "use cutile::tileir::*;\n",
    "tile_block_id": _grid("tile_block_id", "get_tile_block_id", "The block's id along x, y and z as 0-d tiles."),
    "num_tile_blocks": _grid("num_tile_blocks", "get_num_tile_blocks", "The grid's size along x, y and z."),
    "const_i32": _scalar_constant("const_i32", "i32", "i32", "An integer as a 0-d tile."),
    "const_i64": _scalar_constant("const_i64", "i64", "i64", "A wide integer as a 0-d tile."),
    "const_f32": _scalar_constant("const_f32", "f64", "f32", "A number as a 0-d tile."),
    "splat_i32": _constant("splat_i32", "", "i32", "i32", "A tile of one integer."),
    "splat_i64": _constant("splat_i64", "", "i64", "i64", "A tile of one wide integer."),
    "splat_f32": _constant("splat_f32", "", "f64", "f32", "A tile of one number."),
    "splat_bool": _constant("splat_bool", "", "i64", "bool", "A tile of one truth value, 0 or 1."),
    "const_i": _constant(
        "const_i", "E", "i64", "E", "A tile of one integer of any type (unsigned ones as their bits)."
    ),
    "const_f": _constant("const_f", "E", "f64", "E", "A tile of one number of any floating point type."),
    "strides": """\
/// The strides that are read at run time.
#[cuda_tile::variadic_op(N = 6)]
#[cuda_tile::compiler_op(name = "return_type_meta_field", type_meta_field = "strides")]
fn strides<'s, E: ElementType, const S: [i32; N]>(tensor: &Tensor<E, S>) -> Shape<'s, S> {
    unreachable!()
}
""",
    "trunci_wrap": """\
/// Integer truncation that wraps around.
#[cuda_tile::op(name = "cuda_tile.trunci", since = "V13_2", params = ["from"], named_attributes = ["overflow=none"])]
#[cuda_tile::variadic_op(N = 6)]
fn trunci_wrap<A: ElementType, B: ElementType, const S: [i32; N]>(from: Tile<A, S>) -> Tile<B, S> {
    unreachable!()
}
""",
    "addi_wrap": _wrapping("addi", "A sum that wraps around, of any integer type."),
    "subi_wrap": _wrapping("subi", "A difference that wraps around, of any integer type."),
    "muli_wrap": _wrapping("muli", "A product that wraps around, of any integer type."),
    "shli_wrap": _wrapping("shli", "A shift to the left, of any integer type."),
    "cmpi_unsigned": f"""\
/// Integer comparison of the bits as unsigned numbers.
#[cuda_tile::op(
    name = "cuda_tile.cmpi",
    since = "V13_2",
    params = ["lhs", "rhs"],
    static_params = ["predicate={{{_UNSIGNED_PREDICATES}}}"],
    named_attributes = ["signedness=unsigned"]
)]
#[cuda_tile::variadic_op(N = 6)]
fn cmpi_unsigned<E: ElementType, const S: [i32; N], P: predicate::Mode>(
    lhs: Tile<E, S>,
    rhs: Tile<E, S>,
    predicate: P,
) -> Tile<bool, S> {{
    unreachable!()
}}
""",
    "divf_full": """\
/// Division with the rounding mode "full" (the one of cutile 0.5 lacks it).
#[cuda_tile::op(
    name = "cuda_tile.divf",
    since = "V13_2",
    params = ["lhs", "rhs"],
    static_params =
        ["rounding={Full: rounding_mode=#cuda_tile.rounding<full>}", "ftz={Enabled: flush_to_zero=unit}"]
)]
#[cuda_tile::variadic_op(N = 6)]
fn divf_full<E: ElementType, const S: [i32; N], R: rounding::Mode, F: ftz::Mode>(
    lhs: Tile<E, S>,
    rhs: Tile<E, S>,
    rounding: R,
    ftz: F,
) -> Tile<E, S> {
    unreachable!()
}
""",
    "load_ptr_padded": """\
/// A gather whose padding is a tile (the one of cutile 0.5 mistakes the rank of a scalar padding).
#[cuda_tile::op(name = "cuda_tile.load_ptr_tko", since = "V13_2", params = ["source"])]
#[cuda_tile::variadic_op(N = 6)]
unsafe fn load_ptr_padded<
    E: ElementType,
    P: PointerTo<E>,
    const S: [i32; N],
    O: ordering::LoadMode,
    Sc: scope::Mode,
    const CYCLES: i32,
>(
    source: PointerTile<P, S>,
    memory_ordering: O,
    memory_scope: Option<Sc>,
    mask: Option<Tile<bool, S>>,
    padding_value: Option<Tile<E, S>>,
    token: Option<Token>,
    latency: Latency<CYCLES>,
) -> (Tile<E, S>, Token) {
    unreachable!()
}
""",
    # It hides that a size is known: cutile would bound what is computed from it (loop indices too), which the
    # reference doesn't state, and tileiras makes other machine code of it.  (cutile's own reshape costs more time.)
    "unbounded": """\
/// The same value, of which nothing is known.
#[cuda_tile::op(name = "cuda_tile.reshape", since = "V13_2", params = ["source"])]
fn unbounded(source: Tile<i32, { [] }>) -> Tile<i32, { [] }> {
    let _ = source;
    unreachable!()
}
""",
    "to_tile": """\
/// A size as a 0-d tile.
fn to_tile(n: i32) -> Tile<i32, { [] }> {
    unbounded(scalar_to_tile(n))
}
""",
    "f32_from_bits": """\
/// The number that has these bits, as a 0-d tile.
fn f32_from_bits(bits: i32) -> Tile<f32, { [] }> {
    bitcast(to_tile(bits))
}
""",
    "to_i32": """\
/// A 0-d tile as a loop bound.
fn to_i32(x: Tile<i32, { [] }>) -> i32 {
    tile_to_scalar(x)
}
""",
    "to_i64": """\
/// A wide 0-d tile as a loop bound.
fn to_i64(x: Tile<i64, { [] }>) -> i64 {
    tile_to_scalar(x)
}
""",
    "to_bool": """\
/// A 0-d tile as a condition.
fn to_bool(x: Tile<bool, { [] }>) -> bool {
    tile_to_scalar(x)
}
""",
}


_NEEDS = {"to_tile": ("unbounded",), "f32_from_bits": ("to_tile", "unbounded")}


def used(names: Iterable[str]) -> list[str]:
    """The texts of the declarations among ``names`` and of what they need, in a fixed order."""
    wanted = set(names)
    wanted |= {needed for name in wanted & _NEEDS.keys() for needed in _NEEDS[name]}
    return list(dict.fromkeys(text for name, text in DECLARATIONS.items() if name in wanted))
