"""Printing, assertions, strings for messages, and the order between dependent grids."""

from __future__ import annotations

import re
from collections.abc import Callable

from transpiler.ir.tir import Value
from transpiler.ir.types import TOKEN, DType
from transpiler.rules.registry import Rule, unsupported
from transpiler.specialize.evaluate import Evaluator
from transpiler.specialize.values import Const, HoleError, HoleVal, TextVal, TupleVal, Val, const, describe

_LIMIT = "cutile 0.5 prints one tile a statement in order with memory (print_tko); its cuda_tile_print! has no order"
_CONVERSION = re.compile(r"%[0 #+-]?\d*(?:\.\d+)?(?:hh|h|ll|l)?([a-zA-Z])")
_INTEGERS, _FLOATS = "diuoxX", "eEfFgGaA"
_SPEC = re.compile(r"([<>^])?([+ -])?(#)?(0)?(\d+)?(?:\.(\d+))?([diouxXeEfFgGaA])?")


# -- strings ------------------------------------------------------------------------------------------


def _text(ev: Evaluator, v: Val, how: Callable[[object], str] = str) -> TextVal:
    """What ``str(v)`` or ``repr(v)`` is."""
    match v:
        case TextVal():
            return v
        case Const(value=value):
            ev.decide_type(v)
            ev.decide(v)
            return TextVal((how(value),))
        case Value():
            known = ev.known(v)
            return TextVal(((v, None),) if known is None else (str(ev.decide(known)),))
        case TupleVal(items):
            parts: list[str | tuple[Value, str | None]] = ["("]
            for i, item in enumerate(items):
                parts += [", "] * (i > 0) + [*_text(ev, item, repr).parts]
            return TextVal((*parts, ",)" if len(items) == 1 else ")"))
        case HoleVal():
            raise HoleError("", "", ev.span, silent=True)
        case _:
            ev.hole("E0301", f"printing {describe(v)} has no rule")


def _format_string(ev: Evaluator, *parts: Val) -> Val:
    found: list[str | tuple[Value, str | None]] = []
    for part in parts:
        if isinstance(part, Const) and isinstance(part.value, (bool, int, float)):
            part = ev.tile(part)
        # what stands in braces is an argument even where its value is known
        found += ((part, None),) if isinstance(part, Value) else _text(ev, part).parts
    return TextVal(tuple(found))


def _format(ev: Evaluator, value: Val, spec: Val) -> Val:
    text = ev.decided(spec, "a format specification")
    return TextVal(((ev.tile(value), str(text)),))


def _conversion(ev: Evaluator, d: DType, spec: str | None) -> str:
    """The conversion of C's printf for a tile of this dtype."""
    d = ev.fix(d)
    if d.is_float:
        inferred = "lf" if d.bits == 64 else "f"
    else:
        inferred = ("ll" if d.bits == 64 else "") + ("d" if d.signed or d.category == "bool" else "u")
    if spec is None:
        return f"%{inferred}"
    found = _SPEC.fullmatch(spec)
    if found is None:
        ev.refuse(f"the format specification {spec!r} isn't supported")
    align, sign, alternative, zero, width, precision, kind = found.groups()
    if kind is not None and kind not in (_FLOATS if d.is_float else _INTEGERS):
        ev.refuse(f"the format specification {spec!r} doesn't fit {d}")
    flags = ("-" if align == "<" else "") + (sign if sign in ("+", " ") else "") + (alternative or "")
    flags += "0" if zero and align != "<" else ""
    return f"%{flags}{width or ''}{f'.{precision}' if precision is not None else ''}{kind or inferred}"


# -- printing -----------------------------------------------------------------------------------------


def _emit(ev: Evaluator, template: str, values: list[Value]) -> Val:
    if len(values) != 1:
        ev.hole("E0302", f"printing {len(values) or 'no'} tiles in one statement: {_LIMIT}", "print each by itself")
    ev.emit("print", tuple(values), (TOKEN,), format=template, count=1)
    return const(None)


def _print(ev: Evaluator, *args: Val, sep: Val, end: Val) -> Val:
    parts: list[str | tuple[Value, str | None]] = []
    for i, arg in enumerate(args):
        parts += [*_text(ev, sep).parts] * (i > 0) + [*_text(ev, arg).parts]
    parts += _text(ev, end).parts
    template, values = "", []
    for part in parts:
        if isinstance(part, str):
            template += part.replace("%", "%%")
        else:
            template += _conversion(ev, ev.type_of(part[0]).dtype, part[1])
            values.append(part[0])
    return _emit(ev, template, values)


def _printf(ev: Evaluator, format: Val, *args: Val) -> Val:
    text = str(ev.decided(format, "the format"))
    values = [ev.tile(a) for a in args]
    kinds = _CONVERSION.findall(text.replace("%%", ""))
    if len(kinds) != len(values):
        ev.refuse(f"the format wants {len(kinds)} arguments, not {len(values)}")
    for kind, v in zip(kinds, values, strict=True):
        d = ev.fix(ev.type_of(v).dtype)
        if kind not in (_FLOATS if d.is_float else _INTEGERS):
            ev.refuse(f"the conversion `{kind}` doesn't fit {d}")
    return _emit(ev, text, values)


# -- assertions and grids -----------------------------------------------------------------------------


def _assert(ev: Evaluator, cond: Val, message: Val) -> Val:
    condition = ev.tile(cond, "the condition")
    ty = ev.type_of(condition)
    if ty.dtype.category != "bool":
        ev.refuse(f"an assertion needs a bool, not {ty.dtype}")
    text = "" if isinstance(message, Const) and message.value is None else str(ev.decided(message, "the message"))
    ev.emit("assert", (condition,), message=text)
    return const(None)


def _grid(opcode: str) -> Callable[..., Val]:
    def lower(ev: Evaluator) -> Val:
        ev.emit(opcode, (), (TOKEN,))
        return const(None)

    return lower


ROWS: tuple[Rule, ...] = (
    Rule("builtins.format_string", "*parts", "an f-string, for messages", _format_string),
    Rule("builtins.format", "value, spec, /", "a value with a format specification in an f-string", _format),
    Rule("builtins.str", "x, /", "a value as text", _text),
    Rule("builtins.repr", "x, /", "a value as Python's text", lambda ev, x: _text(ev, x, repr)),
    Rule("cuda.tile.printf", "format, *args", "print one tile with a format of C", _printf),
    *(Rule(n, "*args, sep=' ', end='\\n'", "print one tile between texts", _print)
      for n in ("cuda.tile.print", "builtins.print")),
    Rule("cuda.tile.assert_", "cond, /, message=None", "stop where an element isn't true", _assert),
    Rule("cuda.tile.grid_dependency_control_wait", "", "wait for the grids that this one depends on",
         _grid("gdc_wait")),
    Rule("cuda.tile.grid_dependency_control_launch_dependents", "", "let dependent grids start", _grid("gdc_launch")),
    unsupported("cuda.tile.static_exception", "only `raise` takes it, which has no mapping; ct.static_assert has"),
)  # fmt: skip
