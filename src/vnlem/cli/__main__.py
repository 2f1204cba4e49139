"""``python -m vnlem.cli``: the command line, if the script is not on the path."""

from vnlem.cli import main

main()
