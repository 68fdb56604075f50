"""LibCST expressions to HIR expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import libcst as cst

from transpiler.diagnostics import Span
from transpiler.frontend.constructs import CONSTRUCTS
from transpiler.frontend.parse import Piece, SourceFile, read_names
from transpiler.frontend.resolve import ModuleRef, Ref, Workspace
from transpiler.ir import hir

BINARY: dict[type[cst.CSTNode], str] = {
    cst.Add: "add", cst.Subtract: "sub", cst.Multiply: "mul", cst.Divide: "truediv", cst.FloorDivide: "floordiv",
    cst.Modulo: "mod", cst.Power: "pow", cst.MatrixMultiply: "matmul", cst.LeftShift: "lshift",
    cst.RightShift: "rshift", cst.BitAnd: "and_", cst.BitOr: "or_", cst.BitXor: "xor",
}  # fmt: skip
UNARY: dict[type[cst.CSTNode], str] = {
    cst.Minus: "neg", cst.Plus: "pos", cst.BitInvert: "invert", cst.Not: "not_",
}  # fmt: skip
COMPARISONS: dict[type[cst.CSTNode], str] = {
    cst.LessThan: "lt", cst.LessThanEqual: "le", cst.GreaterThan: "gt", cst.GreaterThanEqual: "ge",
    cst.Equal: "eq", cst.NotEqual: "ne", cst.Is: "is_", cst.IsNot: "is_not",
}  # fmt: skip
BOOLEANS: dict[type[cst.CSTNode], Literal["and", "or"]] = {cst.And: "and", cst.Or: "or"}
CONVERSIONS = {"r": "repr", "s": "str", "a": "ascii"}
KEYWORDS: dict[str, object] = {"True": True, "False": False, "None": None}
LAMBDA = "E0233"
UNSUPPORTED: dict[type[cst.CSTNode], str] = {
    cst.ListComp: "E0234", cst.SetComp: "E0234", cst.DictComp: "E0234",
    cst.GeneratorExp: "E0234", cst.StarredElement: "E0235", cst.Await: "E0240", cst.Yield: "E0240",
    cst.NamedExpr: "E0243", cst.Dict: "E0246", cst.Set: "E0246", cst.Imaginary: "E0247",
}  # fmt: skip


class ExpressionLowerer:
    """Lowers the expressions of one piece in one scope, and notes the module-level names that they use."""

    def __init__(
        self,
        workspace: Workspace,
        source: SourceFile,
        piece: Piece,
        names: frozenset[str] = frozenset(),
        scopes: Sequence[ast.FunctionDef] = (),
    ) -> None:
        self._workspace = workspace
        self._source = source
        self._piece = piece
        self._locals = names
        self._scopes = tuple(scopes)
        self.in_hints = False
        self.used: dict[hir.Global, None] = {}

    def span(self, node: cst.CSTNode) -> Span:
        """The place of a node."""
        return self._piece.span(node)

    def unsupported(self, code: str, node: cst.CSTNode, what: str = "") -> hir.Unsupported:
        """An expression that stands for a construct without a counterpart."""
        return hir.Unsupported(code, what or CONSTRUCTS[code].what, span=self.span(node))

    def lower(self, node: cst.CSTNode) -> hir.Expr:
        """Lower any expression; what can't be expressed becomes Unsupported at its place."""
        method = _METHODS.get(type(node))
        if method is not None:
            return method(self, node)
        return self.unsupported(UNSUPPORTED.get(type(node), "E0259"), node)

    def call(self, name: str, args: Sequence[hir.Expr], node: cst.CSTNode) -> hir.Call:
        """A call of an external function at the place of ``node``."""
        span = self.span(node)
        return hir.Call(hir.External(name, span=span), tuple(args), span=span)

    def _lambda(self, node: cst.Lambda) -> hir.Expr:
        text = " ".join(cst.Module([]).code_for_node(node).split())
        return hir.Unsupported(LAMBDA, CONSTRUCTS[LAMBDA].what, text, span=self.span(node))

    # Names

    def _name(self, node: cst.Name) -> hir.Expr:
        if node.value in KEYWORDS:
            return hir.Const(KEYWORDS[node.value], span=self.span(node))
        if node.value in self._locals:
            return hir.Local(node.value, span=self.span(node))
        return self._from_ref(
            self._workspace.name(self._source, node.value, self._scopes, defaults=self.in_hints), node
        )

    def _attribute(self, node: cst.Attribute) -> hir.Expr:
        ref = self._ref(node)
        if ref is not None:
            return self._from_ref(ref, node)
        value = self.lower(node.value)
        return value if isinstance(value, hir.Unsupported) else hir.Attr(value, node.attr.value, span=self.span(node))

    def _ref(self, node: cst.BaseExpression) -> Ref | None:
        """What a dotted name stands for, or None when it is (an attribute of) a value."""
        match node:
            case cst.Name(value=name) if name not in self._locals and name not in KEYWORDS:
                return self._workspace.name(self._source, name, self._scopes, defaults=self.in_hints)
            case cst.Attribute(value=value, attr=cst.Name(value=name)):
                base = self._ref(value)
                return None if base is None else self._workspace.attribute(base, name)
            case _:
                return None

    def _from_ref(self, ref: Ref, node: cst.CSTNode) -> hir.Expr:
        span = self.span(node)
        match ref:
            case hir.External(name=name):
                missing = self._workspace.missing(name)
                return hir.External(name, span=span) if missing is None else replace(missing, span=span)
            case hir.Unsupported(code=code, what=what):
                return hir.Unsupported(code, what, span=span)
            case ModuleRef(key=key):
                return hir.Unsupported("E0253", f"the module `{key}` used as a value", span=span)
            case hir.Global(module=module, name=name):
                self.used.setdefault(ref)
                return hir.Global(module, name, span=span)

    # Literals

    def _number(self, node: cst.Integer | cst.Float) -> hir.Expr:
        return hir.Const(node.evaluated_value, span=self.span(node))

    def _string(self, node: cst.SimpleString) -> hir.Expr:
        value = node.evaluated_value
        return self.unsupported("E0247", node) if isinstance(value, bytes) else hir.Const(value, span=self.span(node))

    def _concatenated(self, node: cst.ConcatenatedString) -> hir.Expr:
        parts: list[hir.Expr] = []
        for side in (node.left, node.right):
            part = self.lower(side)
            if isinstance(part, hir.Call):
                parts.extend(part.args)
            else:
                parts.append(part)
        bad = next((p for p in parts if isinstance(p, hir.Unsupported)), None)
        return bad or self._format(parts, node)

    def _formatted(self, node: cst.FormattedString) -> hir.Expr:
        return self._format(self._format_parts(node, node.parts), node)

    def _format(self, parts: Sequence[hir.Expr], node: cst.CSTNode) -> hir.Expr:
        """Join neighbouring literal parts; a string without other parts is a constant."""
        merged: list[hir.Expr] = []
        for part in parts:
            last = merged[-1] if merged else None
            if isinstance(part, hir.Const) and isinstance(last, hir.Const):
                merged[-1] = hir.Const(f"{last.value}{part.value}", span=last.span)
            else:
                merged.append(part)
        if not merged:
            return hir.Const("", span=self.span(node))
        if len(merged) == 1 and isinstance(merged[0], hir.Const):
            return hir.Const(str(merged[0].value), span=self.span(node))
        return self.call("builtins.format_string", merged, node)

    def _format_parts(
        self, node: cst.FormattedString, parts: Sequence[cst.BaseFormattedStringContent]
    ) -> list[hir.Expr]:
        found: list[hir.Expr] = []
        for part in parts:
            if isinstance(part, cst.FormattedStringText):
                found.append(hir.Const(_literal_text(part.value, node), span=self.span(part)))
            elif isinstance(part, cst.FormattedStringExpression):
                found.extend(self._format_value(node, part))
        return found

    def _format_value(self, node: cst.FormattedString, part: cst.FormattedStringExpression) -> list[hir.Expr]:
        value = self.lower(part.expression)
        conversion = part.conversion
        before: list[hir.Expr] = []
        if part.equal is not None:
            code = cst.Module([]).code_for_node
            spelled = part.visit(_Spelling(self._piece.spellings))
            assert isinstance(spelled, cst.FormattedStringExpression) and spelled.equal is not None
            text = spelled.whitespace_before_expression, spelled.expression, spelled.equal
            before.append(hir.Const("".join(code(piece) for piece in text), span=self.span(part)))
            conversion = conversion or (None if part.format_spec else "r")
        if conversion is not None:
            value = self.call(f"builtins.{CONVERSIONS[conversion]}", (value,), part)
        if part.format_spec:
            spec = self._format(self._format_parts(node, part.format_spec), part)
            value = self.call("builtins.format", (value, spec), part)
        return [*before, value]

    # Operators

    def _unary(self, node: cst.UnaryOperation) -> hir.Expr:
        if isinstance(node.operator, cst.Minus) and isinstance(node.expression, cst.Integer | cst.Float):
            return hir.Const(-node.expression.evaluated_value, span=self.span(node))
        return self.call(f"operator.{UNARY[type(node.operator)]}", (self.lower(node.expression),), node)

    def _binary(self, node: cst.BinaryOperation) -> hir.Expr:
        operands = self.lower(node.left), self.lower(node.right)
        return self.call(f"operator.{BINARY[type(node.operator)]}", operands, node)

    def _boolean(self, node: cst.BooleanOperation) -> hir.Expr:
        """``a or b or c`` is ``a or (b or c)``, as in Python's own syntax tree and unlike in LibCST's."""
        operands = [node.right]
        left = node.left
        while isinstance(left, cst.BooleanOperation) and type(left.operator) is type(node.operator) and not left.lpar:
            operands.append(left.right)
            left = left.left
        lowered = [self.lower(operand) for operand in (left, *reversed(operands))]
        return self._chain(BOOLEANS[type(node.operator)], lowered, node)

    def _chain(self, op: Literal["and", "or"], operands: list[hir.Expr], node: cst.CSTNode) -> hir.Expr:
        """Nest operands to the right."""
        *rest, result = operands
        for operand in reversed(rest):
            result = hir.BoolOp(op, operand, result, span=self.span(node))
        return result

    def _comparison(self, node: cst.Comparison) -> hir.Expr:
        """``a < b < c`` is ``a < b and b < c``; the reference compiler too evaluates b in both."""
        left = self.lower(node.left)
        tests: list[hir.Expr] = []
        for target in node.comparisons:
            right = self.lower(target.comparator)
            tests.append(self._compare(target.operator, left, right, node))
            left = right
        return self._chain("and", tests, node)

    def _compare(self, operator: cst.BaseCompOp, left: hir.Expr, right: hir.Expr, node: cst.CSTNode) -> hir.Expr:
        if isinstance(operator, cst.In | cst.NotIn):
            found = self.call("operator.contains", (right, left), node)
            return found if isinstance(operator, cst.In) else self.call("operator.not_", (found,), node)
        return self.call(f"operator.{COMPARISONS[type(operator)]}", (left, right), node)

    def _conditional(self, node: cst.IfExp) -> hir.Expr:
        cond, then, orelse = self.lower(node.test), self.lower(node.body), self.lower(node.orelse)
        return hir.IfExp(cond, then, orelse, span=self.span(node))

    # Displays, calls, subscripts

    def _display(self, node: cst.Tuple | cst.List) -> hir.Expr:
        return hir.Tuple_(tuple(self._element(e) for e in node.elements), span=self.span(node))

    def _element(self, node: cst.BaseElement) -> hir.Expr:
        value = self.lower(node.value)
        return value if isinstance(node, cst.Element) else hir.Star(value, span=self.span(node))

    def _call(self, node: cst.Call) -> hir.Expr:
        star = next((arg for arg in node.args if arg.star == "**"), None)
        if star is not None:
            return self.unsupported("E0235", star)
        func = self.lower(node.func)
        args = tuple(self._argument(arg) for arg in node.args if arg.keyword is None)
        named = tuple((arg.keyword.value, self.lower(arg.value)) for arg in node.args if arg.keyword is not None)
        return hir.Call(func, args, named, span=self.span(node))

    def _argument(self, arg: cst.Arg) -> hir.Expr:
        value = self.lower(arg.value)
        return hir.Star(value, span=self.span(arg)) if arg.star else value

    def _subscript(self, node: cst.Subscript) -> hir.Expr:
        value = self.lower(node.value)
        items = [self._slice(element) for element in node.slice]
        is_tuple = len(items) > 1 or isinstance(node.slice[-1].comma, cst.Comma) or isinstance(items[0], hir.Star)
        index = hir.Tuple_(tuple(items), span=items[0].span) if is_tuple else items[0]
        return self.call("operator.getitem", (value, index), node)

    def _slice(self, element: cst.SubscriptElement) -> hir.Expr:
        match element.slice:
            case cst.Index(value=value, star=star):
                return hir.Star(self.lower(value), span=self.span(element)) if star else self.lower(value)
            case cst.Slice(lower=lower, upper=upper, step=step):
                bounds = [
                    self.lower(bound) if bound is not None else hir.Const(None, span=self.span(element))
                    for bound in (lower, upper, step)
                ]
                return self.call("builtins.slice", bounds, element)
            case _:
                return self.unsupported("E0259", element)

    def _ellipsis(self, node: cst.Ellipsis) -> hir.Expr:
        return hir.Const(Ellipsis, span=self.span(node))

    # Annotations

    def annotation(self, node: cst.BaseExpression) -> hir.Expr:
        """Lower an annotation: a string is parsed, an alias such as ``ConstInt`` is followed by the caller."""
        if isinstance(node, cst.SimpleString | cst.ConcatenatedString):
            text = node.evaluated_value
            if isinstance(text, str):
                return self._quoted(text, node)
        return self.lower(node)

    def _quoted(self, text: str, node: cst.BaseExpression) -> hir.Expr:
        try:
            inner = cst.parse_expression(text.strip())
            read_names(inner)
        except cst.ParserSyntaxError:
            return self.unsupported("E0259", node, "an annotation that is not an expression")
        positions = dict.fromkeys(map(id, _descendants(inner)), self._piece.positions[id(node)])
        piece = Piece(self._piece.module, positions, self._piece.offset, self._piece.file)
        lowerer = ExpressionLowerer(self._workspace, self._source, piece, self._locals, self._scopes)
        result = lowerer.lower(inner)
        self.used |= lowerer.used
        return result


