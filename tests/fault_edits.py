"""Edits that put a fault into a generated program, or into what it is compiled with; ``fault_kinds`` names them.

An edit yields the changed programs, one for each place where it could apply.  A changed program may be one that doesn't
compile, or that compiles to the very same Tile IR; then it is no fault, and the next place is tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from fault_text import Call, Let, RustText, Span, element_and_shape, tile_type

from transpiler.emit.abi import CompileInputs

Spec = tuple[str, tuple[int, ...], tuple[int, ...], int]
"""What is known of an array: its name, divisors of its extents and strides (elements), of its address (bytes)."""


@dataclass(frozen=True)
class Program:
    """Text of kernel.rs and what it is compiled with."""

    text: str
    inputs: CompileInputs


Edit = Callable[[Program], Iterator[Program]]
TextEdit = Callable[[RustText], Iterator[str]]
InputsEdit = Callable[[CompileInputs], Iterator[CompileInputs]]
Change = Callable[[str], str | None]
"""A part of the text to what it becomes; None where the kind doesn't apply."""


def in_text(edit: TextEdit) -> Edit:
    """Edit kernel.rs."""
    return lambda p: (replace(p, text=text) for text in edit(RustText(p.text)) if text != p.text)


def in_inputs(edit: InputsEdit) -> Edit:
    """Edit the compile inputs."""
    return lambda p: (replace(p, inputs=inputs) for inputs in edit(p.inputs) if inputs != p.inputs)


# Parts of text

VIEW_LOADS, VIEW_STORES = ("load_view_raw",), ("store_view_raw",)
GATHERS, SCATTERS = ("load_ptr_padded", "load_ptr_tko"), ("store_ptr_tko",)
LOADS, STORES = VIEW_LOADS + GATHERS, VIEW_STORES + SCATTERS
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "make_partition_view": ("tensor", "shape", "padding", "order", "token"),
    "load_view_raw": ("view", "index", "token", "ordering", "scope", "tma", "latency", "inbounds", "shape"),
    "store_view_raw": ("view", "value", "index", "token", "ordering", "scope", "tma", "latency", "inbounds"),
    "load_ptr_padded": ("pointer", "ordering", "scope", "mask", "padding", "token", "latency"),
    "load_ptr_tko": ("pointer", "ordering", "scope", "mask", "padding", "token", "latency"),
    "store_ptr_tko": ("pointer", "value", "ordering", "scope", "mask", "token", "latency"),
}  # fmt: skip
"""The parameters of the memory operations, so that the kinds can name them."""
COMPARISONS = {"lt_tile": "le_tile", "le_tile": "lt_tile", "gt_tile": "ge_tile", "ge_tile": "gt_tile",
               "eq_tile": "ne_tile", "ne_tile": "eq_tile"}  # fmt: skip
NOWHERE: Span = (0, 0)
TMA = {"tma::Enabled": "tma::Disabled", "tma::Disabled": "tma::Enabled"}


def flat(text: str) -> str:
    """Write a piece of text on one line."""
    return " ".join(text.split())


def becomes(table: Mapping[str, str]) -> Change:
    """Make the change that a table says."""
    return lambda text: table.get(flat(text))


@dataclass(frozen=True)
class Access:
    """A memory operation, or a call of a function that wraps one, and the places of the arguments by their names.

    What the wrapping function decides by itself has no place here: it is found at the operation inside of it.
    """

    call: Call
    places: Mapping[str, Span]


def accesses(text: RustText, *names: str) -> Iterator[Access]:
    """Yield where memory operations are used, those in wrapping functions last."""
    inner = [Access(c, dict(zip(PARAMETERS[c.name], c.args, strict=False))) for c in text.calls(*names)]
    views = [Access(c, dict(zip(PARAMETERS[c.name], c.args, strict=False))) for c in text.calls("make_partition_view")]
    for function in text.functions:
        mine = [a for a in (*views, *inner) if text.function(a.call.span[0]) == function]
        passed = {flat(text[span]): name for a in mine for name, span in a.places.items()}
        roles = {p: passed.get(p, passed.get(f"Some({p})", "")) for p in function.parameters}
        if any(a in inner for a in mine):
            for call in text.calls(function.name):
                places = dict(zip(roles.values(), call.args, strict=False))
                yield Access(call, {name: span for name, span in places.items() if name})
    yield from inner


