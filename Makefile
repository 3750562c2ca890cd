# make test: install into .venv and run every check and test.  make help: the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
DATA := $(abspath ../shared/data)
export ROUTEPOOL_DATA ?= $(if $(wildcard $(DATA)),$(DATA))
WORKERS ?= 2

.PHONY: help install check test property benchmark system format clean

help:
	@echo "make test       install into .venv, lint, type-check, run the tests"
	@echo "make property   the property tests with 1,000 cases each"
	@echo "make benchmark  rebuild the tables and pictures of docs/performance.md (about 20 minutes)"
	@echo "make format     format and fix what ruff can fix"
	@echo "make system     install the Debian packages some tests need (root)"
	@echo "make clean      remove .venv and caches"

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "routepool needs Python 3.11 or newer; none was found. Install it, or run: make test PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "routepool needs Python 3.11 or newer; $(PYTHON) is older. Run: make test PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the venv module; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest -n $(WORKERS)

property: install
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -n $(WORKERS) tests/test_aggregation_contract.py tests/test_encoding.py

benchmark: install
	$(BIN)/python benchmarks/routing.py
	$(BIN)/python benchmarks/encoder.py

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

system:
	command -v g++ || { apt-get update && apt-get install -y --no-install-recommends g++; }

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
