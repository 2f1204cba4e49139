# From nothing: `make demo` shows the package at work, `make test` proves it.
PYTHON ?= python3
VENV := .venv
NAPARI_VENV := .venv-napari
BIN := $(VENV)/bin
DATA ?= ../shared/data

# Tests start Python hundreds of times. Compiled modules are kept in the environment even if
# PYTHONDONTWRITEBYTECODE is set: otherwise every start would compile every package again.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache

.PHONY: demo dist wheels docs docs-links golden test test-quick test-browser test-napari test-versions test-sets test-sanitize test-no-compiler lint stub fuzz docs-output bench-speed bench-quality bench-first-call clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Sources of an installation: the kernels are compiled again when one of these changes.
PACKAGE := pyproject.toml CMakeLists.txt tools/build_backend.py tools/zig.cmake $(wildcard src/vnlem/kernels/cpu/*.cpp src/vnlem/kernels/cpu/*.h src/vnlem/kernels/shared/*.h)

# One stamp per set of extras, renewed when the package changes.
# Python compiles what is imported; pip would compile every file of every package, which takes longer.
$(VENV)/.installed: $(PACKAGE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile -e .
	touch $@

$(VENV)/.installed-dev: $(PACKAGE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile -e ".[test,bench]"
	touch $@ $(VENV)/.installed

# What benchmarks compare with; the licence of bm3d and bm4d allows only non-commercial use.
$(VENV)/.installed-peers: $(PACKAGE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile -e ".[test,bench,peers]"
	touch $@ $(VENV)/.installed-dev $(VENV)/.installed

$(VENV)/.installed-browser: $(PACKAGE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile -e ".[test,bench,browser]"
	touch $@ $(VENV)/.installed-dev $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/vnlem demo

# Tests in parallel on all cores, each with a list of files; the first to finish takes files from the others.
SIDE_BY_SIDE := -n logical --maxprocesses 8 --dist worksteal

test: lint
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

# For every change: without slow tests, and without types.
test-quick: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow"

# The bench report in a real browser; Chromium is installed if it is missing and that is allowed.
test-browser: $(VENV)/.installed-browser
	tests/browser/install.sh
	$(BIN)/python -m pytest tests/browser

# The plugin in a real napari under Xvfb, in a separate environment, because napari and Qt are large.
test-napari:
	tests/napari/install.sh $(NAPARI_VENV) || { [ $$? = 3 ] && exit 0; exit 1; }; \
	$(NAPARI_VENV)/bin/npe2 validate vnlem && \
	xvfb-run -a -s "-screen 0 1400x1000x24" $(NAPARI_VENV)/bin/python -m pytest -c tests/napari/pytest.ini \
		--doctest-modules tests/napari src/vnlem/napari

# The dependencies of kernels, files and figures, at their lowest and highest allowed versions.
KERNEL_TESTS := tests/test_select.py tests/test_matching_kernels.py tests/test_movie_kernels.py tests/test_vnlr_kernels.py tests/test_vnlem_kernels.py \
	tests/test_sheets.py tests/test_window_methods.py tests/test_ring_features.py tests/test_diffusion.py tests/test_vnlem.py \
	tests/test_vnlem_dd.py tests/test_vnlr.py tests/test_vnlr_groups.py tests/test_vnlr_aim.py tests/test_vnlr_channels.py tests/test_stack*.py
SANITIZED_TESTS := tests/test_select.py tests/test_matching_kernels.py tests/test_movie_kernels.py tests/test_vnlr_kernels.py tests/test_vnlem_kernels.py \
	tests/test_sheets.py tests/test_ring_features.py tests/test_diffusion.py tests/test_kernel_table.py tests/test_scale_kernels.py tests/test_noise_kernels.py
VERSION_TESTS := $(KERNEL_TESTS) tests/test_frame.py tests/test_metrics.py tests/test_io.py
test-versions:
	for ends in lowest highest; do \
		$(PYTHON) -m venv --clear .venv-$$ends && \
		.venv-$$ends/bin/python -m pip install --quiet -c tests/versions/$$ends.txt -e . -r tests/versions/tests.txt && \
		.venv-$$ends/bin/python -m pytest -W default $(VERSION_TESTS) || exit 1; \
	done

# Kernels as on processors with AVX2 and with SSE4.2 only.
test-sets: $(VENV)/.installed-dev
	for set in x86-64-v2 x86-64-v3; do \
		VNLEM_ISA=$$set $(BIN)/python -m pytest $(SIDE_BY_SIDE) $(KERNEL_TESTS) tests/test_golden.py || exit 1; \
	done

# Kernels that check every index, under the sanitizers of addresses and of undefined behaviour; then kernels in
# several threads under the sanitizer of threads. Needs GCC or Clang.
test-sanitize: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet scikit-build-core cmake ninja
	$(BIN)/python tools/sanitize.py address,undefined -m pytest $(SANITIZED_TESTS)
	$(BIN)/python tools/sanitize.py thread tests/threads.py

# The installation on a machine without compilers, where Zig comes from the package registry.
test-no-compiler: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/no_compiler.py

# Thousands of calls with random images and parameters, with damaged files, and of command lines.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python tests/any_call.py --cases $(or $(CASES),10000)
	$(BIN)/python tests/any_file.py --cases $(or $(FILES),5000)
	$(BIN)/python tests/any_command.py --cases $(or $(COMMANDS),2000)

# Freeze today's quality of the golden calls as the reference of the tests.
golden: $(VENV)/.installed-dev
	$(BIN)/python tests/golden.py --renew

$(VENV)/.installed-docs: $(PACKAGE) | $(BIN)/python
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

# Wheels for every system, compiled on this machine: Zig compiles for the others. The wheel for this machine is
# installed in an empty environment and tried, the others are tried as far as this machine can.
wheels: | $(BIN)/python
	rm -rf build/wheels
	$(BIN)/python -m pip install --quiet build lief ziglang scikit-build-core cmake ninja
	$(BIN)/python tools/make_wheels.py build/wheels
	$(PYTHON) -m venv --clear build/dist-venv
	build/dist-venv/bin/python -m pip install --quiet build/wheels/*-manylinux*_$$(uname -m).whl
	cd build && dist-venv/bin/python ../tests/smoke.py
	tests/aarch64.sh build/wheels/*_aarch64.whl build/aarch64 $(BIN)/python || [ $$? = 3 ]

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The types of the public names, from the functions themselves.
stub: $(VENV)/.installed-dev
	$(BIN)/python tools/make_stub.py

# What the commands in docs/command-line.md print.
docs-output: $(VENV)/.installed-dev
	$(BIN)/python tools/docs_output.py

bench-speed: $(VENV)/.installed-peers
	$(BIN)/python benchmarks/speed.py

bench-quality: $(VENV)/.installed-peers
	$(BIN)/python benchmarks/quality.py --data $(DATA)

# How long a user waits for the first result.
bench-first-call: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/first_call.py

clean:
	rm -rf $(VENV) $(NAPARI_VENV) .venv-lowest .venv-highest build dist docs/generated .pytest_cache .mypy_cache .ruff_cache
