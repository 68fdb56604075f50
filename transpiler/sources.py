"""Where the modules of corpora come from when it isn't the installed package: a checkout, or a folder of packages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from transpiler.diagnostics import error
from transpiler.inputs import Lookups

_LAYOUTS = ("src", "")
PACKAGE = "tilegym"


@dataclass(frozen=True)
class SourcesFolder:
    """A folder whose packages take the place of installed ones; ``shown`` is how the user called it."""

    root: Path
    shown: str

    def module(self, name: str, lookups: Lookups) -> Path:
        """Return the source of a module by its dotted name; E0848 where there is none that belongs to the package.

        What stands in the way of finding it is noted in ``lookups``, so that results end when it changes.
        """
        top, *rest = name.split(".")
        path = lookups.module(self.root.joinpath(top, *rest))
        if path is None:
            raise error("E0848", f"{self.shown} has no module `{name}`", help="its version of the package lacks the "
                        "operator: leave it out, or name a checkout that has it")  # fmt: skip
        self._belongs(name, path, lookups)
        return path

    def display(self, path: Path) -> str:
        """Return how a module is shown: from its package's folder on, as an installed one is."""
        return path.relative_to(self.root).as_posix()

    def _belongs(self, name: str, path: Path, lookups: Lookups) -> None:
        """Raise E0848 where a file's imports wouldn't be those of this folder (its place decides what they mean)."""
        root, folder = self.root.resolve(), path.resolve().parent
        if not folder.is_relative_to(root):
            raise error("E0848", f"the module `{name}` of {self.shown} is a link that leads out of it",
                        help="its imports would be those of another place: put the file itself there")  # fmt: skip
        while folder != root:
            marker = folder / "__init__.py"
            if not marker.is_file():
                lookups.absent[str(marker)] = None
                raise error("E0848", f"{self.shown}: {folder.relative_to(root).as_posix()} of the module `{name}` has "
                            "no __init__.py, so its imports would be those of the installed package",
                            help="add an empty __init__.py to the folder")  # fmt: skip
            lookups.read(marker)
            folder = folder.parent


def sources_folder(given: Path, package: str = PACKAGE) -> SourcesFolder:
    """Find a package in a checkout (``src/PACKAGE``) or a folder that holds it (E0847 where it isn't)."""
    shown = given.as_posix()
    try:
        os.listdir(given)
    except OSError as exc:
        raise error("E0847", f"can't read the folder {shown}: {exc.strerror}",
                    help="name a clone of the repository, or a folder that holds the package") from None  # fmt: skip
    for layout in _LAYOUTS:
        root = given / layout
        if (root / package / "__init__.py").is_file():
            if (root / "__init__.py").is_file():
                raise error("E0847", f"{root.as_posix()} is a package itself, so `{package}` in it is another one",
                            help="delete its __init__.py")  # fmt: skip
            return SourcesFolder(root, shown)
    raise error("E0847", f"{shown} holds no package `{package}`: there is neither src/{package}/__init__.py nor "
                f"{package}/__init__.py", help="name a clone of the repository, or a folder that holds the "
                "package")  # fmt: skip
