# From nothing: `make demo` shows the package at work, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data

.PHONY: demo test test-browser lint stub bench-speed bench-quality clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per set of extras, renewed when the dependencies change.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[dev,bench,peers]"
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/vnlem demo

test: lint
	$(BIN)/python -m pytest

# The bench report in a real browser; Chromium is installed if it is missing and that is allowed.
test-browser: $(VENV)/.installed-dev
	tests/browser/install.sh
	$(BIN)/python -m pytest tests/browser

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The types of the public names, from the functions themselves.
stub: $(VENV)/.installed-dev
	$(BIN)/python tools/make_stub.py

bench-speed: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/speed.py

bench-quality: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/quality.py --data $(DATA)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