def argument(names: tuple[str, ...], name: str, change: Change, **also: Change) -> TextEdit:
    """Change one argument of each memory operation in turn, and others (``also``) with it."""

    def edit(text: RustText) -> Iterator[str]:
        for access in accesses(text, *names):
            edits = []
            for parameter, one in {name: change, **also}.items():
                span = access.places.get(parameter)
                new = one(text[span]) if span is not None else None
                if span is not None and new is not None:
                    edits.append((span, new))
            if len(edits) == 1 + len(also):
                yield text.replaced(*edits)

    return edit


def called(names: tuple[str, ...], change: Callable[[str, tuple[str, ...]], str | None]) -> TextEdit:
    """Replace each call of these functions in turn; the change sees the name and the arguments."""

    def edit(text: RustText) -> Iterator[str]:
        for call in text.calls(*names):
            new = change(call.name, tuple(text[a] for a in call.args))
            if new is not None:
                yield text.replaced((call.span, new))

    return edit


def renamed(table: Mapping[str, str]) -> TextEdit:
    """Call another function with the same arguments."""
    return called(tuple(table), lambda name, args: f"{table[name]}({', '.join(args)})")


def argument_value(names: tuple[str, ...], table: Mapping[str, str]) -> TextEdit:
    """Change whichever argument of these functions the table names."""

    def edit(text: RustText) -> Iterator[str]:
        for call in text.calls(*names):
            for span in call.args:
                if (new := table.get(flat(text[span]))) is not None:
                    yield text.replaced((span, new))

    return edit


def exchanged(names: tuple[str, ...]) -> TextEdit:
    """Exchange the first two arguments of these functions."""

    def change(name: str, args: tuple[str, ...]) -> str | None:
        return f"{name}({', '.join([args[1], args[0], *args[2:]])})" if flat(args[0]) != flat(args[1]) else None

    return called(names, change)


def operator(ops: str, change: Callable[[str, str, str], str | None]) -> TextEdit:
    """Replace each use of these binary operators in turn; the change sees left, operator, right."""

    def edit(text: RustText) -> Iterator[str]:
        for found in text.binaries(*ops.split()):
            new = change(text[found.left], found.op, text[found.right])
            if new is not None:
                yield text.replaced((found.span, new))

    return edit


def swapped(left: str, op: str, right: str) -> str | None:
    """Exchange an operator's operands."""
    return f"{grouped(right)} {op} {grouped(left)}" if flat(left) != flat(right) else None


def other_operator(table: Mapping[str, str]) -> TextEdit:
    """Use another operator."""
    return operator(" ".join(table), lambda left, op, right: f"{grouped(left)} {table[op]} {grouped(right)}")


def grouped(text: str) -> str:
    """Put an expression in parentheses unless it is one name or call."""
    return text if re.fullmatch(r"[\w.]+|\(.*\)|\w+\([^()]*\)", flat(text)) else f"({text})"


def first_of(*edits: TextEdit) -> TextEdit:
    """Join edits that make one kind."""
    return lambda text: (new for edit in edits for new in edit(text))


def everywhere(pattern: str, new: str) -> TextEdit:
    """Replace a pattern throughout the text: for what has to be consistent to compile."""
    return lambda text: iter([re.sub(pattern, new, text.text)])


def bound(select: Callable[[RustText, Let], bool], change: Callable[[RustText, Let], str | None]) -> TextEdit:
    """Replace the statement of each binding that is selected, in turn."""

    def edit(text: RustText) -> Iterator[str]:
        for let in text.lets:
            if select(text, let) and (new := change(text, let)) is not None:
                yield text.replaced((let.span, new))

    return edit


