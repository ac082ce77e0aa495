# `make run` and `make test` set up everything they need; the second time they start at once.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
READY := $(VENV)/.ready

.PHONY: run test fuzz boundscheck nojit lint types wheel format bench docs clean

run: $(READY)
	@mkdir -p build
	$(BIN)/cafe demo --out build --force

test: $(READY) lint types
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

# An hour of the fuzzer, with a summary at its end; choose a seed that was not used before.
SEED ?= 1
fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --minutes 60 --workers 2 --seed $(SEED)

# The kernels' tests with every index checked, and a cache of their own for what is compiled so.
boundscheck: $(READY)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/boundscheck $(BIN)/python -m pytest \
		tests/test_boundscheck.py tests/test_assign.py tests/test_power.py tests/test_centers.py \
		tests/test_without_compiler.py \
		-k "not vectorised and (boundscheck or assign or power or special_exponents or repetitions or compiler)"

# The kernels in plain Python, and the lines of them that the tests reach. A compiled run adds
# the lines that run in the compiler.
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
	$(BIN)/ruff check src tests benchmarks docs examples scripts
	$(BIN)/ruff format --check src tests benchmarks docs examples scripts

types: $(READY)
	$(BIN)/mypy

# What users get: the wheel, installed apart from the checkout.
wheel: $(READY)
	$(BIN)/python scripts/check_wheel.py

format: $(READY)
	$(BIN)/ruff check --fix src tests benchmarks docs examples scripts
	$(BIN)/ruff format src tests benchmarks docs examples scripts

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
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
