"""Shared fixtures."""

import pytest

from vnlem import registry
from vnlem.cli import main


@pytest.fixture
def halving(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "halving", "command_line:METHOD")


@pytest.fixture
def cli(capfd, halving):
    """Run the command line: exit status, stdout, stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return left.value.code, out, err

    return run
