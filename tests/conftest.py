"""What tests of several files need."""

import os
import sys
import types

import pytest
from command_line import denoise_halving

from vnlem import registry
from vnlem.cli import main

# Tests of what is on stderr must not depend on whether kernels are compiled already.
os.environ.setdefault("VNLEM_QUIET", "1")
# Where tests run side by side every core has work: nobody is asked to help with compiling.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("VNLEM_COMPILERS", "1")


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
