# From nothing: `make demo` shows the package at work, `make test` proves it.
PYTHON ?= python3
VENV := .venv
NAPARI_VENV := .venv-napari
BIN := $(VENV)/bin
DATA ?= ../shared/data

.PHONY: demo dist docs docs-links test test-browser test-napari lint stub fuzz bench-speed bench-quality clean

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

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@

# The site, with the gallery run; a warning is an error. Open build/docs/index.html.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# Also the links to other sites; needs the network.
docs-links: docs
	$(BIN)/python -m sphinx -q -b linkcheck -D sphinx_gallery_conf.plot_gallery=False docs build/linkcheck

# The source distribution and the wheel, each installed in an empty environment and tried there.
dist: | $(BIN)/python
	rm -rf dist build/dist-venv
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir dist
	for package in dist/*.whl dist/*.tar.gz; do \
		$(PYTHON) -m venv --clear build/dist-venv && \
		build/dist-venv/bin/python -m pip install --quiet "$$package" && \
		(cd build && dist-venv/bin/python ../tests/smoke.py) || exit 1; \
	done

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
	rm -rf $(VENV) $(NAPARI_VENV) build dist docs/generated docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache
