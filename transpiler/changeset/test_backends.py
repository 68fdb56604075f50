"""``"cutile-rs"`` among the backends of a test file of TileGym: a LibCST codemod that keeps the file's formatting.

Six changes, each of which is left out where it is made already:
* after a list of backends (``_backends = ["cutile"]`` and what is added to it), the backend is added where it is
  available; a list that stands in ``pytest.mark.parametrize`` itself, or says what a test has an implementation for
  (``_impl_fw``), gets it after the reference;
* a branch for the reference that selects it by name selects the test's backend;
* ``backend == "cutile"`` holds for the translated kernels too: they are the same kernels, with the same limits;
* where a test names the reference's module (``tilegym.ops.cutile.attention``), the translated one takes its place;
* a function that was imported from the reference's module is looked up in that of the test's backend;
* limits of the ports that the translated kernels replace go (``if backend == "cutile-rs": pytest.skip(..)``).
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

REFERENCE, BACKEND = "cutile", "cutile-rs"
_AVAILABLE = "is_backend_available"
_IMPORT = f"from tilegym.backend import {_AVAILABLE}\n"
_LIST = m.Assign(targets=[m.AssignTarget(m.Name("_backends"))], value=m.List())
_REFERENCE_PACKAGE = m.Attribute(m.Attribute(m.Name("tilegym"), m.Name("ops")), m.Name("cutile"))
_PACKAGE = cst.parse_expression("tilegym.ops.cutile_rs")
_NAMES = m.Name("backend") | m.Name("_backend") | m.Name("framework")
_NAME_TEXTS = ("backend", "_backend", "framework")
_IMPLEMENTED = m.AssignTarget(m.Name("_impl_fw"))
_SELECTS = m.Name("set_backend") | m.Name(_AVAILABLE)
_REFERENCE_NAME = m.SimpleString(m.MatchIfTrue(lambda text: text[1:-1] == REFERENCE))
_BY_NAME = m.Call(func=_SELECTS | m.Attribute(attr=_SELECTS), args=[m.Arg(_REFERENCE_NAME)])
_LOOKUP = "_of"
_LOOKUP_CODE = f'''
def {_LOOKUP}(backend, function):
    """Return the function of that name in the backend's own module."""
    module = function.__module__.replace(".cutile.", f".{{backend.replace('-', '_')}}.")
    return getattr(importlib.import_module(module), function.__name__)
'''


def add_backend(source: str) -> str:
    """Return the text of a test file with the backend in it."""
    tree = cst.parse_module(source)
    codemod = _Codemod(_reference_functions(tree))
    tree = tree.visit(codemod)
    if codemod.looked_up:
        tree = _with_lookup(tree)
    if codemod.added and not _binds(tree, _AVAILABLE):
        tree = _with_import(tree)
    return tree.code


class _Codemod(cst.CSTTransformer):
    def __init__(self, functions: frozenset[str]) -> None:
        super().__init__()
        self._functions = functions
        self._in_test = 0
        self.added = self.looked_up = False

    # Functions of the reference

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802
        self._in_test += self._has_backend(node)

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self._in_test -= self._has_backend(original_node)
        return updated_node

    @staticmethod
    def _has_backend(node: cst.FunctionDef) -> bool:
        return any(param.name.value == "backend" for param in node.params.params)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:  # noqa: N802
        if m.matches(updated_node.func, m.Attribute(attr=m.Name("parametrize"))):
            return _parametrized(updated_node)
        if not self._in_test or not isinstance(updated_node.func, cst.Name):
            return updated_node
        name = updated_node.func.value
        if name not in self._functions:
            return updated_node
        self.looked_up = True
        return updated_node.with_changes(func=cst.parse_expression(f"{_LOOKUP}(backend, {name})"))

    # Lists of backends

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:  # noqa: N802
        return updated_node.with_changes(body=self._extended(updated_node.body))

    def leave_IndentedBlock(  # noqa: N802
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node.with_changes(body=self._extended(updated_node.body))

    def _extended(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Add the backend after each list and the statements that extend it."""
        out: list[cst.BaseStatement] = []
        pending = False
        for statement in body:
            if pending and not _extends(statement):
                out.append(self._extension())
                pending = False
            if pending and _mentions(statement, BACKEND):
                pending = False
            out.append(statement)
            if m.matches(statement, m.SimpleStatementLine(body=[_LIST])):
                pending = _mentions(statement, REFERENCE) and not _mentions(statement, BACKEND)
        if pending:
            out.append(self._extension())
        return out

    def _extension(self) -> cst.BaseStatement:
        self.added = True
        return cst.parse_statement(f'if {_AVAILABLE}("{BACKEND}"):\n    _backends = _backends + ["{BACKEND}"]\n')

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:  # noqa: N802
        value = updated_node.value
        if not m.matches(updated_node.targets[0], _IMPLEMENTED) or not isinstance(value, cst.List | cst.Tuple):
            return updated_node
        return updated_node.with_changes(value=_joined(value))

    # Comparisons

    def leave_Comparison(  # noqa: N802
        self, original_node: cst.Comparison, updated_node: cst.Comparison
    ) -> cst.BaseExpression:
        if not m.matches(updated_node, m.Comparison(left=_NAMES, comparisons=[m.ComparisonTarget()])):
            return updated_node
        target = updated_node.comparisons[0]
        if isinstance(target.operator, cst.In | cst.NotIn) and isinstance(target.comparator, cst.Tuple | cst.List):
            joined = _joined(target.comparator)
            return updated_node.with_changes(comparisons=[target.with_changes(comparator=joined)])
        if _text(target.comparator) != REFERENCE or not isinstance(target.operator, cst.Equal | cst.NotEqual):
            return updated_node
        operator = cst.In() if isinstance(target.operator, cst.Equal) else cst.NotIn()
        both = cst.parse_expression(f'("{REFERENCE}", "{BACKEND}")')
        return updated_node.with_changes(comparisons=[cst.ComparisonTarget(operator, both)])

    # Limits

    def leave_If(  # noqa: N802
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.If | cst.RemovalSentinel:
        compared = _compared(original_node.test)
        if BACKEND in compared and original_node.orelse is None and _only_skips(original_node.body):
            return cst.RemoveFromParent()
        if REFERENCE in compared and m.findall(original_node.body, _REFERENCE_PACKAGE):
            return _with_branch(original_node, updated_node)
        name = original_node.test.left if isinstance(original_node.test, cst.Comparison) else None
        if REFERENCE in compared and isinstance(name, cst.Name):
            body = m.replace(updated_node.body, _BY_NAME, lambda call, _: call.with_changes(args=[cst.Arg(name)]))
            return updated_node.with_changes(body=body)
        return updated_node


def _parametrized(call: cst.Call) -> cst.Call:
    """Add the backend to a list of backends in ``pytest.mark.parametrize``; tests skip those that aren't there."""
    if len(call.args) < 2 or _text(call.args[0].value) not in _NAME_TEXTS:
        return call
    values = call.args[1].value
    if not isinstance(values, cst.List | cst.Tuple):
        return call
    listed = call.args[1].with_changes(value=_joined(values))
    return call.with_changes(args=[call.args[0], listed, *call.args[2:]])


def _joined(names: cst.Tuple | cst.List) -> cst.Tuple | cst.List:
    """Add the backend after the reference in a list of names."""
    texts = [_text(element.value) for element in names.elements]
    if REFERENCE not in texts or BACKEND in texts:
        return names
    place = texts.index(REFERENCE)
    before = names.elements[place]
    added = before.with_changes(value=cst.SimpleString(f'"{BACKEND}"'))
    if not isinstance(before.comma, cst.Comma):  # the last one
        before = before.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    elif place == len(names.elements) - 1:  # with a comma, perhaps before the end of the line
        inner = names.lbracket.whitespace_after if isinstance(names, cst.List) else cst.SimpleWhitespace(" ")
        before = before.with_changes(comma=cst.Comma(whitespace_after=_between(inner)))
    return names.with_changes(elements=[*names.elements[:place], before, added, *names.elements[place + 1 :]])


def _between(inner: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """The space between elements of a list, from that after its bracket."""
    return inner if isinstance(inner, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")


def _compared(test: cst.BaseExpression) -> set[str]:
    """The backends that a condition names with ``==``."""
    found = m.findall(test, m.Comparison(left=_NAMES, comparisons=[m.ComparisonTarget(m.Equal())]))
    return {_text(c.comparisons[0].comparator) for c in found if isinstance(c, cst.Comparison)}


def _with_branch(original: cst.If, updated: cst.If) -> cst.If:
    """Add a branch that calls the translated module where this one calls the reference's."""
    if isinstance(original.orelse, cst.If) and BACKEND in _compared(original.orelse.test):
        return updated.with_changes(test=original.test)
    body = m.replace(updated.body, _REFERENCE_PACKAGE, _PACKAGE)
    test = m.replace(original.test, m.SimpleString(), cst.SimpleString(f'"{BACKEND}"'))
    assert isinstance(body, cst.BaseSuite) and isinstance(test, cst.BaseExpression)
    branch = cst.If(test=test, body=body, orelse=updated.orelse)
    return updated.with_changes(test=original.test, orelse=branch)


def _reference_functions(tree: cst.Module) -> frozenset[str]:
    """What the file imports from the reference's modules of operators."""
    found = set()
    for node in m.findall(tree, m.ImportFrom()):
        assert isinstance(node, cst.ImportFrom)
        name = cst.helpers.get_full_name_for_node(node.module) if node.module else None
        if name and name.startswith("tilegym.ops.cutile.") and not isinstance(node.names, cst.ImportStar):
            found |= {alias.evaluated_alias or alias.evaluated_name for alias in node.names}
    return frozenset(found)


def _with_lookup(tree: cst.Module) -> cst.Module:
    """Define the function that looks functions up, before the first definition of the file."""
    if m.findall(tree, m.FunctionDef(name=m.Name(_LOOKUP))):
        return tree
    place = next(i for i, statement in enumerate(tree.body) if isinstance(statement, cst.FunctionDef | cst.ClassDef))
    definition = (
        cst.parse_module(_LOOKUP_CODE)
        .body[0]
        .with_changes(leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)])
    )
    body = [*tree.body[:place], definition, *tree.body[place:]]
    if not _binds(tree, "importlib"):
        first = next(
            i for i, s in enumerate(body) if m.matches(s, m.SimpleStatementLine(body=[m.Import() | m.ImportFrom()]))
        )
        body.insert(first, cst.parse_statement("import importlib\n"))
    return tree.with_changes(body=body)


def _extends(statement: cst.BaseStatement) -> bool:
    """``if ..: _backends = _backends + [..]``"""
    assign = m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(m.Name("_backends"))])])
    return m.matches(statement, m.If(body=m.IndentedBlock(body=[assign])) | assign)


def _only_skips(body: cst.BaseSuite) -> bool:
    """Is there nothing but calls of ``pytest.skip``, perhaps under conditions?"""
    skip = m.Expr(m.Call(m.Attribute(m.Name("pytest"), m.Name("skip"))))
    for statement in body.body:
        if isinstance(statement, cst.If):
            if statement.orelse is not None or not _only_skips(statement.body):
                return False
        elif not m.matches(statement, m.SimpleStatementLine(body=[skip])):
            return False
    return True


def _text(node: cst.BaseExpression) -> str:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    return value if isinstance(value, str) else ""


def _texts(tree: cst.CSTNode) -> set[str]:
    return {_text(node) for node in m.findall(tree, m.SimpleString()) if isinstance(node, cst.SimpleString)}


def _mentions(statement: cst.BaseStatement, text: str) -> bool:
    return text in _texts(statement)


def _binds(tree: cst.Module, name: str) -> bool:
    """Does the module import a name?"""
    found = m.findall(tree, m.ImportAlias(name=m.Name(name)))
    return bool(found)


def _with_import(tree: cst.Module) -> cst.Module:
    """Import the function after the last import at the top."""
    place = 0
    for i, statement in enumerate(tree.body):
        if m.matches(statement, m.SimpleStatementLine(body=[m.Import() | m.ImportFrom()])):
            place = i + 1
    body = [*tree.body[:place], cst.parse_statement(_IMPORT), *tree.body[place:]]
    return tree.with_changes(body=body)
