"""LibCST functions and statements to HIR, with the author's comments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from transpiler.frontend.constructs import CONSTRUCTS
from transpiler.frontend.expressions import BINARY, ExpressionLowerer
from transpiler.frontend.parse import Piece, SourceFile
from transpiler.frontend.resolve import Workspace, local_names
from transpiler.ir import hir

HOLES: dict[type[cst.CSTNode], str] = {
    cst.FunctionDef: "E0232", cst.ClassDef: "E0250", cst.With: "E0236", cst.Try: "E0237", cst.TryStar: "E0237",
    cst.Del: "E0238", cst.Global: "E0239", cst.Nonlocal: "E0239", cst.Match: "E0241", cst.Raise: "E0244",
    cst.Import: "E0245", cst.ImportFrom: "E0245", cst.Assert: "E0249",
}  # fmt: skip
AUGMENTED = {getattr(cst, f"{operator.__name__}Assign"): name for operator, name in BINARY.items()}


class FunctionLowerer:
    """Lowers one function: parameters, statements and where the comments go."""

    def __init__(
        self, workspace: Workspace, source: SourceFile, piece: Piece, chain: Sequence[ast.FunctionDef]
    ) -> None:
        scopes = tuple(reversed(chain[:-1]))
        self._source = source
        self._piece = piece
        self._outer = ExpressionLowerer(workspace, source, piece, frozenset(), scopes)
        self._inner = ExpressionLowerer(workspace, source, piece, local_names(chain[-1]), scopes)
        self._pending: list[str] = []  # comments that wait for the statement below them

    @property
    def used(self) -> list[hir.Global]:
        """The module-level names that the function's body and parameters use, in order of first use."""
        return list(self._outer.used | self._inner.used)

    def function(self, node: cst.FunctionDef) -> hir.Function:
        """Lower a function."""
        is_first = node is self._piece.module.body[0]  # then LibCST gives the comments above to the module
        comments = _comments_of(self._piece.module.header) if is_first else []
        comments += _comments_of(node.leading_lines)
        for decorator in node.decorators:
            comments += _comments_of(decorator.leading_lines) + _comment(decorator.trailing_whitespace)
        comments += _comments_of(node.lines_after_decorators)
        params, self._pending = self._params(node)
        body = self._suite(node.body)
        if node.params.star_kwarg is not None or isinstance(node.params.star_arg, cst.Param):
            body = (hir.Hole("E0251", CONSTRUCTS["E0251"].what, span=self._inner.span(node.name)),)
        return hir.Function(
            self._source.key, node.name.value, params, body, (), node.get_docstring() or "",
            tuple(comments), tuple(self._pending), span=self._inner.span(node),
        )  # fmt: skip

    def decorators(self, node: cst.FunctionDef) -> tuple[hir.Expr, ...]:
        """Lower the decorators, outermost first; only names in the kernel's hints count as used."""
        found: list[hir.Expr] = []
        for decorator in node.decorators:
            before = dict(self._outer.used)
            self._outer.in_hints = True
            found.append(self._outer.lower(decorator.decorator))
            self._outer.in_hints = False
            if not (isinstance(found[-1], hir.Call) and isinstance(found[-1].func, hir.External)):
                self._outer.used = before
        return tuple(found)

    # Parameters

    def _params(self, node: cst.FunctionDef) -> tuple[tuple[hir.Param, ...], list[str]]:
        """Lower the parameters; comments that belong to none of them are returned too."""
        params = node.params
        above = [c for comments in _space_comments(node.whitespace_before_params) for c in comments]
        found: list[hir.Param] = []
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            own, below = _param_comments(param)
            found.append(self._param(param, "; ".join(above + own)))
            above = below
        return tuple(found), above

    def _param(self, param: cst.Param, comment: str) -> hir.Param:
        annotation = None if param.annotation is None else self._outer.annotation(param.annotation.annotation)
        default = None if param.default is None else self._outer.lower(param.default)
        return hir.Param(param.name.value, annotation, default, comment, span=self._outer.span(param))

    # Blocks

    def _suite(self, suite: cst.BaseSuite, *, header: bool = True) -> tuple[hir.Stmt, ...]:
        """Lower a block; ``header`` says whether the comment after its colon still has to find a place."""
        if isinstance(suite, cst.SimpleStatementSuite):
            return tuple(self._line(suite))
        assert isinstance(suite, cst.IndentedBlock)
        if header:
            self._pending += _comment(suite.header)
        body: list[hir.Stmt] = []
        for statement in suite.body:
            body.extend(self._statement(statement))
        self._pending += _comments_of(suite.footer)
        return tuple(body)

    def _statement(self, node: cst.BaseStatement) -> list[hir.Stmt]:
        if isinstance(node, cst.SimpleStatementLine):
            self._pending += _comments_of(node.leading_lines)
            return self._line(node)
        self._pending += _comments_of(getattr(node, "leading_lines", ()))
        match node:
            case cst.If():
                return [self._if(node)]
            case cst.For() if node.asynchronous is None:
                return [self._for(node)]
            case cst.While():
                return [self._while(node)]
            case _:
                return [self._opaque(node)]

    def _line(self, line: cst.SimpleStatementLine | cst.SimpleStatementSuite) -> list[hir.Stmt]:
        """Lower the statements of one line; comments go to the first, the trailing one to the last."""
        statements = [s for small in line.body for s in self._small(small)]
        trailing = _comment(line.trailing_whitespace)
        for small in line.body:
            self._pending += map(_text, self._piece.comments_in(small))
        if not statements:
            self._pending += trailing
            return []
        statements[0] = replace(statements[0], comments=self._take())
        if trailing:
            statements[-1] = replace(statements[-1], trailing=trailing[0])
        return statements

    def _take(self) -> tuple[str, ...]:
        taken, self._pending = tuple(self._pending), []
        return taken

    # Compound statements

    def _head(self, header: cst.CSTNode, suite: cst.BaseSuite) -> tuple[tuple[str, ...], str]:
        """The comments above and inside a compound statement's head, and the one at the end of its line."""
        self._pending += map(_text, self._piece.comments_in(header))
        trailing = _comment(suite.header) if isinstance(suite, cst.IndentedBlock) else []
        return self._take(), "".join(trailing)

    def _if(self, node: cst.If) -> hir.If:
        comments, trailing = self._head(node.test, node.body)
        cond = self._inner.lower(node.test)
        then = self._suite(node.body, header=False)
        orelse: tuple[hir.Stmt, ...] = ()
        if isinstance(node.orelse, cst.If):
            orelse = tuple(self._statement(node.orelse))
        elif node.orelse is not None:
            self._pending += _comments_of(node.orelse.leading_lines)
            orelse = self._suite(node.orelse.body)
        return hir.If(cond, then, orelse, comments=comments, trailing=trailing, span=self._inner.span(node))

    def _for(self, node: cst.For) -> hir.Stmt:
        target = self._target(node.target)
        if isinstance(target, str) or node.orelse is not None:
            return self._opaque(node, target if isinstance(target, str) else "E0242")
        comments, trailing = self._head(node.iter, node.body)
        iterable = self._inner.lower(node.iter)
        body = self._suite(node.body, header=False)
        span = self._inner.span(node)
        return hir.For(target, iterable, body, comments=comments, trailing=trailing, span=span)

    def _while(self, node: cst.While) -> hir.Stmt:
        if node.orelse is not None:
            return self._opaque(node, "E0242")
        comments, trailing = self._head(node.test, node.body)
        cond = self._inner.lower(node.test)
        body = self._suite(node.body, header=False)
        return hir.While(cond, body, comments=comments, trailing=trailing, span=self._inner.span(node))

    def _opaque(self, node: cst.CSTNode, code: str = "") -> hir.Hole:
        """A statement without a counterpart; the comments inside it go with it."""
        code = code or HOLES.get(type(node), "E0259")
        if isinstance(node, cst.For) and node.asynchronous is not None:
            code = "E0240"
        return hir.Hole(code, CONSTRUCTS[code].what, comments=self._take(), span=self._inner.span(node))

    # Simple statements

    def _small(self, node: cst.BaseSmallStatement) -> list[hir.Stmt]:
        method = _SMALL.get(type(node))
        if method is not None:
            return method(self, node)
        code = HOLES.get(type(node), "E0259")
        return [hir.Hole(code, CONSTRUCTS[code].what, span=self._inner.span(node))]

    def _pass(self, node: cst.Pass) -> list[hir.Stmt]:
        return []

    def _expression(self, node: cst.Expr) -> list[hir.Stmt]:
        if isinstance(node.value, cst.SimpleString | cst.ConcatenatedString | cst.Ellipsis):
            return []
        return [hir.ExprStmt(self._inner.lower(node.value), span=self._inner.span(node))]

    def _assign(self, node: cst.Assign) -> list[hir.Stmt]:
        targets = [self._target(t.target) for t in node.targets]
        bad = next((t for t in targets if isinstance(t, str)), None)
        good = [t for t in targets if isinstance(t, hir.Target)]
        if bad is None and len(good) > 1 and good[0].name is None:
            bad = "E0248"
        span = self._inner.span(node)
        if bad is not None:
            return [hir.Hole(bad, CONSTRUCTS[bad].what, span=span)]
        value = self._inner.lower(node.value)
        first: list[hir.Stmt] = [hir.Assign(good[0], value, span=span)]
        name = good[0].name or ""
        return first + [hir.Assign(t, hir.Local(name, span=good[0].span), span=span) for t in good[1:]]

    def _annotated(self, node: cst.AnnAssign) -> list[hir.Stmt]:
        if node.value is None:
            return []
        target = self._target(node.target)
        span = self._inner.span(node)
        if isinstance(target, str):
            return [hir.Hole(target, CONSTRUCTS[target].what, span=span)]
        return [hir.Assign(target, self._inner.lower(node.value), span=span)]

    def _augmented(self, node: cst.AugAssign) -> list[hir.Stmt]:
        target = self._target(node.target)
        span = self._inner.span(node)
        if isinstance(target, str):
            return [hir.Hole(target, CONSTRUCTS[target].what, span=span)]
        operands = self._inner.lower(node.target), self._inner.lower(node.value)
        value = self._inner.call(f"operator.{AUGMENTED[type(node.operator)]}", operands, node)
        return [hir.Assign(target, value, span=span)]

    def _return(self, node: cst.Return) -> list[hir.Stmt]:
        value = None if node.value is None else self._inner.lower(node.value)
        return [hir.Return(value, span=self._inner.span(node))]

    def _break(self, node: cst.Break) -> list[hir.Stmt]:
        return [hir.Break(span=self._inner.span(node))]

    def _continue(self, node: cst.Continue) -> list[hir.Stmt]:
        return [hir.Continue(span=self._inner.span(node))]

    def _target(self, node: cst.CSTNode) -> hir.Target | str:
        """An assignment target, or the code of why it can't be one."""
        span = self._inner.span(node)
        match node:
            case cst.Name(value=name):
                return hir.Target(name, span=span)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                items: list[hir.Target] = []
                for element in elements:
                    if not isinstance(element, cst.Element):
                        return "E0235"
                    item = self._target(element.value)
                    if isinstance(item, str):
                        return item
                    items.append(item)
                return hir.Target(None, tuple(items), span=span)
            case _:
                return "E0205"


