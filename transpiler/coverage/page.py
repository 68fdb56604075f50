"""The coverage page: one HTML file with everything in it, made from templates/coverage.html.j2."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from transpiler.batch import Results
from transpiler.coverage.charts import charts
from transpiler.coverage.model import Coverage
from transpiler.coverage.sources import operator_sources
from transpiler.report.carets import SourceCache
from transpiler.resources import templates_dir


def render_page(found: Coverage, results: Results, paths: Mapping[str, Path]) -> str:
    """Return the page; ``paths`` says where each operator's source file lies."""
    sources = {}
    for name, translation in sorted(results.translations.items()):
        cache = SourceCache()
        if name in paths:
            cache.add_tree(translation.plan.source, paths[name])
        sources[name] = operator_sources(translation, cache)
    data = {"coverage": found.model_dump(mode="json"), "sources": sources}
    shown = [{"title": chart.title, "svg": Markup(chart.svg)} for chart in charts(found)]
    template = _templates().get_template("coverage.html.j2")
    return template.render(
        title=", ".join(found.sources), totals=found.totals, tool=found.tool, charts=shown, data=_json(data),
        style=_text("coverage.css"), script=_text("coverage.js"),
    )  # fmt: skip


def _text(name: str) -> Markup:
    """A file of the templates folder as it is."""
    return Markup((templates_dir() / name).read_text(encoding="utf-8"))


def _json(data: object) -> Markup:
    """JSON that can't end the script element that it stands in."""
    return Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"))


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_dir()), undefined=jinja2.StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
