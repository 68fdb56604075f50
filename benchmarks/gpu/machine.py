"""What every result of the GPU machine says of it: the card, the driver, the versions, the command."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "cuda-tile", "tilegym", "cffi", "triton")


def header() -> dict[str, Any]:
    """Return the fields "gpu", "driver", "versions" and "command"."""
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    name, driver = (part.strip() for part in asked.stdout.splitlines()[0].split(","))
    return {"gpu": name, "driver": driver, "versions": versions(), "command": " ".join(["python", *sys.argv])}


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    packed = Path(__file__).with_name("versions.json")
    if packed.is_file():  # what the library of kernels was made with, on the machine that packed it
        found |= json.loads(packed.read_text(encoding="utf-8"))
    return found


def write(path: Path, result: dict[str, Any]) -> None:
    """Write a result with its header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(header() | result, indent=1) + "\n", encoding="utf-8")
