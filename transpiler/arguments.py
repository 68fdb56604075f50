"""The commands of the command line, their arguments and options: what typer reads, and which code each of them runs."""

from __future__ import annotations

import difflib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from transpiler.diagnostics import error
from transpiler.identifiers import identifier

_DEFAULT_OUT = Path("cutile_rs")
_EPILOG = ("Subcommands: batch, merge, verify, coverage, build, record, changeset, fill, promote, explain; `transpile "
           "COMMAND --help` says more.")  # fmt: skip
_SOURCES = "a corpus (tilegym-core, tilegym-24, tilegym, tilegym-suites, a manifest's path) or source files"
_HELP = {"help_option_names": ["-h", "--help"]}
translate_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
commands_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
                           no_args_is_help=True, context_settings=_HELP)  # fmt: skip


class Format(StrEnum):
    """How results are printed."""

    text = "text"
    json = "json"
    sarif = "sarif"


class Stage(StrEnum):
    """What ``--dump`` prints."""

    hir = "hir"
    tir = "tir"
    rust = "rust"
    tileir_ours = "tileir-ours"
    tileir_reference = "tileir-reference"


Out = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="where the Rust goes")]
Cubin = Annotated[str, typer.Option("--cubin", metavar="ARCH,...", help="compare machine code too, e.g. sm_90,sm_100")]
Json = Annotated[Path | None, typer.Option("--json", metavar="OUT", help="write the results as JSON (- for stdout)")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="do everything again, whatever earlier runs found out "
                                       "(kept in $TRANSPILE_CACHE or the user's cache folder)")]  # fmt: skip
Explore = Annotated[bool, typer.Option("--explore", help="flip every decision of the kernels until nothing new "
                                       "appears and prove each outcome: entries for every call")]  # fmt: skip
Without = Annotated[str, typer.Option("--without", metavar="RULE;...", hidden=True, help="leave out these rows of the "
                                      "tables of rules and forms (to test what fills their place)")]  # fmt: skip
Jobs = Annotated[int, typer.Option("-j", "--jobs", metavar="N", min=0, help="workers; 0: one a core")]


@translate_app.command(epilog=_EPILOG, context_settings=_HELP)
def translate(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="a cuTile Python source file", show_default=False)],
    out: Out = _DEFAULT_OUT,
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="NAME", help="this kernel only")] = None,
    variants: Annotated[bool, typer.Option("--variants", help="print the entries and when each is taken")] = False,
    explore: Explore = False,
    spec: Annotated[Path | None, typer.Option("--spec", metavar="SPEC.toml", help="specializations to check")] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="translate without proving")] = False,
    target: Annotated[str | None, typer.Option("--target", metavar="ARCH", help="architecture of the checks "
                                               "(sm_90, unless the spec names another)", show_default=False)] = None,
    cubin: Cubin = "",
    format: Annotated[Format, typer.Option("--format", help="how to print the results")] = Format.text,
    jobs: Jobs = 0,
    dump: Annotated[Stage | None, typer.Option("--dump", metavar="STAGE", help="print what the passes see: hir, tir, "
                                               "rust, tileir-ours or tileir-reference", show_default=False)] = None,
    without: Without = "",
) -> int:  # fmt: skip
    """Translate the cuTile Python kernels of FILE.py to cuTile Rust, and prove the translation."""
    from transpiler.commands import FileOptions, dump_file, translate_file

    options = FileOptions(
        file, out, kernel and identifier(kernel), spec, target=_arch(target), variants=variants, explore=explore,
        verify=not no_verify, cubins=_cubins(cubin), format=format.value, jobs=jobs, without=_names(without),
    )  # fmt: skip
    return translate_file(options) if dump is None else dump_file(options, dump.value)


