"""The command line's help: quick to come, every command and option explained, within the terminal."""

import inspect
import subprocess
import sys

import pytest
from command_line import Terminal

import vnlem
from vnlem.cli import COMMANDS


@pytest.mark.parametrize("arguments", [["--help"], ["denoise", "--help"], ["--version"]])
def test_help_and_version_load_nothing_heavy(arguments):
    heavy = ["scipy", "skimage", "PIL", "tifffile", "matplotlib"]
    code = (
        "import sys\n"
        "from vnlem.cli import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit as left:\n"
        "    assert left.code == 0\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert done.stdout.strip()


def test_importing_the_package_loads_no_array_library():
    code = "import sys, vnlem; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_package_can_be_run_as_a_module():
    done = subprocess.run([sys.executable, "-m", "vnlem", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"vnlem {vnlem.__version__}\n")


def test_version_is_the_packages(cli):
    assert cli("--version") == (0, f"vnlem {vnlem.__version__}\n", "")


def test_every_command_is_listed_and_explained(cli):
    status, out, _ = cli()
    assert status == 0
    for name in COMMANDS:
        assert name in out
        assert cli(name, "--help")[0] == 0


def test_the_help_lists_the_methods(cli):
    _, out, _ = cli("denoise", "--help")
    for name in ("nlm", "nlem", "nlpr"):
        assert name in out


def test_the_help_of_options_is_what_the_docstring_of_the_function_says(cli):
    _, out, _ = cli("denoise", "--help")
    words = " ".join(out.replace("│", " ").split())
    for sentence in (
        "Standard deviation of white noise, or of the complex noise behind magnitudes",
        "Threads; all cores",
    ):
        assert sentence in words
        assert sentence in inspect.getdoc(vnlem.denoise)


def parsed(name):
    """A command as click knows it."""
    from vnlem.cli import application_of, build

    return application_of(build()).commands[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_pages_show_flags_without_a_type_and_no_none(cli, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = cli(name, "--help")
    assert "<bool>" not in out
    assert "When None" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_help_page_can_be_given(name):
    import importlib
    import shlex

    from vnlem.bench.variants import parse_variants

    for example in importlib.import_module(f"vnlem.cli.{name}").EXAMPLES:
        first, second, *arguments = shlex.split(example)
        assert (first, second) == ("vnlem", name)
        given = parsed(name).make_context(name, arguments).params  # raises where an option is unknown
        if given.get("methods"):
            parse_variants(given["methods"].split(","), given["protocol"])


def test_options_stand_in_the_panel_of_their_topic():
    panels = {one.name: getattr(one, "rich_help_panel", None) for one in parsed("denoise").params}
    assert panels["axes"] == panels["channels"] != panels["memory"]
    assert panels["noise"] == panels["noise_model"] == panels["sigma"] is not None


def test_a_table_fits_the_terminal(monkeypatch):
    from vnlem.cli.table import metric_table

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    names = ("snr", "psnr", "rms", "sobolev", "emd", "fsim", "ssim", "seconds")
    metric_table("title", {"vnlr": dict.fromkeys(names, 1.0)})
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert sum("vnlr" in line for line in lines) == 2
