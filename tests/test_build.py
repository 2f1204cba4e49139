"""The build uses the installed compiler, or Zig, and says in one sentence what is missing."""

import importlib.util
import os
import shutil
import stat
from pathlib import Path

import pytest

pytest.importorskip("scikit_build_core")
ROOT = Path(__file__).parents[1]


@pytest.fixture
def backend(monkeypatch):
    for name in ("CC", "CXX", "VNLEM_TARGET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    found = importlib.util.spec_from_file_location("build_backend", ROOT / "tools" / "build_backend.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def program(folder, name, text="#!/bin/sh\nexit 1\n"):
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def test_zig_is_asked_for_where_no_compiler_works(backend, monkeypatch, tmp_path):
    for name in ("cc", "c++", "gcc", "g++"):  # there, but too old
        program(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(backend, "_can_install", lambda requirement: True)
    needed = backend.get_requires_for_build_editable()
    assert backend.ZIG in needed
    assert any(requirement.startswith("cmake") for requirement in needed)
    monkeypatch.setattr(backend, "find_zig", lambda: None)
    with pytest.raises(SystemExit, match="no C\\+\\+ compiler was found; install a C\\+\\+ compiler"):
        backend.compiler_options()
    monkeypatch.setattr(backend, "_can_install", lambda requirement: False)
    with pytest.raises(SystemExit, match="pip finds no ziglang"):
        backend.get_requires_for_build_wheel()


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a compiler")
def test_a_compiler_that_works_is_taken(backend):
    assert backend.find_compiler() == ("cc", "c++")
    assert backend.ZIG not in backend.get_requires_for_build_wheel()


def test_a_named_compiler_that_does_not_work_is_refused(backend, monkeypatch, tmp_path):
    program(tmp_path, "old-g++")
    monkeypatch.setenv("CXX", str(tmp_path / "old-g++"))
    with pytest.raises(SystemExit, match="does not compile the kernels; name GCC"):
        backend.find_compiler()


def test_another_system_is_compiled_for_by_zig(backend, monkeypatch):
    monkeypatch.setattr(backend, "TARGET", "aarch64-linux-gnu.2.17")
    monkeypatch.setattr(backend, "find_zig", lambda: Path("/zig"))
    assert backend.compiler_options()["VNLEM_TARGET"] == "aarch64-linux-gnu.2.17"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_one_sentence(backend, monkeypatch, tmp_path):
    tmp_path.chmod(stat.S_IREAD | stat.S_IEXEC)
    monkeypatch.setattr(backend, "KERNELS", tmp_path)
    with pytest.raises(SystemExit, match="cannot be written to; use a copy that can"):
        backend.build_editable(str(tmp_path))
