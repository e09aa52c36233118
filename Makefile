# Each target brings in what it needs (scripts/set_up.py); a second run finds it there.
# `make PYTHON=python3.12 ...` chooses the Python that the virtual environment is made from.

PYTHON ?= python3
BIN := .venv/bin
# A process of the tests holds torch and what it exports: two for small machines, four at the most. Three on two cores were
# no faster.
PROCESSES := $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 2 ? 2 : cores > 4 ? 4 : cores)))
SET_UP := $(PYTHON) scripts/set_up.py
# The editor tests and the editor need a newer Node than Debian's; everything else runs on that one too.
NODE24 := PATH="$(CURDIR)/.tools/node24/bin:$$PATH"

# Each process would compile all of torch anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run code test real pairs targets fuzz wheel lint lint-python lint-extension bench format clean

help:  ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup:  ## install everything that the other targets need
	@$(SET_UP) python compiler examples extension node code-server chromium bench

run:  ## check examples/, fix copies of them, export both for real, print one table
	@$(SET_UP) python compiler examples
	@$(BIN)/python scripts/run_examples.py

code:  ## open examples/ in VS Code (in the browser) with the extension installed
	@$(SET_UP) python compiler examples extension node code-server
	@$(NODE24) npm run --silent package
	@$(BIN)/python scripts/open_editor.py

test:  ## lint, all Python tests, the extension's tests, a real VS Code in a real browser
	@$(SET_UP) python compiler examples extension node code-server chromium
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest -n $(PROCESSES) --dist worksteal --durations=25
	@npm run --silent test:unit
	@$(NODE24) npm run --silent package
	@$(NODE24) npm run --silent e2e

real:  ## score check on all packages that nobody here wrote, research packages included (long)
	@$(SET_UP) python compiler examples
	@EXPORTLENS_REAL=all $(BIN)/pytest tests/real -s

pairs:  ## export every pair of tests/rewriting/cases, case of tests/inference and rule's example, and record them (make test: new ones and a sample)
	@$(SET_UP) python compiler
	@EXPORTLENS_ALL_PAIRS=1 $(BIN)/pytest -n $(PROCESSES) --dist worksteal tests/rewriting/test_pairs.py tests/rewriting/test_on_one_device.py
	@$(BIN)/python -m tests.rewriting.exported
	@$(BIN)/python -m tests.inference.test_against_torch
	@$(BIN)/python -m tests.rules.test_examples

targets:  ## install the hardware targets whose packages exist for this machine, each in an environment of its own
	@$(SET_UP) python compiler
	@$(BIN)/python scripts/set_up_targets.py

fuzz:  ## mend and export many more generated programs: make fuzz PROGRAMS=5000
	@$(SET_UP) python compiler
	@EXPORTLENS_FUZZ=$(or $(PROGRAMS),3000) $(BIN)/pytest -n $(PROCESSES) tests/fuzz

lint:  ## ruff, mypy --strict, eslint, prettier, tsc
	@$(SET_UP) python examples extension
	@$(MAKE) --no-print-directory --jobs=2 --output-sync lint-python lint-extension

lint-python:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

lint-extension:
	@npm run --silent lint

format:  ## let ruff and prettier shape the files
	@$(SET_UP) python extension
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@npm run --silent format

bench:  ## compare with TorchFix and a bare parse; time from keystroke to diagnostics
	@$(SET_UP) python examples bench wheel
	@$(BIN)/python -m benchmarks

wheel:  ## build the wheel with the compiled interpreter into dist/, and run the tests of inference on it
	@$(SET_UP) python examples wheel
	@PYTHONPATH=$(CURDIR)/.tools/compiled $(BIN)/pytest -n $(PROCESSES) tests/inference tests/rules tests/source tests/cli/test_check.py

clean:  ## remove everything that was installed or built here
	rm -rf .venv .tools node_modules extension/dist artifacts .mypy_cache .ruff_cache .pytest_cache .hypothesis
