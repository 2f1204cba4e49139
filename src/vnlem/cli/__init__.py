"""The command line: ``vnlem COMMAND ...``.

Every command is a module of this package with a function ``command`` and its EXAMPLES; a new one is a file
and a line in :data:`COMMANDS`. Modules import heavy packages inside that function: ``vnlem --help`` stays
quick.
"""

import importlib
import sys
from typing import Annotated, Any

import typer

from vnlem import __version__
from vnlem.cli.errors import exit_status
from vnlem.cli.help import tidy

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
        """Image denoising without training, for microscopes and cameras."""
        if version:
            print(f"vnlem {__version__}")
        elif context.invoked_subcommand is None:
            print(context.get_help())

    for name in COMMANDS:
        app.command(name)(importlib.import_module(f"vnlem.cli.{name}").command)
    return app


def application_of(app: typer.Typer) -> Any:
    """The commands with their help pages; a module's EXAMPLES are shown at the end of its page."""
    application: Any = typer.main.get_command(app)
    tidy(application, ("vnlem denoise noisy.tif denoised.tif", "vnlem denoise --help"))
    for name, command in application.commands.items():
        module = importlib.import_module(f"vnlem.cli.{name}")
        tidy(command, module.EXAMPLES)
    return application


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    application = application_of(build())
    sys.exit(exit_status(lambda: application.main(arguments, prog_name="vnlem", standalone_mode=False)))