@commands_app.command()
def batch(
    sources: Annotated[list[str], typer.Argument(metavar="CORPUS|FILE...", help=_SOURCES, show_default=False)],
    out: Out = _DEFAULT_OUT,
    jobs: Jobs = 0,
    shard: Annotated[str | None, typer.Option("--shard", metavar="I/N", help="do part I of N")] = None,
    cubin: Cubin = "",
    target: Annotated[str | None, typer.Option("--target", metavar="ARCH", help="architecture of the checks",
                                               show_default=False)] = None,
    explore: Explore = False,
    json: Json = None,
    folder: Annotated[Path | None, typer.Option("--sources", metavar="CHECKOUT", help="translate the tilegym in this "
                                                "checkout or folder, not the installed one",
                                                show_default=False)] = None,
    no_cache: NoCache = False,
    without: Without = "",
) -> int:  # fmt: skip
    """Translate and prove whole corpora, in parallel; one failing kernel never stops the rest.

    What an earlier run did and nothing changed of is not done again.
    """
    from transpiler.batch_command import BatchOptions, run_batch

    return run_batch(BatchOptions(tuple(sources), out, jobs, _shard(shard), _cubins(cubin), _arch(target), json,
                                  cached=not no_cache, without=_names(without), folder=folder,
                                  explore=explore))  # fmt: skip


@commands_app.command()
def merge(
    reports: Annotated[list[Path], typer.Argument(metavar="JSON...", help="the JSON of shards", show_default=False)],
    json: Json = None,
) -> int:
    """Join the JSON of shards."""
    from transpiler.commands import run_merge

    return run_merge(reports, json)


@commands_app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="what transpile wrote", show_default=False)],
    cubin: Cubin = "",
    execute: Annotated[bool, typer.Option("--execute", help="also execute both sides, in NumPy")] = False,
    jobs: Jobs = 0,
    json: Json = None,
) -> int:
    """Check DIR again, as it is now, without the sources that it came from."""
    from transpiler.commands import run_verify

    return run_verify(folder, _cubins(cubin), jobs, json, execute=execute)


@commands_app.command()
def coverage(
    sources: Annotated[list[str], typer.Argument(metavar="CORPUS|FILE...", help=_SOURCES, show_default=False)],
    html: Annotated[Path | None, typer.Option("--html", metavar="OUT", help="write the report as one web page")] = None,
    json: Json = None,
    jobs: Jobs = 0,
    cubin: Cubin = "",
    target: Annotated[str | None, typer.Option("--target", metavar="ARCH", help="architecture of the checks",
                                               show_default=False)] = None,
    no_cache: NoCache = False,
    overrides: Annotated[Path | None, typer.Option("--overrides", metavar="DIR", help="use the overrides of this "
                                                   "output folder", show_default=False)] = None,
    without: Without = "",
) -> int:  # fmt: skip
    """Report which rules translate which kernels, what is in the way, and what the proofs rest on."""
    from transpiler.coverage.command import CoverageOptions, run_coverage

    return run_coverage(CoverageOptions(tuple(sources), jobs, _cubins(cubin), _arch(target), html, json, not no_cache,
                                        overrides, _names(without)))  # fmt: skip


@commands_app.command()
def build(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="what transpile wrote", show_default=False)],
) -> int:
    """Build the library of all kernels in DIR with cargo, unless it is there and fits its sources."""
    from transpiler.build_command import run_build

    return run_build(folder)


@commands_app.command()
def changeset(
    operators: Annotated[list[str], typer.Argument(metavar="OPERATOR...", help="operators of TileGym",
                                                   show_default=False)],
    into: Annotated[Path, typer.Option("--into", metavar="CHECKOUT", help="a checkout of TileGym's repository",
                                       show_default=False)],
    patch: Annotated[Path | None, typer.Option("--patch", metavar="FILE", help="write the changes as a patch")] = None,
    evidence: Annotated[Path | None, typer.Option("--evidence", metavar="DIR", help="write both sides' Tile IR and "
                                                  "the comparison of each check")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", metavar="JSON", help="device times for that")] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="write without proving")] = False,
    jobs: Jobs = 0,
) -> int:  # fmt: skip
    """Write operators of a checkout of TileGym into it, laid out as its own Rust ports are."""
    from transpiler.changeset.command import changeset as write_changeset
    from transpiler.workers import usable_cores

    return write_changeset(
        operators, into, patch, evidence, figures, workers=jobs or usable_cores(), verify=not no_verify
    )


@commands_app.command()
def explain(code: Annotated[str, typer.Argument(metavar="CODE", help="such as E0301", show_default=False)]) -> int:
    """Say what a diagnostic means and what to do."""
    from transpiler.explain import explain_code

    return explain_code(code)


@commands_app.command(context_settings={"allow_interspersed_args": False})
def record(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", show_default=False, help=(
        "what to run: python script.py, pytest tests, python -m package"))],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="SPEC.toml", help="where the specializations go")],
) -> int:  # fmt: skip
    """Run a command and write down how it launches kernels, as specializations for --spec and batch."""
    from transpiler.record.command import record as run

    return run(command, out)


