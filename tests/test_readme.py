"""The README and the tutorials say what works: every command and every line of Python is run."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from user_pages import ROOT, blocks, commands, run_python

from vnlem.cli import main

README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
TUTORIALS = [page for page in PAGES if blocks(page, "sh") or blocks(page, "python")]
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DATA = "docs/tutorials/data"
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder with the sample files at the same places as in a clone."""
    (tmp_path / "docs").mkdir()
    os.symlink(ROOT / "docs" / "tutorials", tmp_path / "docs" / "tutorials")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words):
    """Run a command of a page; installation commands are checked, not run."""
    program = words[0].removeprefix(".venv/bin/")
    if program == "vnlem":
        with pytest.raises(SystemExit) as left:
            main(words[1:])
        assert left.value.code == 0, words
    elif program == "pip":
        for wanted in words[2:]:
            extras = re.fullmatch(r"\.(?:\[([\w,]+)\])?|jupyterlab|napari\[all\]", wanted)
            assert extras, words
            for extra in filter(None, (extras[1] or "").split(",")):
                assert extra in PROJECT["optional-dependencies"]
    elif program == "make":
        assert re.search(rf"^{words[1]}:", MAKEFILE, re.MULTILINE), words
    else:
        assert words in (["python3", "-m", "venv", ".venv"], ["napari"], ["jupyter", "lab"]), words


@pytest.mark.slow
def test_the_python_of_the_readme_runs(clone):
    namespace = run_python(README)
    assert namespace["denoised"].shape == namespace["image"].shape
    assert (clone / "wipe.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_commands_of_the_readme_run(clone, capsys):
    found = list(commands(README))
    assert len(found) > 8
    for words in found:
        run(words)
    assert (clone / "clean.tif").exists()
    assert "clean.tif: what was removed looks like the noise" in capsys.readouterr().out


def test_the_readme_names_files_that_are_there():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_can_be_followed_word_for_word(page, clone):
    (clone / "photos").mkdir()
    for words in commands(page):
        run(words)
        if words[0].endswith("vnlem") and words[1] == "denoise" and "--dry-run" not in words:
            assert (clone / words[3]).exists(), words
    run_python(page)


@pytest.mark.slow
def test_the_start_page_can_be_followed_word_for_word(clone):
    page = ROOT / "docs" / "start.md"
    run_python(page)
    found = list(commands(page))
    assert len(found) > 2
    for words in found:
        run(words)


@pytest.mark.slow
def test_the_package_can_be_prepared_for_installation():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--no-deps",
            "--no-build-isolation",
            "--quiet",
            ".",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
