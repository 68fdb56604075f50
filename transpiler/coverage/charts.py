"""The charts of the coverage page: inline SVG without scripts, in the page's own colours."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pygal
from pygal.style import Style

from transpiler.coverage.model import Coverage
from transpiler.report.model import SEVERITY_ORDER

_WIDTH = 520
_BAR = 26
_MOST = 10


@dataclass(frozen=True)
class Chart:
    """A chart and its caption."""

    title: str
    svg: str


def charts(found: Coverage) -> list[Chart]:
    """Return the charts that have something to show."""
    made = [_verdicts(found), _families(found), _constructs(found), _equivalences(found), _unmapped(found),
            *(_machine_code(found, arch) for arch in found.machine_code)]  # fmt: skip
    return [chart for chart in made if chart is not None]


def _verdicts(found: Coverage) -> Chart | None:
    counts = found.totals.kernels_by_verdict
    if not counts:
        return None
    shown = [verdict for verdict in (*SEVERITY_ORDER, "raised", "none") if verdict in counts]
    chart = _chart(pygal.Pie, "verdicts", [f"var(--{verdict})" for verdict in shown], 250, inner_radius=0.62)
    for verdict in shown:
        chart.add(f"{'not checked' if verdict == 'none' else verdict} {counts[verdict]}", counts[verdict])
    return Chart("Kernels by verdict", _svg(chart))


def _families(found: Coverage) -> Chart | None:
    rows = []
    for family in dict.fromkeys(rule.family for rule in found.rules):
        mine = [rule for rule in found.rules if rule.family == family]
        exact = [rule.uses > 0 for rule in mine if rule.status == "exact"]
        rows.append((family, sum(exact), len(exact) - sum(exact), len(mine) - len(exact)))
    series = ("exercised", "never exercised", "unsupported")
    return _bars("Rules by family", "families", rows, series, ("var(--proved)", "var(--never)", "var(--unmapped)"))


def _constructs(found: Coverage) -> Chart | None:
    rows = [(row.name, len(row.kernels)) for row in found.constructs if row.uses]
    rows.sort(key=lambda row: -row[1])
    return _bars("Constructs of Python, kernels that use them", "constructs", rows, ("kernels",), ("var(--accent)",))


def _equivalences(found: Coverage) -> Chart | None:
    rows = [(row.name, row.checks) for row in found.equivalences if row.uses]
    rows.sort(key=lambda row: -row[1])
    return _bars("Equivalences, checks that needed them", "equivalences", rows, ("checks",), ("var(--accent)",))


def _unmapped(found: Coverage) -> Chart | None:
    rows = [(f"{row.code} {_short(row.reason)}", len(row.kernels)) for row in found.unmapped[:_MOST]]
    return _bars("In the way, kernels blocked", "unmapped", rows, ("kernels",), ("var(--unmapped)",))


def _machine_code(found: Coverage, arch: str) -> Chart:
    outcomes = found.machine_code[arch]
    colours = {"identical": "var(--proved)", "differs": "var(--differs)", "refused": "var(--rejected)"}
    chart = _chart(pygal.Pie, f"code-{arch}", [colours[o] for o in outcomes], 250, inner_radius=0.62)
    for outcome, count in outcomes.items():
        chart.add(f"{outcome} {count}", count)
    return Chart(f"Machine code of {arch}, checks", _svg(chart))


def _short(text: str) -> str:
    plain = text.replace("`", "")
    return plain if len(plain) <= 34 else f"{plain[:33]}…"


def _bars(
    title: str, name: str, rows: Sequence[tuple[Any, ...]], series: Sequence[str], colours: Sequence[str]
) -> Chart | None:
    """Horizontal bars, the first row at the top; each row is a label and a number a series.

    A single number stands beside the label, where it has room even if the bar is short.
    """
    if not rows:
        return None
    several = len(series) > 1
    height = 22 + _BAR * len(rows) + (34 if several else 0)
    chart = _chart(pygal.HorizontalStackedBar, name, colours, height, show_legend=several, print_values=several,
                   show_x_labels=False)  # fmt: skip
    chart.x_labels = [row[0] if several else f"{row[0]}  {row[1]}" for row in reversed(rows)]
    for index, label in enumerate(series, 1):
        chart.add(label, [row[index] or None for row in reversed(rows)])
    return Chart(title, _svg(chart))


def _chart(kind: Any, name: str, colours: Sequence[str], height: int, **more: Any) -> Any:
    style = Style(
        background="transparent", plot_background="transparent", foreground="currentColor",
        foreground_strong="currentColor", foreground_subtle="currentColor", opacity="1", opacity_hover=".75",
        transition="0s", font_family="inherit", label_font_size=13, major_label_font_size=13, legend_font_size=13,
        value_font_size=12, colors=tuple(colours), value_colors=("#fff",) * len(colours),
    )  # fmt: skip
    options = {
        "style": style, "width": _WIDTH, "height": height, "legend_at_bottom": kind is not pygal.Pie,
        "legend_at_bottom_columns": 3, "legend_box_size": 11, "show_y_guides": False, "show_x_guides": False,
        "truncate_legend": -1, "truncate_label": -1, "margin": 6, "spacing": 8, "js": [],
        "value_formatter": lambda n: f"{n:g}" if n else "", "disable_xml_declaration": True, **more,
    }  # fmt: skip
    chart = kind(**options)
    chart.uuid = name
    return chart


def _svg(chart: Any) -> str:
    """The chart's SVG; comments (they hold the date) and scripts are left out."""
    root = ET.fromstring(chart.render(is_unicode=True))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("script", "desc"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    root.set("role", "img")
    return ET.tostring(root, encoding="unicode")
