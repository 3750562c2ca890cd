# make demo: see it work.  make test: every check and test.  Both install into .venv first.  make help: the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
DATA := $(abspath ../shared/data)
export ROUTEPOOL_DATA ?= $(if $(wildcard $(DATA)),$(DATA))
WORKERS ?= 2

.PHONY: help install demo check test research property kill-test load-test benchmark reproduce reproduce-quick system format clean

help:
	@echo "make demo       install into .venv, train routing and three baselines, show which word went where"
	@echo "make test       install into .venv, lint, type-check, run the tests"
	@echo "make research   run the tests of the experiments in reproduce/"
	@echo "make property   the property tests with 1,000 cases each"
	@echo "make kill-test  kill training 20 times, resume it, compare every bit"
	@echo "make load-test  load a server, overload it, stop it 20 times, send it 2,000 made-up requests"
	@echo "make benchmark  rebuild the tables and pictures of docs/performance.md (about an hour)"
	@echo "make reproduce  make the runs of the paper's tables that are missing, rebuild docs/reproduction.md (many hours)"
	@echo "make reproduce-quick  the same on a fraction, in a folder that is thrown away (about a minute)"
	@echo "make format     format and fix what ruff can fix"
	@echo "make system     install the Debian packages some tests need (root)"
	@echo "make clean      remove .venv and caches"

install: $(VENV)/installed

$(VENV)/created:
	@test -n "$(PYTHON)" || { echo "routepool needs Python 3.11 or newer; none was found. Install it, or run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "routepool needs Python 3.11 or newer; $(PYTHON) is older. Run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the venv module; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# torch first and alone: the build that is at hand is kept when the others ask for any version.
$(VENV)/demo-installed: $(VENV)/created pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e '.[demo]'
	@touch $@

$(VENV)/installed: $(VENV)/demo-installed
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/demo-installed
	$(BIN)/routepool demo

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest -n $(WORKERS) -m "not research"

research: install
	$(BIN)/pytest -n $(WORKERS) -m research

property: install
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -n $(WORKERS) tests/layers/test_aggregation_contract.py tests/layers/test_encoding.py tests/layers/test_routing.py tests/test_grouping.py tests/test_model.py

kill-test: install
	$(BIN)/python tests/programmes/kill.py

load-test: install
	$(BIN)/python tests/programmes/load.py

benchmark: install
	$(BIN)/python benchmarks/routing.py
	$(BIN)/python benchmarks/encoder.py
	$(BIN)/python benchmarks/encoder.py --long
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/precision.py
	$(BIN)/python benchmarks/documents.py
	$(BIN)/python benchmarks/threads.py

reproduce: install
	$(BIN)/python -m reproduce
	$(BIN)/python -m reproduce.peers
	$(BIN)/python -m reproduce --timing

reproduce-quick: install
	$(BIN)/python -m reproduce --quick

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

system:
	command -v g++ || { apt-get update && apt-get install -y --no-install-recommends g++; }
	command -v chromium || { apt-get update && apt-get install -y --no-install-recommends chromium fonts-liberation; }

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
