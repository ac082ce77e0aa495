# `make run` and `make test` set up everything they need; the second time they start at once.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
READY := $(VENV)/.ready

.PHONY: run test lint types wheel format bench docs clean

run: $(READY)
	@mkdir -p build
	$(BIN)/cafe demo --out build --force

test: $(READY) lint types
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

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