@commands_app.command()
def fill(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="what transpile wrote", show_default=False)],
    raised: Annotated[bool, typer.Option("--raise", help="fill from the reference's own Tile IR, one specialization "
                                         "at a time, without asking anybody")] = False,
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="NAME", help="this kernel only")] = None,
    source: Annotated[Path | None, typer.Option("--source", metavar="FILE.py", help="where the source is now")] = None,
    client: Annotated[str | None, typer.Option("--client", metavar="CLIENT", help="who writes: openai:MODEL, "
                                               "anthropic:MODEL, command:PROGRAM or recorded:FILE (also "
                                               "$TRANSPILE_CLIENT); without one, tasks are written as files",
                                               show_default=False)] = None,
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=0, help="tokens that the run may use")] = 200_000,
    hole_tokens: Annotated[int, typer.Option("--hole-tokens", metavar="N", min=0, help="and each Hole")] = 40_000,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="how long an answer may take")] = 120.0,
    again: Annotated[bool, typer.Option("--again", help="ask again what an earlier run was answered")] = False,
    json: Json = None,
    jobs: Jobs = 0,
) -> int:  # fmt: skip
    """Fill what no rule maps: tasks for a language model or for you, answers that are checked, overrides."""
    from transpiler.agents.command import FillOptions, run_fill

    return run_fill(FillOptions(folder, raised, kernel and identifier(kernel), source, json, jobs, client, tokens,
                                hole_tokens, seconds, again))  # fmt: skip


@commands_app.command()
def promote(
    override: Annotated[Path, typer.Argument(metavar="OVERRIDE", help="a file of DIR/_overrides", show_default=False)],
    into: Annotated[Path, typer.Option("--into", metavar="CHECKOUT", help="where the rule and its case go")] = Path(),
) -> int:
    """Make an override a rule and a case, for a maintainer to review."""
    from transpiler.agents.command import run_promote

    return run_promote(override, into)


COMMANDS = frozenset(
    {"batch", "merge", "verify", "coverage", "build", "record", "changeset", "explain", "fill", "promote"}
)


def near_command(word: str) -> str | None:
    """Return the subcommand that a word was probably meant to be: it begins so, or differs by a slip."""
    begun = [name for name in sorted(COMMANDS) if len(word) > 1 and name.startswith(word)]
    return next(iter([*begun, *difflib.get_close_matches(word, sorted(COMMANDS), n=1, cutoff=0.7)]), None)


@commands_app.callback()
def about(
    version: Annotated[bool, typer.Option("--version", help="print the versions that results depend on")] = False,
) -> None:
    """Translate cuTile Python to cuTile Rust, and prove each translation on a CPU.

    transpile FILE.py [-o DIR]   translates one file (`transpile FILE.py --help` shows its options)
    """


# Reading option values


def _arch(text: str | None) -> str | None:
    from transpiler.toolkit import is_architecture, not_an_architecture

    if text is not None and not is_architecture(text):
        raise not_an_architecture(text)
    return text


def _cubins(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for part in found:
        _arch(part)
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(";") if part.strip()))


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise error("E0804", f"`{text}` is not a shard", help="write --shard I/N with I from 1 to N, such as 2/4")
    return int(index), int(count)
