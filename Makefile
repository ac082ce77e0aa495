# `make run` and `make test` create the virtual environment on first use.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
READY := $(VENV)/.ready

.PHONY: run test reproduce fuzz boundscheck nojit lint types wheel format bench docs clean

run: $(READY)
	@mkdir -p build
	$(BIN)/cafe demo --out build --force

test: $(READY) lint types
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

# Repeat the paper's experiment, the comparison of methods and the study of the theory. This takes
# hours; an interrupted run is resumed.
reproduce: $(READY)
	$(BIN)/python -m reproduction paper
	$(BIN)/python -m reproduction study
	$(BIN)/python -m reproduction theory

# Run the fuzzer for an hour and print a summary. Choose a SEED that was not used before.
SEED ?= 1
fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --minutes 60 --workers 2 --seed $(SEED)

# Run the kernel tests with bounds checks, in a separate cache of compiled code.
boundscheck: $(READY)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/boundscheck $(BIN)/python -m pytest \
		tests/test_boundscheck.py tests/test_assign.py tests/test_power.py tests/test_centers.py \
		tests/test_without_compiler.py \
		-k "not vectorised and (boundscheck or assign or power or special_exponents or repetitions or compiler)"

# Measure the coverage of the kernels by running their tests in plain Python. A run with
# compilation adds the lines that only the compiler executes.
nojit: $(READY)
	@mkdir -p build
	rm -rf build/nojit build/.coverage*
	NUMBA_CACHE_DIR=$(CURDIR)/build/nojit COVERAGE_FILE=build/.coverage \
		$(BIN)/python -m coverage run -p -m pytest -q -p no:xdist tests/test_without_compiler.py
	NUMBA_DISABLE_JIT=1 COVERAGE_FILE=build/.coverage \
		$(BIN)/python -m coverage run -p -m pytest -q -p no:xdist tests/test_without_compiler.py
	COVERAGE_FILE=build/.coverage $(BIN)/python -m coverage combine -q
	COVERAGE_FILE=build/.coverage $(BIN)/python -m coverage report -m

lint: $(READY)
	$(BIN)/ruff check src reproduction tests benchmarks docs examples scripts
	$(BIN)/ruff format --check src reproduction tests benchmarks docs examples scripts

types: $(READY)
	$(BIN)/mypy

# Test the wheel, installed outside the checkout.
wheel: $(READY)
	$(BIN)/python scripts/check_wheel.py

format: $(READY)
	$(BIN)/ruff check --fix src reproduction tests benchmarks docs examples scripts
	$(BIN)/ruff format src reproduction tests benchmarks docs examples scripts

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cafelearn needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build
	rm -rf docs/_build docs/auto_examples docs/api/generated docs/api/backreferences
	find src reproduction tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