def followed(text: RustText, let: Let, value: str) -> str:
    """Bind the same name to another value right after its binding."""
    return f"{text[let.span]}\nlet {let.pattern}: {text[let.type]} = {value};"


# Kinds of text: memory


def plus_one(text: str) -> str:
    """Add one to an integer tile without dimensions."""
    match = re.fullmatch(r"const_i32\((-?\d+)\)", flat(text))
    return f"const_i32({int(match[1]) + 1})" if match else f"{grouped(text)} + {grouped(text)}"


def each_index(names: tuple[str, ...]) -> TextEdit:
    """Change each index of an access in turn: by one where it is a constant, else to its double."""

    def edit(text: RustText) -> Iterator[str]:
        for access in accesses(text, *names):
            for item in text.items(access.places.get("index", NOWHERE)):
                yield text.replaced((item, plus_one(text[item])))

    return edit


def indices_exchanged(names: tuple[str, ...]) -> TextEdit:
    """Exchange two indices of an access that differ."""

    def edit(text: RustText) -> Iterator[str]:
        for access in accesses(text, *names):
            for one, other in pairwise(text.items(access.places.get("index", NOWHERE))):
                if flat(text[one]) != flat(text[other]):
                    yield text.replaced((one, text[other]), (other, text[one]))

    return edit


def nothing(text: str) -> str | None:
    """Give no value where one is given."""
    return "None" if text.startswith("Some") else None


def device(text: str) -> str | None:
    """Name the device as the scope of an access, which weak ones don't have."""
    return {"scope::TileBlock": "scope::Device", "None::<scope::TileBlock>": "Some(scope::Device)"}.get(flat(text))


def first_true(text: str) -> str | None:
    """Say of the first axis that it is in bounds."""
    return text.replace("false", "true", 1) if "false" in text else None


def dimensions_reversed(text: RustText) -> Iterator[str]:
    """Map a view's dimensions in the other order."""
    for let in text.lets:
        rank = len(re.findall(r"\[(.*?)\]", text[let.type])[0].split(",")) if "Partition" in text[let.type] else 0
        for access in accesses(text, "make_partition_view") if rank > 1 else ():
            order = access.places.get("order", NOWHERE)
            if let.value[0] <= order[0] < let.value[1] and flat(text[order]) == "dim_map::Identity":
                yield text.replaced((order, f"const_array![{', '.join(map(str, reversed(range(rank))))}]"))


def viewed(text: RustText) -> Iterator[tuple[str, Access]]:
    """Yield the uses of arrays through views."""
    for access in accesses(text, "make_partition_view"):
        if "tensor" in access.places:
            yield text[access.places["tensor"]], access


def another_array(text: RustText) -> Iterator[str]:
    """View another array than the one meant."""
    names = list(dict.fromkeys(name for name, _ in viewed(text)))
    for name, access in viewed(text):
        for other in names:
            token = access.places.get("token", NOWHERE)
            also = [(token, f"{other}.token()")] if text[token] == f"{name}.token()" else []
            if other != name:
                yield text.replaced((access.places["tensor"], other), *also)


def literal_behind(text: RustText, span: Span, depth: int = 3) -> Span | None:
    """Return the number that a value is made of, following the names that it is bound to."""
    for call in text.calls("const_f", "const_f32", "splat_f32", "const_i", "const_i32"):
        if span[0] <= call.span[0] and call.span[1] <= span[1]:
            return call.args[0]
    for name in re.findall(r"\b[a-z_]\w*\b(?!\s*[(!:])", text[span]) if depth else ():
        let = text.definition(name, span[0])
        if let is not None:
            return literal_behind(text, let.value, depth - 1)
    return None


def gather_padding(text: RustText) -> Iterator[str]:
    """Pad a gather with another number."""
    for access in accesses(text, *GATHERS):
        span = access.places.get("padding", NOWHERE)
        literal = literal_behind(text, span)
        if literal is not None:
            yield text.replaced((literal, "1.0" if text[literal] != "1.0" else "2.0"))
        if (value := re.fullmatch(r"Some\((.*)\)", flat(text[span]))) is not None:
            yield text.replaced((span, f"Some(negf({value[1]}))"))


