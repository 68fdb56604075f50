"""Draws benchmarks/results/device_time.json: the reference's time beside ours, each configuration a point.

python benchmarks/gpu/plot.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pygal

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main() -> None:
    """Write device_time.svg."""
    result = json.loads((RESULTS / "device_time.json").read_text(encoding="utf-8"))
    (RESULTS / "device_time.svg").write_text(plot(result), encoding="utf-8")


def plot(result: dict[str, Any]) -> str:
    """Both times on logarithmic axes; on the diagonal they are equal."""
    configs = result["configs"]
    times = [time for row in configs for time in (row["reference_us"], row["ours_us"])]
    ends = (min(times), max(times))
    style = pygal.style.Style(background="white", plot_background="white", colors=("#bbbbbb", "#1f6feb", "#d1495b"))
    chart = pygal.XY(
        style=style, width=720, height=520, dots_size=3, stroke=False, logarithmic=True, xrange=ends, js=(),
        title=f"Time on the device, microseconds ({result['gpu']})", x_title="cuTile Python", y_title="cuTile Rust",
        legend_at_bottom=True, disable_xml_declaration=True, no_prefix=True,
    )  # fmt: skip
    chart.x_labels = chart.y_labels = [10**power for power in range(6)]
    chart.add("equal", [(end, end) for end in ends], stroke=True, show_dots=False)
    for label, code in (("same machine code", "identical"), ("other machine code", "differs")):
        rows = [row for row in configs if row["machine_code"] == code]
        chart.add(f"{label} ({len(rows)})", [(row["reference_us"], row["ours_us"]) for row in rows])
    drawn: str = chart.render(is_unicode=True)
    return drawn


if __name__ == "__main__":
    main()
