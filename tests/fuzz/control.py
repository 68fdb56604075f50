"""Loops, branches, helpers: the constructs that kernels are made of besides calls."""

from __future__ import annotations

from fuzz import dtypes as dt
from fuzz.memory import store_value
from fuzz.values import condition, filled, index, int_text, known_condition, literal, number, position, shape, value
from fuzz.writer import Frame, Value, Writer

NESTING = 3


def steps(w: Writer, most: int) -> None:
    """A few statements."""
    from fuzz.grammar import step  # families and control draw each other

    for _ in range(w.draw.number(1, most)):
        step(w)


def assign(w: Writer) -> None:
    """Give a name another value of its type."""
    names = [v for v in w.frame.visible if v.text.isidentifier() and v.text[0] == "v"]
    if not names:
        w.let(value(w, w.draw.pick(dt.NUMBERS), shape(w)))
        return
    target = w.draw.pick(names)
    made = value(w, target.dtype, target.shape)
    if made.text == target.text:  # the reference splits loops even where a branch assigns a name to itself
        made = filled(w, target.dtype, target.shape)
    if target.dtype in dt.NUMBERS and w.draw.chance(40):
        w.line(f"{target.text} {w.draw.pick(('+=', '*=', '-='))} {made.text}")
    else:
        w.line(f"{target.text} = {made.text}")


def body(w: Writer, most: int = 2) -> None:
    """The inside of a branch or loop: what is assigned lives on, perhaps it is stored."""
    if w.frame.indent <= NESTING and w.draw.chance(50):
        steps(w, most)
    for _ in range(w.draw.number(1, 2)):
        assign(w)
    if w.frame.visible and w.draw.chance(40):
        store_value(w, w.draw.pick(w.frame.visible))


def leave(w: Writer) -> None:
    """Perhaps leave the loop or go on with the next iteration."""
    if not w.frame.loops or w.frame.static or not w.draw.chance(25):
        return
    with w.block(f"if {condition(w)}:"):
        if w.draw.chance(50):
            assign(w)
        w.line(w.draw.pick(("continue", "break")))


def counted_loop(w: Writer) -> None:
    """``for`` over a range."""
    name = w.name("i")
    head = f"for {name} in range({_bounds(w)}):"
    _carried(w)
    with w.block(head, loop=True):
        w.bind(Value(name, "int32"))
        if w.draw.chance(30):
            with w.block(f"if {name} {w.draw.pick(('>=', '<', '==', '>'))} {position(w).text}:"):
                assign(w)
        body(w)
        leave(w)
        if w.draw.chance(30):
            assign(w)


def _bounds(w: Writer) -> str:
    stop = w.draw.pick((str(w.draw.number(1, 5)), position(w).text, w.constant(4), f"{position(w).text} % 4"))
    match w.draw.number(0, 3):
        case 0 | 1:
            return stop
        case 2:
            return f"{w.draw.pick(('1', '0', position(w).text))}, {stop}"
        case _:
            return f"{w.draw.pick(('0', '1', position(w).text))}, {stop}, {w.draw.pick(('2', '1', w.constant(4)))}"


def _carried(w: Writer) -> None:
    """Something to carry through the loop."""
    if not any(v.text.isidentifier() and v.text[0] == "v" for v in w.frame.visible):
        w.let(value(w, w.draw.pick(dt.NUMBERS), shape(w)))


def while_loop(w: Writer) -> None:
    """``while`` with a count that goes down, tested before or inside."""
    count = w.name("k")
    w.line(f"{count} = {w.draw.pick((position(w).text, '3', value(w, 'int32').text))}")
    _carried(w)
    extra = f" and {condition(w)}" if w.draw.chance(20) else ""
    w.line(f"{count} = {count} + 0")
    with w.block(f"while {count} > {w.draw.number(0, 2)}{extra}:", loop=True):
        w.bind(Value(count, "int32"))
        if w.draw.chance(50):
            body(w)
            w.line(f"{count} = {count} {w.draw.pick(('- 1', '// 2', '- 2'))}")
            leave(w)
        else:
            w.line(f"{count} = {count} {w.draw.pick(('- 1', '// 2', '- 2'))}")
            leave(w)
            body(w)
    w.bind(Value(count, "int32"))


def static_loop(w: Writer) -> None:
    """``for`` over what is known, unrolled."""
    name = w.name("i")
    over = w.draw.pick((f"range({w.draw.number(1, 3)})", "(1, 2, 3)", "range(3, 0, -2)", "(1.0, 2.5)",
                        f"range({w.constant(4)})"))  # fmt: skip
    _carried(w)
    w.frame.static += 1
    with w.block(f"for {name} in ct.static_iter({over}):", loop=True):
        if "." not in over:
            w.bind(Value(f"ct.full((), {name}, ct.int32)", "int32"))
        body(w, 1)
    w.frame.static -= 1


def branch(w: Writer) -> None:
    """``if`` at run time."""
    _carried(w)
    with w.block(f"if {condition(w)}:"):
        body(w)
    if w.draw.chance(20):
        with w.block(f"elif {condition(w)}:"):
            body(w, 1)
    if w.draw.chance(40):
        with w.block("else:"):
            body(w)


