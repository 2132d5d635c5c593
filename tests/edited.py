"""Programs that run with a line added to a source of anyburl, for tests of what one line does."""

from __future__ import annotations

from pathlib import Path

import anyburl

IMPORT_EDITED = """
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader

class Edited(SourceFileLoader):
    def get_code(self, fullname):
        source = open(self.path, encoding="utf-8").read()
        assert source.count({line!r}) == 1
        return compile(source.replace({line!r}, {line!r} + {new!r}), self.path, "exec")

class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None, load=Edited):  # its own: another module may be edited as well
        return ModuleSpec(name, load(name, {path!r}), origin={path!r}) if name == {module!r} else None

sys.meta_path.insert(0, Finder())
"""


def with_line_added(module: str, line: str, new: str, program: str) -> str:
    """Return a program that runs with the line `new` after `line`, which the source of the module has once."""
    path = Path(anyburl.__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py")
    return IMPORT_EDITED.format(module=module, path=str(path), line=line, new=new) + program