class _Spelling(cst.CSTTransformer):
    """Writes names as they were spelled."""

    def __init__(self, spellings: Mapping[int, str]) -> None:
        super().__init__()
        self._spellings = spellings

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:  # noqa: N802
        return updated_node.with_changes(value=self._spellings.get(id(original_node), updated_node.value))


def _descendants(node: cst.CSTNode) -> list[cst.CSTNode]:
    found = [node]
    for child in node.children:
        found.extend(_descendants(child))
    return found


def _literal_text(text: str, node: cst.FormattedString) -> str:
    """The text between two replacement fields, with escapes and doubled braces resolved."""
    plain = text.replace("{{", "{").replace("}}", "}")
    if "r" in node.prefix.lower():
        return plain
    value = ast.literal_eval(f"{node.quote}{plain}{node.quote}")
    assert isinstance(value, str)
    return value


# Every method takes the node type that its key says, which the type checker can't see.
_METHODS: dict[type[cst.CSTNode], Callable[..., hir.Expr]] = {
    cst.Name: ExpressionLowerer._name,
    cst.Lambda: ExpressionLowerer._lambda,
    cst.Attribute: ExpressionLowerer._attribute,
    cst.Integer: ExpressionLowerer._number,
    cst.Float: ExpressionLowerer._number,
    cst.SimpleString: ExpressionLowerer._string,
    cst.ConcatenatedString: ExpressionLowerer._concatenated,
    cst.FormattedString: ExpressionLowerer._formatted,
    cst.UnaryOperation: ExpressionLowerer._unary,
    cst.BinaryOperation: ExpressionLowerer._binary,
    cst.BooleanOperation: ExpressionLowerer._boolean,
    cst.Comparison: ExpressionLowerer._comparison,
    cst.IfExp: ExpressionLowerer._conditional,
    cst.Tuple: ExpressionLowerer._display,
    cst.List: ExpressionLowerer._display,
    cst.Call: ExpressionLowerer._call,
    cst.Subscript: ExpressionLowerer._subscript,
    cst.Ellipsis: ExpressionLowerer._ellipsis,
}
