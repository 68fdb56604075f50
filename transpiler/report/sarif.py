"""Diagnostics as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from transpiler.codes import CODES
from transpiler.report.model import DiagnosticRow, Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(report: Report) -> str:
    """Return every diagnostic of a report as a SARIF log."""
    rows = list(dict.fromkeys(_key(row) for row in diagnostics_of(report)))
    rules = sorted({code for code, *_ in rows})
    driver = {
        "name": "transpile", "version": report.tool.get("cutile-transpiler", "0"),
        "informationUri": "https://docs.nvidia.com/cuda/cutile-python",
        "rules": [_rule(code) for code in rules],
    }  # fmt: skip
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": [
        _result(row, rules.index(row[0])) for row in rows]}  # fmt: skip
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def diagnostics_of(report: Report) -> Iterator[DiagnosticRow]:
    """Yield every diagnostic: of operators, kernels and checks."""
    for operator in report.operators:
        yield from operator.diagnostics or ()
        for kernel in operator.kernels:
            yield from kernel.diagnostics
            for check in kernel.checks():
                yield from check.diagnostics


_Key = tuple[str, str, str, str, str, int, int]


def _key(row: DiagnosticRow) -> _Key:
    return row.code, row.severity, row.message, row.help, row.file, row.line, row.column


def _rule(code: str) -> dict[str, Any]:
    known = CODES.get(code)
    rule: dict[str, Any] = {"id": code}
    if known is not None:
        rule |= {"shortDescription": {"text": known.title}, "fullDescription": {"text": known.meaning},
                 "help": {"text": known.remedy}}  # fmt: skip
    return rule


def _result(row: _Key, rule: int) -> dict[str, Any]:
    code, severity, message, help_text, file, line, column = row
    text = f"{message}\n{help_text}" if help_text else message
    result: dict[str, Any] = {"ruleId": code, "ruleIndex": rule, "level": severity, "message": {"text": text}}
    if file:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(file)}}
        if line:
            place["region"] = {"startLine": line, "startColumn": max(column, 1)}
        result["locations"] = [{"physicalLocation": place}]
    return result
