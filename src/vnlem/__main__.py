"""``python -m vnlem``, if the command itself is not on the path."""

from vnlem.cli import main

if __name__ == "__main__":
    main()