def no_mask(calls: tuple[str, ...], *dropped: str) -> TextEdit:
    """Drop the mask of an access (and a gather's padding)."""

    def edit(text: RustText) -> Iterator[str]:
        for access in accesses(text, *calls):
            spans = [access.places.get(name, NOWHERE) for name in dropped]
            if all(text[span].startswith("Some") for span in spans):
                yield text.replaced(*((span, "None") for span in spans))

    return edit


def mask_inverted(text: RustText) -> Iterator[str]:
    """Access where the mask says not to."""
    for access in accesses(text, *GATHERS, *SCATTERS):
        span, call = access.places.get("mask", NOWHERE), access.call
        name = re.fullmatch(r"Some\((\w+)\)", text[span])
        let = text.definition(name[1], call.span[0]) if name else None
        parts = element_and_shape(text[let.type]) if let else None
        if name and let and parts:
            shape = f"shape![{', '.join(parts[1])}]"
            kind = text[let.type]
            lines = f"let all: {kind} = constant(true, {shape});\nlet inverted: {kind} = {name[1]} ^ all;\n"
            start = text.statement(call.span[0])[0]
            yield text.replaced(((start, start), lines), (span, "Some(inverted)"))
    if any(True for _ in text.calls(*GATHERS, *SCATTERS)):
        yield from renamed({"lt_tile": "ge_tile", "ge_tile": "lt_tile"})(text)


def root_token(text: RustText) -> str | None:
    """Return the name of the token that nothing waits for."""
    return next((let.name for let in text.lets if "new_token_unordered" in text[let.value]), None)


def root_instead(text: RustText) -> Iterator[str]:
    """Let an access wait for nothing, where it waits for another access."""
    root = root_token(text)
    for access in accesses(text, *STORES, *LOADS):
        span = access.places.get("token", NOWHERE)
        token = re.fullmatch(r"(?:Some\()?(\w+)\)?", text[span])
        if token and root and token[1] not in (root, "None"):
            yield text.replaced((span, text[span].replace(token[1], root)))


def join_dropped(text: RustText) -> Iterator[str]:
    """Wait for the first of several tokens only."""
    for call in text.calls("join_tokens"):
        items = text.items(call.args[0])
        for item in items[:1]:
            yield text.replaced((call.span, text[item]))


def storing(text: RustText) -> Iterator[Span]:
    """Yield the statements that store, in the kernel itself or by calling a function that does."""
    names = {f.name for call in text.calls(*STORES) if (f := text.function(call.span[0])) is not None}
    for call in text.calls(*STORES, *names):
        span = text.statement(call.span[0])
        if not text[span].startswith("let"):
            yield span


def token_not_kept(text: RustText) -> Iterator[str]:
    """Let the next iteration not wait for this one's store."""
    for span in storing(text):
        match = re.match(r"\w+ = ", text[span])
        if match:
            yield text.replaced((span, text[span][match.end() :]))


def stores_lost(text: RustText) -> Iterator[str]:
    """Leave a store out."""
    return (text.replaced((span, "")) for span in storing(text))


def stores_repeated(text: RustText) -> Iterator[str]:
    """Store twice."""
    return (text.replaced((span, f"{text[span]}\n{text[span]}")) for span in storing(text))


def double(text: str) -> str:
    """Add a value to itself."""
    return f"{grouped(text)} + {grouped(text)}"


def another_value_stored(text: RustText) -> Iterator[str]:
    """Store another value of the same type."""
    for access in accesses(text, *STORES):
        start, end = access.places.get("value", NOWHERE)
        name = re.match(r"\w+", text.text[start:end])
        mine = text.definition(name[0], access.call.span[0]) if name else None
        for let in text.lets if name and mine else ():
            if name and mine and let.name != mine.name and text.definition(let.name, mine.span[0]) == let:
                parts = element_and_shape(text[let.type])
                if parts and parts == element_and_shape(text[mine.type]):
                    yield text.replaced(((start, start + len(name[0])), let.name))


