# From nothing: `make demo` shows the package at work, `make test` proves it.
PYTHON ?= python3
VENV := .venv
NAPARI_VENV := .venv-napari
BIN := $(VENV)/bin
DATA ?= ../shared/data

.PHONY: demo test test-browser test-napari lint stub fuzz bench-speed bench-quality clean

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

# The plugin in a real napari under Xvfb, in an environment of its own, since napari and Qt are large.
test-napari:
	tests/napari/install.sh $(NAPARI_VENV) || { [ $$? = 3 ] && exit 0; exit 1; }; \
	$(NAPARI_VENV)/bin/npe2 validate vnlem && \
	xvfb-run -a -s "-screen 0 1400x1000x24" $(NAPARI_VENV)/bin/python -m pytest -c tests/napari/pytest.ini \
		--doctest-modules tests/napari src/vnlem/napari

# Thousands of calls with images and parameters of every kind.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python tests/any_call.py --cases $(or $(CASES),4000)

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
	rm -rf $(VENV) $(NAPARI_VENV) build dist .pytest_cache .mypy_cache .ruff_cache
