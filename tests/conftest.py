"""What tests of several files need."""

import sys
import types

import pytest
from command_line import denoise_halving

from vnlem import registry
from vnlem.cli import main


@pytest.fixture
def halving(monkeypatch):
    module = types.ModuleType("halving_method")
    module.denoise_halving = denoise_halving
    monkeypatch.setitem(sys.modules, "halving_method", module)
    monkeypatch.setitem(registry.METHODS, "halving", "halving_method:denoise_halving")


@pytest.fixture
def cli(capfd, halving):
    """Run the command line: exit status, stdout, stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return left.value.code, out, err

    return run
