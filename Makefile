# The workshop. `make test` needs git and Python 3.11 or later; everything else comes into .venv by itself.

PYTHON ?= python3
PYTEST_ARGS ?=
WORKERS ?= 4

BIN := .venv/bin
READY := .venv/.ready
BENCHES := $(patsubst %.py,%,$(filter-out %/__init__.py,$(wildcard tests/bench/*.py)))

.PHONY: help setup test lint format bench demo lock

help:
	@echo "make setup   a virtual environment in .venv with what requirements.lock says, and Leadsman in it"
	@echo "make test    lint, then every test        (PYTEST_ARGS='-k claim' for some)"
	@echo "make lint    format, types, and which layer may import which"
	@echo "make format  puts the code into its form"
	@echo "make bench   measures, beside what it is compared with"
	@echo "make demo    one comment, from the door to the published branch, on this machine alone  (KEEP=1 leaves it on)"
	@echo "make lock    requirements.lock again, from pyproject.toml (needs uv)"

setup: $(READY)

# One that works is kept, whichever Python made it. Only what requirements.lock has the hash of is installed;
# Leadsman itself is a link to this folder, but for the command's first lines.
$(READY): requirements.lock pyproject.toml bot/cli/entry.py
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Leadsman needs Python 3.11 or later: make setup PYTHON=python3.12")'
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
	@touch $@

test: lint
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(READY)
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .

bench: $(READY)
	@set -e; for bench in $(subst /,.,$(BENCHES)); do echo "== $$bench"; $(BIN)/python -m $$bench; done

demo: $(READY)
	$(BIN)/leadsman demo $(if $(KEEP),--keep)

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --group dev pyproject.toml -o requirements.lock
