"""Makes benchmarks/results/interpreter.json and .npz of what interpreter_run.py brought back.

    python benchmarks/gpu/interpreter_keep.py JOB RESULTS [-o benchmarks/results]

JOB is interpreter_pack.py's folder, RESULTS the launcher's.  Every element that the device left is compared with
the interpreter's; cases that don't agree are said, kept all the same with --all, and make the status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from interpreter_cases import NAME, RESULTS, StaleError, judges

from transpiler.execute import recorded

COMPILERS = ("cutile-transpiler", "cuda-tile", "nvidia-cuda-tileiras", "nvidia-cuda-nvcc")
"""What made the machine code, where the cases were packed."""
Array = Any


def main() -> None:
    """Judge and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=RESULTS)
    parser.add_argument("--all", action="store_true", help="keep cases that don't agree")
    options = parser.parse_args()
    packed = json.loads((options.job / "cases.json").read_text(encoding="utf-8"))
    launches = json.loads((options.job / "launches.json").read_text(encoding="utf-8"))
    result = json.loads((options.results / f"{NAME}.json").read_text(encoding="utf-8"))
    left = read_arrays(options.results)
    left_out = [{"case": ran["name"], "reason": ran["error"]} for ran in result["cases"] if ran["error"]]
    numbers = [number for number, ran in enumerate(result["cases"]) if not ran["error"]]
    rows: list[dict[str, Any]] = []
    kept: dict[str, Array] = {}
    problems = 0
    for number, judge in zip(
        numbers, judges([packed["cases"][n] for n in numbers], packed["specializations"]), strict=True
    ):
        if isinstance(judge, StaleError):
            raise judge
        ran, names = result["cases"][number], [a["name"] for a in launches[number]["arrays"]]
        device = {names[int(at)]: content for at, content in left.get(number, {}).items()}
        row, arrays, said = recorded.keep(judge, device)
        wrong = [one for one in said if one.problem]
        for one in wrong:
            print(f"{ran['name']}: {one.array}: {one.problem}")
        problems += bool(wrong)
        if not row and not wrong:
            left_out.append({"case": ran["name"], "reason": "neither side changes an array"})
        elif wrong and not options.all:
            left_out.append({"case": ran["name"], "reason": "; ".join(f"{one.array}: {one.problem}" for one in wrong)})
        else:
            kept |= {f"{len(rows)}/{name}": content for name, content in arrays.items()}
            rows.append(packed["cases"][number] | {"exact": judge.exact, "repeats": ran["repeats"], "arrays": row})
    head = {key: result[key] for key in ("gpu", "driver", "versions", "command")}
    head["versions"] |= {name: packed["versions"][name] for name in COMPILERS}
    write(options.out, head | {"left_out": left_out, "specializations": packed["specializations"], "cases": rows}, kept)
    print(f"{summary(rows)}; {len(left_out)} cases are left out")
    sys.exit(bool(problems))


def read_arrays(folder: Path) -> dict[int, dict[str, Array]]:
    """What the kernels changed: by case, the number of the array and its bytes."""
    found: dict[int, dict[str, Array]] = {}
    for path in folder.glob("arrays-*.npz"):
        for key, content in np.load(path).items():
            case, _, array = key.partition("/")
            found.setdefault(int(case), {})[array] = content
    return found


def write(out: Path, result: dict[str, Any], kept: dict[str, Array]) -> None:
    """Write both files; a case is a line, and a specialization."""
    out.mkdir(parents=True, exist_ok=True)
    cases = ",\n  ".join(json.dumps(case) for case in result["cases"])
    specializations = ",\n  ".join(
        f"{json.dumps(key)}: {json.dumps(s)}" for key, s in result["specializations"].items()
    )
    head = json.dumps({k: value for k, value in result.items() if k not in ("cases", "specializations")}, indent=1)
    text = f'{head[:-2]},\n "specializations": {{\n  {specializations}\n }},\n "cases": [\n  {cases}\n ]\n}}\n'
    (out / f"{NAME}.json").write_text(text, encoding="utf-8")
    np.savez_compressed(out / f"{NAME}.npz", **kept)


def summary(rows: list[dict[str, Any]]) -> str:
    """How many kernels, cases, elements."""
    arrays = [array for row in rows for array in row["arrays"].values()]
    total, equal, unsaid = (sum(array.get(key, 0) for array in arrays) for key in ("elements", "equal", "open"))
    kernels = {(row["operator"], row["kernel"]) for row in rows}
    exact = sum(row["exact"] for row in rows)
    same = sum(all(a["equal"] == a["elements"] for a in row["arrays"].values()) for row in rows)
    return (f"{len(kernels)} kernels, {len(rows)} cases: {exact} promise exact bits, {same} have equal bits; "
            f"{equal} of {total} elements are equal, {unsaid} more are left open")  # fmt: skip


if __name__ == "__main__":
    main()