# Comments


def _text(comment: str) -> str:
    return comment.removeprefix("#").removeprefix(" ").rstrip()


def _comment(whitespace: cst.TrailingWhitespace) -> list[str]:
    return [_text(whitespace.comment.value)] if whitespace.comment is not None else []


def _comments_of(lines: Sequence[cst.EmptyLine]) -> list[str]:
    return [_text(line.comment.value) for line in lines if line.comment is not None]


def _space_comments(space: cst.BaseParenthesizableWhitespace) -> tuple[list[str], list[str]]:
    """The comment at the end of the line, and those on lines of their own below it."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return [], []
    return _comment(space.first_line), _comments_of(space.empty_lines)


def _param_comments(param: cst.Param) -> tuple[list[str], list[str]]:
    """The comment at the end of a parameter's line, and those below it."""
    spaces = [param.whitespace_after_param]
    if isinstance(param.comma, cst.Comma):
        spaces += [param.comma.whitespace_before, param.comma.whitespace_after]
    own: list[str] = []
    below: list[str] = []
    for first, rest in map(_space_comments, spaces):
        own += first
        below += rest
    return own, below


_SMALL: dict[type[cst.CSTNode], Callable[..., list[hir.Stmt]]] = {
    cst.Pass: FunctionLowerer._pass,
    cst.Expr: FunctionLowerer._expression,
    cst.Assign: FunctionLowerer._assign,
    cst.AnnAssign: FunctionLowerer._annotated,
    cst.AugAssign: FunctionLowerer._augmented,
    cst.Return: FunctionLowerer._return,
    cst.Break: FunctionLowerer._break,
    cst.Continue: FunctionLowerer._continue,
}
