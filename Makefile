# Everything that developers run from a shell. `make help` lists the targets; each sets up what it needs.

VENV := .venv
BIN := $(VENV)/bin
# Markers: the library is installed with its command line; all development dependencies are installed.
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

# Tests start hundreds of Python processes: without cached bytecode each of these compiles the library again.
export PYTHONDONTWRITEBYTECODE :=

# The first Python of at least 3.11 that can make a virtual environment; `make PYTHON=...` names another.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	"$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { command -v "$$name"; break; }; done)

# More arguments for pytest, the demo or the benchmarks: make test ARGS='-k rollback'
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup test test-all test-oldest demo lint format types docs docs-html bench build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## create the virtual environment .venv with all development dependencies

test: $(READY) ## run the tests except the slow ones, with a sample of the cases of each rule; ARGS=--slow runs all
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-all: $(READY) ## run the tests with all their cases, for a release
	$(BIN)/python -m pytest -n auto --dist worksteal --exhaustive $(ARGS)

test-oldest: $(READY) ## test each extra with the oldest versions that it allows
	$(BIN)/python -m tests.oldest_versions $(ARGS)

demo: $(INSTALLED) ## run the demo: a conversation, then proofs
	$(BIN)/python -m examples.demo $(ARGS)

lint: $(READY) ## check the style and format of the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## format the code, and fix what `make lint` can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## check the types, with mypy and with pyright
	$(BIN)/mypy weakfs tests examples
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: docs-html ## build the documentation into docs/_build/html, and run every example in it
	$(BIN)/python -m pytest -q tests/docs tests/test_readme.py tests/test_security_document.py $(ARGS)
	@echo "the documentation is in docs/_build/html; plain Markdown is beside each page, and llms.txt lists all of them"

docs-html: $(DOCS_READY)
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html

bench: $(READY) ## run the benchmarks against the peers, each in an environment of its own below .bench-venv
	$(BIN)/python -m benchmarks.prepare
	.bench-venv/harness/bin/python -m benchmarks $(ARGS)

build: $(READY) ## build the wheel and the source archive into dist/
	rm -rf dist
	$(BIN)/python -m build

clean: ## remove everything that these targets create
	rm -rf $(VENV) .bench-venv .demo dist build docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Updated when the requirements change. An environment whose interpreter is gone is replaced.
$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "cannot set up: no Python 3.11 or later with venv is on the path;" \
		"install one (on Debian: apt-get install python3-venv) or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || "$(PYTHON)" -m venv --clear $(VENV)
	@echo "setting up $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(READY): $(INSTALLED)
	@echo "installing the development dependencies"
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(DOCS_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --editable '.[cli,docs]'
	@touch $@
