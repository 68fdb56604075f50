"""Finding NVIDIA's tools and the project's own data files."""

from __future__ import annotations

import os
import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from transpiler import resources, toolkit
from transpiler.diagnostics import TranspileError

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPONENTS = (
    toolkit.TILEIRDISASM,
    toolkit.TILEIRAS,
    toolkit.PTXAS,
    toolkit.CUDA_HEADER,
    toolkit.CRT_HEADER,
    toolkit.CURAND_HEADER,
    toolkit.LIBCLANG,
)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(toolkit.OVERRIDE, raising=False)
    toolkit.locate.cache_clear()
    yield
    toolkit.locate.cache_clear()


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.path)
def test_every_component_is_found_in_the_installed_packages(component: toolkit.Component) -> None:
    assert toolkit.locate(component).is_file()


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.path)
def test_a_missing_component_names_the_package_to_install(
    component: toolkit.Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(package: str) -> None:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "files", missing)
    with pytest.raises(TranspileError) as caught:
        toolkit.locate(component)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "E0650"
    assert component.path.rpartition("/")[2] in diagnostic.message
    extra = "'cutile-transpiler[build]'`, the extra that brings "
    assert f"pip install {extra if component in toolkit._BUILD else ''}{component.package}" in diagnostic.help


def test_all_that_building_misses_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known = metadata.files
    gone = (toolkit.CURAND_HEADER.package, toolkit.LIBCLANG.package)
    monkeypatch.setattr(metadata, "files", lambda package: [] if package in gone else known(package))
    with pytest.raises(TranspileError, match=r"E0650: `curand.h` and `libclang.so` are not installed") as caught:
        toolkit.build_environment()
    assert "`pip install 'cutile-transpiler[build]'`, the extra that brings nvidia-curand libclang" in (
        caught.value.diagnostic.help
    )


def test_the_extra_is_what_building_takes() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    extra = project["project"]["optional-dependencies"]["build"]
    assert [one.partition("==")[0] for one in extra] == [component.package for component in toolkit._BUILD]
    assert set(extra) < set(project["build-system"]["requires"])


def test_a_file_that_was_deleted_from_its_package_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    with pytest.raises(TranspileError, match="E0650"):
        toolkit.locate(toolkit.TILEIRAS)


def test_the_override_is_used_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(toolkit.OVERRIDE, str(tmp_path))
    with pytest.raises(TranspileError, match="E0651"):
        toolkit.locate(toolkit.TILEIRDISASM)
    tool = tmp_path / "bin" / "tileirdisasm"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho it was me\n")
    tool.chmod(0o755)
    assert toolkit.disassemble(b"") == "it was me\n"


def test_what_is_no_bytecode_is_one_clear_error() -> None:
    with pytest.raises(TranspileError, match=r"E0652: `tileirdisasm` failed: .+"):
        toolkit.disassemble(b"no bytecode")


def test_a_tool_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(toolkit.OVERRIDE, str(tmp_path))
    tool = tmp_path / "bin" / "tileiras"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    with pytest.raises(TranspileError, match="did not end within"):
        toolkit.run_tool(toolkit.TILEIRAS, [], timeout=0.2)


def test_tools_run_without_the_variables_of_other_toolkits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", "/elsewhere")
    monkeypatch.setenv("CUDA_PATH", "/elsewhere")
    monkeypatch.setenv("KEPT", "yes")
    environment = toolkit.tool_environment()
    assert "CUDA_HOME" not in environment
    assert "CUDA_PATH" not in environment
    assert environment["KEPT"] == "yes"


def test_the_assembler_runs() -> None:
    assert b"release" in toolkit.run_tool(toolkit.TILEIRAS, ["--version"])


def test_cargo_is_told_where_everything_is() -> None:
    environment = toolkit.build_environment()
    root = Path(environment["CUDA_TOOLKIT_PATH"])
    assert (root / "include" / "cuda.h").is_file()
    assert (root / "include" / "curand.h").is_file()
    assert (Path(environment["LIBCLANG_PATH"]) / "libclang.so").is_file()
    include = environment["BINDGEN_EXTRA_CLANG_ARGS"].removeprefix("-isystem ")
    assert (Path(include) / "stddef.h").is_file()


def test_use_names_the_toolkit_to_cutile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_TOOLKIT_PATH", "/elsewhere")
    toolkit.use()
    assert (Path(os.environ["CUDA_TOOLKIT_PATH"]) / "bin" / "tileiras").is_file()


def test_versions_name_both_front_ends_and_the_assembler() -> None:
    versions = toolkit.versions()
    assert versions["cutile"] == "0.5.0"
    assert versions["cuda-tile"] == "1.7.0"
    assert versions["nvidia-cuda-tileiras"] == "13.5.37"
    assert "missing" not in versions.values()


def test_data_files_are_those_of_the_checkout_or_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("transpiler/_data/templates", "transpiler/_data/corpus", "templates", "corpus"):
        (tmp_path / name).mkdir(parents=True)
    package = tmp_path / "transpiler"
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resources.templates_dir() == package / "_data" / "templates", (
        "a `templates` folder beside it is a stranger's"
    )
    (tmp_path / "pyproject.toml").touch()
    assert resources.templates_dir() == tmp_path / "templates"
    assert resources.corpus_dir() == tmp_path / "corpus"
