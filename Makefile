# Each target does its own set-up: a person needs Python 3.11 or newer and `make`, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= all,dev
WORKERS ?= 2
# One thread a process: on few cores, threads that wait for each other cost more than they bring.
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: setup smollm2 test test-slow check study study-full clean help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@

setup: $(VENV)/.ready smollm2  ## make .venv with every extra, and fetch and convert the model of the built-in study

smollm2: $(VENV)/.ready
	$(BIN)/python -m latentkt models fetch smollm2

test: setup  ## the whole test suite but the slow tests
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" -q

test-slow: setup  ## the slow tests
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow" -q

check: $(VENV)/.ready  ## style, types, import floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

study: setup  ## the main job: the built-in items on SmolLM2, preset quick, into runs/
	$(BIN)/python -m latentkt study smollm2

study-full: setup  ## everything on everything; resumable, hours
	$(BIN)/python -m latentkt study smollm2 --preset full --out runs/full --resume

clean:  ## remove what the targets made, but the virtual environment
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info
	find latentkt -name '*.nb[ic]' -delete  # compiled kernels: their cache does not see a change in what they call
