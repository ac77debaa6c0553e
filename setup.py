"""Compiles the hot modules with mypyc, from the sources that also run interpreted; the rest is in pyproject.toml.

Compiled are the modules of the core but two kinds: packages' `__init__`, and modules that define a class with keywords,
because mypyc silently ignores the keywords (a frozen message would become mutable, and its encoding would change).

Without mypyc or a C compiler, or with `ROAMCAST_PURE=1`, nothing is compiled and everything works interpreted.
"""

import ast
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from multiprocessing.pool import ThreadPool
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGE = Path("src", "roamcast")
FORM = runpy.run_path(str(PACKAGE / "form.py"))
HOT_OF_TRACE = "trace/recorder.py"  # the rest of the room reads finished traces


def compiles(path: Path) -> bool:
    name = path.relative_to(PACKAGE).as_posix()
    if path.name == "__init__.py" or (name.startswith("trace/") and name != HOT_OF_TRACE):
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return not any(isinstance(node, ast.ClassDef) and node.keywords for node in ast.walk(tree))


def works(compiler: str, *options: str) -> bool:
    """Checked first, because mypyc takes half a minute before it calls the compiler."""
    command = [*compiler.split(), f"-I{sysconfig.get_path('include')}", *options, "-x", "c", "-"]
    return subprocess.run(command, input=b"#include <Python.h>\n", capture_output=True, check=False).returncode == 0


MYPY = """
[mypy]
ignore_missing_imports = True

[mypy-roamcast.library.*,roamcast.live.*]
follow_imports = skip
"""
"""The package's table of contents names all rooms. What compiles needs none of those, nor their libraries."""


def extensions() -> list[Extension]:
    if os.environ.get("ROAMCAST_PURE", "0") not in ("", "0"):
        return []
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if shutil.which(compiler.split()[0]) is None:
        print(f"roamcast: no C compiler ({compiler}): it will run interpreted")
        return []
    if os.name == "posix" and not works(compiler, "-fsyntax-only"):
        print(f"roamcast: {compiler} cannot compile a line that includes Python.h: it will run interpreted")
        return []
    try:
        from mypyc.build import mypycify
    except ImportError:
        print("roamcast: mypyc is not installed: it will run interpreted")
        return []
    rooms = [PACKAGE / room for room in FORM["CORE"]]
    files = [file for room in rooms for file in ([room] if room.is_file() else sorted(room.rglob("*.py")))]
    with TemporaryDirectory() as directory:
        config = Path(directory, "mypy.ini")
        config.write_text(MYPY, encoding="utf-8")
        made: list[Extension] = mypycify(
            [f"--config-file={config}", *(str(file) for file in files if compiles(file))],
            group_name="roamcast",
            multi_file=True,
            opt_level="3",
        )
    if os.name == "posix":
        with TemporaryDirectory() as directory:
            links = works(compiler, "-flto=auto", "-fPIC", "-shared", "-o", str(Path(directory, "library")))
        for extension in made:
            whole = ["-flto=auto"] if links and extension.name.endswith("__mypyc") else []  # the others are stubs
            extension.extra_compile_args = [  # mypyc gives all extensions the same list
                *extension.extra_compile_args,
                *whole,  # modules optimised as one
                "-ffp-contract=off",  # floats as Python computes them, on every machine
                "-fno-semantic-interposition",  # calls inside the library need no detour
                "-fno-plt",  # nor those of Python's functions
                "-fvisibility=hidden",
            ]
            extension.extra_link_args = [*extension.extra_link_args, *whole, "-O3"]
    return made


class Build(build_ext):
    """All cores compile and link, and the binaries know what they were made from."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        compile_some = self.compiler.compile

        def compile_all(sources: list[str], **options: object) -> list[str]:
            with ThreadPool(os.cpu_count() or 1) as pool:
                parts = pool.map(lambda source: compile_some([source], **options), sources, chunksize=1)
            return [made for part in parts for made in part]

        self.compiler.compile = compile_all
        if not self.in_place and sys.platform == "linux":
            for extension in self.extensions:
                extension.extra_link_args.append("-Wl,-s")  # a wheel without symbols is 17 MB smaller
        super().build_extensions()

    def run(self) -> None:
        self.in_place = self.inplace  # setuptools clears it while it builds
        super().run()
        if self.in_place:
            made = {Path(self.get_ext_fullpath(extension.name)).resolve() for extension in self.extensions}
            for binary in PACKAGE.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
                if binary.resolve() not in made:  # of a module that is not compiled any more
                    binary.unlink()
        if self.extensions:
            place = PACKAGE if self.in_place else Path(self.build_lib, PACKAGE.name)
            (place / FORM["NOTE"]).write_text(FORM["digest_of"](PACKAGE), encoding="utf-8")


setup(ext_modules=extensions(), cmdclass={"build_ext": Build})
