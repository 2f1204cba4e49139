"""The command line: ``vnlem COMMAND ...``.

Every command is a module of this package with a function ``command``; a new one is a file and a line in
:data:`COMMANDS`. Modules import what is heavy inside that function, so that ``vnlem --help`` stays quick.
"""

import importlib
import sys
from typing import Annotated

import typer

from vnlem import __version__
from vnlem.cli.errors import exit_status

# Modules of this package, in the order of the help page.
COMMANDS = ("denoise", "info", "noise", "compare", "bench", "neighbors", "theory", "demo")


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(name="vnlem", add_completion=False, pretty_exceptions_enable=False)

    @app.callback(invoke_without_command=True)
    def top(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    ) -> None:
        """Rotation-aware non-local image denoising."""
        if version:
            print(f"vnlem {__version__}")
        elif context.invoked_subcommand is None:
            print(context.get_help())

    for name in COMMANDS:
        app.command(name)(importlib.import_module(f"vnlem.cli.{name.replace('-', '_')}").command)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    application = typer.main.get_command(build())
    sys.exit(exit_status(lambda: application.main(arguments, prog_name="vnlem", standalone_mode=False)))