def known_branch(w: Writer) -> None:
    """``if`` on constants."""
    _carried(w)
    with w.block(f"if {known_condition(w)}:"):
        body(w)
    if w.draw.chance(50):
        with w.block("else:"):
            body(w)


def both_ways(w: Writer) -> None:
    """A name that both branches define."""
    dtype, of, name = w.draw.pick(dt.NUMBERS), shape(w), w.name()
    for head in (f"if {w.draw.pick((condition(w), known_condition(w)))}:", "else:"):
        with w.block(head):
            w.line(f"{name} = {value(w, dtype, of).text}")
    w.bind(Value(name, dtype, of))


def early_return(w: Writer) -> None:
    """A kernel that ends early."""
    if len(w.frames) > 1 or w.frame.static:
        return
    with w.block(f"if {w.draw.pick((condition(w), condition(w), known_condition(w)))}:"):
        if w.frame.visible and w.draw.chance(50):
            store_value(w, w.draw.pick(w.frame.visible))
        w.line("return")


def choice(w: Writer) -> None:
    """A conditional expression."""
    dtype, of = w.draw.pick(dt.NUMBERS), shape(w)
    cond = w.draw.pick((condition(w), known_condition(w)))
    w.let(Value(f"({value(w, dtype, of).text} if {cond} else {value(w, dtype, of).text})", dtype, of))


def unpacking(w: Writer) -> None:
    """Several names at once; perhaps two exchange their values."""
    dtype, of = w.draw.pick(dt.NUMBERS), shape(w)
    a, b = w.name(), w.name()
    w.line(f"{a}, {b} = {value(w, dtype, of).text}, {value(w, dtype, of).text}")
    w.bind(Value(a, dtype, of))
    w.bind(Value(b, dtype, of))
    if w.draw.chance(40):
        w.line(f"{a}, {b} = {b}, {a}")


def star(w: Writer) -> None:
    """A tuple among the items of another one."""
    of = shape(w, 1)
    name = w.name("shape")
    w.line(f"{name} = ({', '.join(int_text(w, s) for s in of)},)")
    w.let(Value(f"ct.full((1, *{name}), {literal(w, 'float32')}, ct.float32)", "float32", (1, *of)))


def module_constant(w: Writer) -> None:
    """A number at the top of the module."""
    dtype = w.draw.pick(("float32", "int32"))
    name = w.name("CONSTANT_").upper()
    w.globals.append(f"{name} = {literal(w, dtype)}")
    of = shape(w)
    w.let(Value(f"({value(w, dtype, of).text} + {name})", dtype, of))


def helper(w: Writer) -> None:
    """A function of its own, called once or twice; it may return a tuple, or early."""
    if len(w.frames) > 2:
        return
    frame = Frame(w.name("helper"))
    dtypes = [w.draw.pick(dt.NUMBERS) for _ in range(w.draw.number(1, 2))]
    types = [(d, shape(w)) for d in dtypes]
    arguments = [value(w, d, s).text for d, s in types]
    names = [f"v{frame.name}{i}" for i in range(len(types))]
    frame.visible = [Value(n, d, s) for n, (d, s) in zip(names, types, strict=True)]
    depth, w.depth = w.depth, 0
    w.frames.append(frame)
    default = ""
    try:
        results = _helper_body(w, types)
        if w.draw.chance(30):
            default = f", scale={number(w, 'int32') if w.draw.chance(0) else literal(w, 'int32')}"
    finally:
        w.frames.pop()
        w.depth = depth
    used = list(frame.used)
    for name in used:
        w.use(name)
    head = f"def {frame.name}({', '.join([*names, *used])}{default}):"
    w.functions.append("\n".join([head, *frame.lines]) + "\n")
    keywords = [f"{n}={n}" for n in used] if w.draw.chance(30) else used
    text = f"{frame.name}({', '.join([*arguments, *keywords])})"
    _call(w, text, results)
    if w.draw.chance(25):
        _call(w, text, results)


def _helper_body(w: Writer, types: list[tuple[str, tuple[int, ...]]]) -> list[tuple[str, tuple[int, ...]]]:
    if w.draw.chance(60):
        steps(w, 2)
    dtype, of = w.draw.pick(types)
    results = [(dtype, of)]
    if w.draw.chance(35):
        other = w.draw.pick(w.frame.visible)
        results.append((other.dtype, other.shape))
    if w.draw.chance(25):
        with w.block(f"if {w.draw.pick((condition(w), known_condition(w)))}:"):
            w.line(_returned(w, results))
    elif w.draw.chance(15):
        with w.block(f"for i in range({index(w)}):", loop=True):
            w.bind(Value("i", "int32"))
            assign(w)
            with w.block(f"if {condition(w)}:"):
                w.line(_returned(w, results))
    w.line(_returned(w, results))
    return results


def _returned(w: Writer, types: list[tuple[str, tuple[int, ...]]]) -> str:
    return f"return {', '.join(value(w, d, s).text for d, s in types)}"


def _call(w: Writer, text: str, results: list[tuple[str, tuple[int, ...]]]) -> None:
    names = [w.name() for _ in results]
    w.line(f"{', '.join(names)} = {text}")
    for name, (dtype, of) in zip(names, results, strict=True):
        w.bind(Value(name, dtype, of))