# Kinds of text: arithmetic


def left_only(left: str, _op: str, _right: str) -> str:
    """Leave an operation out."""
    return left


def ftz_toggled(text: RustText) -> Iterator[str]:
    """Flush denormals where the reference doesn't, or the other way round."""
    table = {"ftz::Enabled": "ftz::Disabled", "ftz::Disabled": "ftz::Enabled"}
    names = ("fma", "addf", "subf", "mulf", "divf", "sqrt", "rsqrt", "exp2", "maxf", "minf")
    return argument_value(names, table)(text)


def other_product(name: str, args: tuple[str, ...]) -> str | None:
    """Round the other one of two products that are added."""
    inner = flat(args[2])
    negated = re.fullmatch(r"negf\((.*)\)", inner)
    product = RustText(f"fn f() {{ let x: X = {negated[1] if negated else inner}; }}")
    found = next((b for b in product.binaries("*") if b.span == product.lets[0].value), None)
    if found is None:
        return None
    left, right = product[found.left], product[found.right]
    return f"{name}({f'negf({left})' if negated else left}, {right}, {args[0]} * {args[1]}, {', '.join(args[3:])})"


def reduce_axis(text: RustText) -> Iterator[str]:
    """Reduce along another axis."""
    for let in text.lets:
        for call in text.calls("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"):
            if call.span != let.value or not text[call.args[1]].isdigit():
                continue
            source = text.definition(text[call.args[0]], let.span[0])
            source_shape = element_and_shape(text[source.type]) if source else None
            for axis in range(len(source_shape[1]) if source_shape else 0):
                if source_shape and axis != int(text[call.args[1]]):
                    left = [d for i, d in enumerate(source_shape[1]) if i != axis]
                    kind = tile_type(source_shape[0], left)
                    yield text.replaced((let.type, kind), (call.args[1], str(axis)))


def detour(text: RustText, let: Let) -> str | None:
    """Round to another type on the way to the one wanted."""
    parts = element_and_shape(text[let.type])
    if parts is None:
        return None
    return f"let detour: {tile_type('bf16', parts[1])} = {text[let.value]};\n" + (
        f"let {let.pattern}: {text[let.type]} = convert_tile(detour);"
    )


def is_call(*names: str) -> Callable[[RustText, Let], bool]:
    """Select the bindings whose value is a call of one of these."""
    return lambda text, let: text[let.value].split("(")[0].strip() in names


def converts_values(text: RustText, let: Let) -> bool:
    """Select conversions of what isn't a constant, which may be exact in the other type."""
    return is_call("convert_tile")(text, let) and "from_bits" not in text[let.value]


def is_accumulator(text: RustText, let: Let) -> bool:
    """Select the float values that loops carry."""
    return let.mutable and "f32" in text[let.type]


def half_accumulator(text: RustText, let: Let) -> str | None:
    """Accumulate in half precision."""
    parts = element_and_shape(text[let.type])
    return (
        f"let mut {let.pattern}: {tile_type('f16', parts[1])} = constant(0.0, shape![{', '.join(parts[1])}]);"
        if parts
        else None
    )


def another_start(text: RustText, let: Let) -> str | None:
    """Start a carried value elsewhere."""
    call = next((c for c in text.calls("splat_f32", "const_f", "const_f32") if c.span == let.value), None)
    return text[let.span].replace(text[call.args[0]], "1.0", 1) if call and text[call.args[0]] != "1.0" else None


def not_accumulated(text: RustText) -> Iterator[str]:
    """Forget what was carried so far."""
    for found in text.binaries("+"):
        target = re.match(r"(\w+) = ", text[text.statement(found.left[0])])
        if target and target[1] == text[found.left]:
            yield text.replaced((found.span, text[found.right]))
    for call in text.calls("fma", "mma"):
        target = re.match(r"(\w+) = ", text[text.statement(call.span[0])])
        if target and target[1] == text[call.args[2]] and (let := text.definition(target[1], call.span[0])):
            yield text.replaced((call.args[2], text[let.value]))


