"""The rewritings behind the equivalences of :mod:`.equivalences`: functions on numbered expressions.

A rewriting gets the numbering, the key of an expression's form and its operands' numbers, and returns
the number of an equal expression, or None where it doesn't apply.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from transpiler.tileir.constants import by_bits, constant_bits, converted, is_uniform, width
from transpiler.tileir.graph import BRANCH, FALSE, GAMMA, TRUE
from transpiler.tileir.model import FORMS, Form, TileType, is_token, tile_type

if TYPE_CHECKING:
    from transpiler.tileir.numbering import Numbering, Rewrite


def counted(name: str, rewrite: Rewrite) -> Rewrite:
    """Wrap a rewriting so that each use of it is counted under its equivalence's name."""

    def apply(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
        number = rewrite(numbering, key, args)
        if number is not None:
            numbering.count(name)
        return number

    return apply


@lru_cache(maxsize=4096)
def shape_form(name: str, source: str, result: str, permutation: str = "") -> int:
    """Return the key of a reshape, broadcast or permute between two tile types."""
    attributes = (("permutation", permutation),) if permutation else ()
    return Form(name, attributes, ("",), (source,), (result,)).key


@lru_cache(maxsize=4096)
def constant_form(value: str, type_text: str) -> int:
    """Return the key of a constant that prints ``<value>`` (``i32:7``)."""
    return Form("constant", (("value", value),), (), (type_text,), (type_text,)).key


def constant_value(numbering: Numbering, number: int) -> str | None:
    """Return the printed value of a constant with one value for all elements (``i32:7``), else None."""
    form = numbering.form(number)
    if form.name != "constant":
        return None
    value = form.get("value")
    return value if value is not None and is_uniform(value) else None


@lru_cache(maxsize=4096)
def _integer(value: str) -> tuple[int, int] | None:
    """Read ``i32:-5`` as (width, value in two's complement); booleans are i1 with 0 and -1."""
    kind, _, digits = value.partition(":")
    if not kind.startswith("i") or not kind[1:].isdigit():
        return None
    if digits in ("true", "false"):
        return 1, -int(digits == "true")
    try:
        return int(kind[1:]), int(digits)
    except ValueError:
        return None


def integer_value(numbering: Numbering, number: int) -> tuple[int, int] | None:
    """Return (width, value) of an integer constant with one value for all elements."""
    value = constant_value(numbering, number)
    return None if value is None else _integer(value)


def _print_integer(width: int, value: int) -> str:
    return f"i1:{'true' if value else 'false'}" if width == 1 else f"i{width}:{value}"


def _permutation(form: Form) -> tuple[int, ...]:
    return tuple(int(i) for i in (form.get("permutation") or "").split(","))


def identity_shape(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    form = FORMS[key]
    if form.operand_types != form.result_types:
        return None
    if form.name == "permute" and list(_permutation(form)) != list(range(len(_permutation(form)))):
        return None
    return args[0]


def identity_cast(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    form = FORMS[key]
    return args[0] if form.operand_types == form.result_types else None


def splat_of_constant(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    value = constant_value(numbering, args[0])
    return None if value is None else numbering.cons(constant_form(value, FORMS[key].result_types[0]), ())


def reshape_of_reshape(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    inner = numbering.form(args[0])
    if inner.name != "reshape":
        return None
    outer = shape_form("reshape", inner.operand_types[0], FORMS[key].result_types[0])
    return numbering.cons(outer, numbering.args(args[0]))


def splat_of_scalar(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    """Bring ``broadcast``/``reshape``/``permute`` chains over a one-element tile to reshape to ones, then broadcast."""
    form = FORMS[key]
    result = form.result_types[0]
    source, source_type = args[0], form.operand_types[0]
    while numbering.form(source).name in ("reshape", "broadcast", "permute") and tile_type(source_type).size > 1:
        source_type = numbering.form(source).operand_types[0]
        source = numbering.args(source)[0]
    if tile_type(source_type).size > 1 or tile_type(result).size == 1:
        return None
    if numbering.form(source).name == "reshape":
        source_type = numbering.form(source).operand_types[0]
        source = numbering.args(source)[0]
    ones = tile_type(result).with_shape((1,) * len(tile_type(result).shape))
    canonical = (shape_form("broadcast", ones, result), (_reshape(numbering, source, source_type, ones),))
    return None if canonical == (key, args) else numbering.cons(*canonical)


def _reshape(numbering: Numbering, source: int, source_type: str, result: str) -> int:
    return source if source_type == result else numbering.cons(shape_form("reshape", source_type, result), (source,))


def permute_of_permute(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    inner = numbering.form(args[0])
    if inner.name != "permute":
        return None
    outer, first = FORMS[key], _permutation(inner)
    order = ",".join(str(first[i]) for i in _permutation(outer))
    return numbering.cons(
        shape_form("permute", inner.operand_types[0], outer.result_types[0], order), numbering.args(args[0])
    )


def scan_of_permute(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    """Turn ``scan(permute(x, p), dim=d)`` into ``permute(scan(x, dim=p[d]), p)``; one operand only."""
    form, inner = FORMS[key], numbering.form(args[0])
    if inner.name != "permute" or len(form.operand_types) != 1 or is_token(form.operand_types[0]):
        return None
    order = _permutation(inner)
    attributes = tuple((k, str(order[int(v)]) if k == "dim" else v) for k, v in form.attributes)
    source_type = inner.operand_types[0]
    scan = Form("scan", attributes, form.roles, (source_type,), (source_type,))
    scanned = numbering.cons(scan.key, (numbering.args(args[0])[0], *args[1:]))
    permute = shape_form("permute", source_type, form.result_types[0], ",".join(map(str, order)))
    return numbering.cons(permute, (scanned,))


def permute_of_uniform_scan(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    """Turn ``permute(scan(u, dim=d), p)`` into ``scan(permute(u, p), dim=i)`` with p[i] = d, for u with one value."""
    inner = numbering.form(args[0])
    if inner.name != "scan" or len(inner.operand_types) != 1 or inner.operand_types != inner.result_types:
        return None
    source, *body = numbering.args(args[0])
    if not _uniform(numbering, source):
        return None
    order, result = _permutation(FORMS[key]), FORMS[key].result_types[0]
    attributes = tuple((k, str(order.index(int(v))) if k == "dim" else v) for k, v in inner.attributes)
    permute = shape_form("permute", inner.operand_types[0], result, ",".join(map(str, order)))
    scan = Form("scan", attributes, inner.roles, (result,), (result,))
    return numbering.cons(scan.key, (numbering.cons(permute, (source,)), *body))


def _uniform(numbering: Numbering, number: int) -> bool:
    """Say whether a tile holds one value, by its normal form: a constant, or a broadcast of one element."""
    if constant_value(numbering, number) is not None:
        return True
    form = numbering.form(number)
    return form.name == "broadcast" and tile_type(form.operand_types[0]).size == 1


def float_by_bits(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    """Give a float constant its normal form, its bits: the same number may print in several ways."""
    form = FORMS[key]
    value = form.get("value") or ""
    found = constant_bits(value) if value.startswith(("f", "bf")) else None
    canonical = None if found is None else by_bits(*found)
    if canonical is None or canonical == value:
        return None
    return numbering.cons(constant_form(canonical, form.result_types[0]), ())


def bitcast_of_constant(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    value, result = constant_value(numbering, args[0]), FORMS[key].result_types[0]
    found = None if value is None else constant_bits(value)
    element = tile_type(result).element
    if found is None or width(element) != width(found[0]):
        return None
    return numbering.cons(constant_form(by_bits(element, found[1]), result), ())


def fold_float_conversion(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    form = FORMS[key]
    value, result = constant_value(numbering, args[0]), form.result_types[0]
    exactly = form.get("rounding") in (None, "nearest_even") and form.get("flush_to_zero") is None
    if value is None or not exactly:
        return None
    found = converted(value, tile_type(result).element)
    return None if found is None else numbering.cons(constant_form(found, result), ())


def fold_integer_cast(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    constant, form = integer_value(numbering, args[0]), FORMS[key]
    width = _width(tile_type(form.result_types[0]))
    if constant is None or width is None:
        return None
    value = constant[1]
    if form.name == "exti":
        if form.get("signedness") == "unsigned":
            value &= (1 << constant[0]) - 1
    elif form.get("overflow") is not None:
        return None
    return numbering.cons(constant_form(_print_integer(width, _wrap(value, width)), form.result_types[0]), ())


def _wrap(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _width(tile: TileType) -> int | None:
    name = tile.element
    return int(name[1:]) if name.startswith("i") and name[1:].isdigit() else None


_EXACT_BITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def fold_itof(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    constant, form = integer_value(numbering, args[0]), FORMS[key]
    element = tile_type(form.result_types[0]).element
    if constant is None or element not in _EXACT_BITS:
        return None
    width, value = constant
    if form.get("signedness") == "unsigned":
        value &= (1 << width) - 1
    if abs(value) > (1 << _EXACT_BITS[element]) or (element == "f16" and abs(value) > 2048):
        return None
    return numbering.cons(constant_form(f"{element}:{print_float(float(value))}", form.result_types[0]), ())


def print_float(value: float) -> str:
    """Print as MLIR does: ``%e`` with 6 digits if that reads back as the same float, else all digits.

    Only for the values of :func:`fold_itof`: integers that the type represents exactly.
    """
    text = f"{value:.6e}"
    if float(text) == value:
        return text
    mantissa, exponent = f"{value:.17e}".split("e")
    return f"{mantissa.rstrip('0')}E{exponent[0]}{exponent[1:].lstrip('0')}"


def fold_integer_arithmetic(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    left, right = integer_value(numbering, args[0]), integer_value(numbering, args[1])
    if left is None or right is None or left[0] != right[0] or left[0] == 1:
        return None
    form = FORMS[key]
    if form.get("overflow") is not None:  # with it some sums are undefined that fit the type
        return None
    value = _arithmetic(form, left[1], right[1])
    width = left[0]
    if value is None or not -(1 << (width - 1)) <= value < 1 << (width - 1):
        return None
    return numbering.cons(constant_form(_print_integer(width, value), form.result_types[0]), ())


def _arithmetic(form: Form, left: int, right: int) -> int | None:
    name, signed = form.name, form.get("signedness") == "signed"
    if name == "addi":
        return left + right
    if name == "subi":
        return left - right
    if name == "muli":
        return left * right
    if name == "divi" and signed and right > 0:
        rounding = form.get("rounding")
        toward_zero = abs(left) // right * (-1 if left < 0 else 1)
        return {"negative_inf": left // right, "positive_inf": -(-left // right), None: toward_zero}.get(rounding)
    if name in ("mini", "maxi") and signed:
        return min(left, right) if name == "mini" else max(left, right)
    return None


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_than_or_equal": operator.le,
    "greater_than": operator.gt,
    "greater_than_or_equal": operator.ge,
}


def fold_integer_comparison(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    left, right = integer_value(numbering, args[0]), integer_value(numbering, args[1])
    form = FORMS[key]
    compare = _COMPARE.get(form.get("predicate") or "")
    if left is None or right is None or compare is None or left[0] != right[0]:
        return None
    mask = (1 << left[0]) - 1 if form.get("signedness") == "unsigned" else -1
    value = _print_integer(1, int(compare(left[1] & mask, right[1] & mask)))
    return numbering.cons(constant_form(value, form.result_types[0]), ())


def known_condition(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    if key == GAMMA:
        condition = numbering.definitions[args[0]][0]
        return args[1] if condition == TRUE else args[2] if condition == FALSE else None
    condition = numbering.definitions[args[1]][0]
    return args[0] if (condition, key) in ((TRUE, BRANCH[True]), (FALSE, BRANCH[False])) else None


def same_in_both_branches(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    return args[1] if args[1] == args[2] else None


def condition_in_its_branch(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    condition, then, orelse = args
    if then != condition and orelse != condition:
        return None
    if then == condition:
        then = numbering.cons(TRUE, ())
    if orelse == condition:
        orelse = numbering.cons(FALSE, ())
    return numbering.cons(GAMMA, (condition, then, orelse))


def unvaried_by_the_loop(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    """Turn ``loop.exit(loop, v)`` into v where v doesn't depend on the loop."""
    loop, value = args
    seen: set[int] = set()
    work = [value]
    while work:
        at = work.pop()
        if at == loop:
            return None
        if at >= 0 and at not in seen:
            seen.add(at)
            work.extend(numbering.args(at))
    return value


def boolean_choice(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    then, orelse = (numbering.definitions[a][0] for a in args[1:])
    return args[0] if (then, orelse) == (TRUE, FALSE) else None


def negated_condition(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    if key == GAMMA:
        inner = _negated(numbering, args[0])
        return None if inner is None else numbering.cons(GAMMA, (inner, args[2], args[1]))
    inner = _negated(numbering, args[1])
    return None if inner is None else numbering.cons(BRANCH[key != BRANCH[True]], (args[0], inner))


def conditions_in_turn(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    """Make two branches, one in the other, of one on a choice of which one side never leads there."""
    context, condition = args
    if numbering.form(condition).name != "gamma":
        return None
    first, then, orelse = numbering.args(condition)
    elsewhere = FALSE if key == BRANCH[True] else TRUE
    for taken, side, other in ((True, then, orelse), (False, orelse, then)):
        if other >= 0 and side >= 0 and numbering.definitions[other][0] == elsewhere:
            return numbering.cons(key, (numbering.cons(BRANCH[taken], (context, first)), side))
    return None


def _negated(numbering: Numbering, condition: int) -> int | None:
    """Return c where ``condition`` is ``c xor true`` or a choice of false where c holds, true elsewhere."""
    form, args = numbering.form(condition), numbering.args(condition)
    heads = [numbering.definitions[a][0] if a >= 0 else -1 for a in args]
    if form.name == "gamma" and heads[1:] == [FALSE, TRUE]:
        return args[0]
    if form.name == "xori" and form.result_types == ("tile<i1>",):
        if heads[1] == TRUE:
            return args[0]
        if heads[0] == TRUE:
            return args[1]
    return None


def join_normal_form(numbering: Numbering, key: int, args: tuple[int, ...]) -> int | None:
    flat: set[int] = set()
    for arg in args:
        flat.update(numbering.args(arg) if numbering.form(arg).name == "join_tokens" else (arg,))
    implied = {t for token in flat for t in happens_after(numbering, token)}
    kept = sorted(t for t in flat if t not in implied and numbering.form(t).name != "make_token")
    if not kept:
        kept = [min(flat)]
    if len(kept) == 1:
        return kept[0]
    canonical = Form("join_tokens", (), ("",) * len(kept), ("token",), ("token",)).key
    return None if (canonical, tuple(kept)) == (key, args) else numbering.cons(canonical, tuple(kept))


def happens_after(numbering: Numbering, token: int) -> set[int]:
    """Return the tokens that an operation's result token is known to come after, itself excluded."""
    found: set[int] = set()
    work = [token]
    while work:
        for before in _waits_for(numbering, work.pop()):
            if before not in found:
                found.add(before)
                work.append(before)
    return found


def _waits_for(numbering: Numbering, token: int) -> tuple[int, ...]:
    form, args = numbering.form(token), numbering.args(token)
    if form.name in ("result", "load.token"):
        token = args[0]
        form, args = numbering.form(token), numbering.args(token)
    if form.name == "join_tokens":
        return args
    if "token" in form.roles:
        operands = args[:-1] if args[-1] < 0 else args
        operands = operands[len(operands) - len(form.roles) :]
        return tuple(a for role, a in zip(form.roles, operands, strict=True) if role == "token")
    return ()