def integer_constant(text: RustText) -> Iterator[str]:
    """Change an integer by one."""
    for call in text.calls("const_i32", "splat_i32"):
        if re.fullmatch(r"\d+", text[call.args[0]]):
            yield text.replaced((call.args[0], str(int(text[call.args[0]]) - 1)))


def float_constant(text: RustText) -> Iterator[str]:
    """Change a number a little."""
    for call in text.calls("const_f32", "splat_f32", "const_f"):
        if re.fullmatch(r"[\d.e+-]+", text[call.args[0]]) and float(text[call.args[0]]):
            yield text.replaced((call.args[0], repr(float(text[call.args[0]]) * 1.0001)))


def gather_step(text: RustText) -> Iterator[str]:
    """Gather with another stride."""
    for call in text.calls("const_i"):
        if text[call.args[0]].isdigit():
            yield text.replaced((call.args[0], str(int(text[call.args[0]]) + 1)))


def offset_doubled(text: RustText) -> Iterator[str]:
    """Read or write at twice the distance."""
    for call in text.calls("addptr_tile"):
        yield text.replaced((call.args[1], double(text[call.args[1]])))


def permutation(text: RustText) -> Iterator[str]:
    """Permute the axes in another way."""
    for call in text.calls("permute"):
        items = text.items(call.args[1])
        for i in range(len(items) - 1):
            yield text.replaced((items[i], text[items[i + 1]]), (items[i + 1], text[items[i]]))


def broadcast_axis(text: RustText) -> Iterator[str]:
    """Broadcast along the other one of two axes."""
    for call in text.calls("broadcast"):
        source = call.args[0]
        let = text.definition(text[source], call.span[0])
        parts = element_and_shape(text[let.type]) if let else None
        if parts and [d == "1" for d in parts[1]] in ([False, True], [True, False]):
            turned = f"reshape({text[source]}, shape![{', '.join(parts[1][::-1])}])"
            yield text.replaced((source, turned))


def axis_of(*names: str) -> TextEdit:
    """Ask for another axis of the grid."""

    def edit(text: RustText) -> Iterator[str]:
        for call in text.calls(*names):
            after = (call.span[1], call.span[1] + 2)
            if re.fullmatch(r"\.[012]", text[after]):
                yield text.replaced((after, ".1" if text[after] != ".1" else ".0"))

    return edit


# Kinds of text: control flow


def loop_start(text: RustText) -> Iterator[str]:
    """Start one later."""
    for loop in text.loops:
        yield text.replaced((loop.low, _bound_plus(text[loop.low], 1)))


def loop_end(by: int) -> TextEdit:
    """End elsewhere."""
    return lambda text: (text.replaced((p.high, _bound_plus(text[p.high], by))) for p in text.loops)


def _bound_plus(text: str, by: int) -> str:
    """Add to a loop's bound, which is a scalar."""
    match = re.fullmatch(r"to_i32\((.*)\)", flat(text))
    inner = match[1] if match else f"scalar_to_tile({flat(text)})"
    return f"to_i32({inner} {'+' if by > 0 else '-'} const_i32({abs(by)}))"


def loop_step(text: RustText) -> Iterator[str]:
    """Take only every other iteration."""
    for loop in text.loops:
        if loop.step:
            match = re.fullmatch(r"to_i32\((.*)\) as usize", flat(text[loop.step]))
            if match:
                yield text.replaced((loop.step, f"to_i32({double(match[1])}) as usize"))
        else:
            both = (loop.low[0], loop.high[1])
            yield text.replaced((both, f"({text[both]}).step_by(2)"))


# Kinds of compile inputs


def each_spec(change: Callable[[Spec], Iterator[Spec]]) -> InputsEdit:
    """Change what is known of each array in turn."""

    def edit(inputs: CompileInputs) -> Iterator[CompileInputs]:
        for i, spec in enumerate(inputs.specs):
            for new in change(spec):
                yield replace(inputs, specs=(*inputs.specs[:i], new, *inputs.specs[i + 1 :]))

    return edit


def base(change: Callable[[int], int]) -> InputsEdit:
    """Change the divisor of an array's address."""
    return each_spec(lambda s: iter([(s[0], s[1], s[2], change(s[3]))]))


def extents(change: Callable[[int], int]) -> InputsEdit:
    """Change the divisor of one extent of an array."""
    return each_spec(lambda s: ((s[0], new, s[2], s[3]) for new in _each(s[1], change)))


def strides(change: Callable[[int], int]) -> InputsEdit:
    """Change the divisor of one stride of an array."""
    return each_spec(lambda s: ((s[0], s[1], new, s[3]) for new in _each(s[2], change)))


def strides_of_views(change: Callable[[int], int]) -> Edit:
    """Change which strides of the viewed arrays are known (a gather has a known stride in its text)."""

    def edit(program: Program) -> Iterator[Program]:
        source, inputs = RustText(program.text), program.inputs
        arrays = {array for array, _ in viewed(source)}
        for i, (name, values) in enumerate(inputs.strides):
            for new in _each(values, change) if name in arrays else ():
                if new != values:
                    known = (*inputs.strides[:i], (name, new), *inputs.strides[i + 1 :])
                    yield replace(program, inputs=replace(inputs, strides=known))

    return edit


def _each(values: tuple[int, ...], change: Callable[[int], int]) -> Iterator[tuple[int, ...]]:
    for i, value in enumerate(values):
        yield (*values[:i], change(value), *values[i + 1 :])


def generic(change: Change) -> InputsEdit:
    """Change the value of each generic in turn."""

    def edit(inputs: CompileInputs) -> Iterator[CompileInputs]:
        for i, value in enumerate(inputs.generics):
            if (new := change(value)) is not None:
                yield replace(inputs, generics=(*inputs.generics[:i], new, *inputs.generics[i + 1 :]))

    return edit


def scalar_divisor(program: Program) -> Iterator[Program]:
    """State a divisor of an integer parameter that nothing is known of."""
    for name in re.findall(r"\b(?!const )\b(\w+): i32,", program.text):
        if f"const {name}" not in program.text:
            hints = (*program.inputs.scalar_hints, (name, 16))
            yield replace(program, inputs=replace(program.inputs, scalar_hints=hints))


Hint = Literal["occupancy", "num_ctas", "num_worker_warps"]


def with_hint(inputs: CompileInputs, name: Hint, value: int | None) -> CompileInputs:
    """Return the inputs with a hint replaced."""
    match name:
        case "occupancy":
            return replace(inputs, occupancy=value)
        case "num_ctas":
            return replace(inputs, num_ctas=value)
        case "num_worker_warps":
            return replace(inputs, num_worker_warps=value)


def hint(name: Hint, change: Callable[[int], int | None]) -> Edit:
    """Change a hint of the kernel, in the text as well as in the inputs."""

    def edit(program: Program) -> Iterator[Program]:
        key = {"num_ctas": "num_cta_in_cga"}.get(name, name)
        stated = re.search(rf"\b{key} = (\d+),?\s*", program.text)
        value: int | None = getattr(program.inputs, name)
        known = int(stated[1]) if value is None and stated else value
        if known is None:
            return
        new = change(known)
        said = "" if new is None else f"{key} = {new},"
        text = re.sub(rf"\b{key} = \d+,?\s*", said, program.text)
        yield Program(text, with_hint(program.inputs, name, new))

    return edit


def hint_stated(name: Hint, value: int) -> InputsEdit:
    """State a hint that the reference doesn't state."""
    return lambda inputs: iter([with_hint(inputs, name, value)] if getattr(inputs, name) is None else [])
