# Keylag's front door: each target is one short command of the checkout's own.
# Everything that is made goes into one folder, $(STATE), and .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup setup-tests demo test test-collectors test-oldest \
  test-exporters test-keylag test-others test-stack test-matrix test-diagnosis test-native test-pythons test-keystone mutation \
  bench dist lint man pictures up down clean

STATE := $(abspath $(or $(KEYLAG_STATE),.keylag))
KEYLAG := .venv/bin/keylag
COLLECTORS_TESTS := $(STATE)/tools/collectors-tests/bin/python

# Temporary files of whatever runs below stay in the state folder too.
SCRATCH = mkdir -p "$(STATE)/tmp" && export TMPDIR="$(STATE)/tmp"

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## Install what is missing; takes no time when nothing is
	@./setup.sh

KEPT := $(filter-out 0,$(KEEP))

demo: ## Measure token calls, show where their time goes and why (KEEP=1 leaves it up, FAULT=...)
	@./setup.sh $(if $(KEPT)$(FAULT),,--for demo)
	@$(KEYLAG) demo $(if $(KEPT),--keep) $(if $(FAULT),--fault "$(FAULT)")

# The set-up of the tests has what the demo does not need: slapd, percona-toolkit.
setup-tests:
	@./setup.sh --with tests

lint: setup ## Check style, format and types
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy keylag/src collectors/src exporters/src dashboards/src dev/src \
	  bench/inside bench/keylag_bench bench/overhead.py bench/parts.py bench/limits.py \
	  bench/simulate.py bench/simulate_first_rounds.py bench/merge_runs.py \
	  bench/slice_noise.py \
	  dashboards/bench/keylag_cloud dashboards/bench/large_cloud.py
	@MYPYPATH=collectors/src .venv/bin/stubtest keylag_otel._native

# The suites wait as much as they work, so four run side by side, the longest first.
test: setup-tests ## Run every check and every test
	@echo "Testing the collectors, the exporters and the whole, four at a time"
	@$(MAKE) -j4 --output-sync=line \
	  test-keylag test-stack test-collectors test-oldest test-exporters test-others lint

# Run the tests of folder $1, and fail if they cover less than $3 % of package $2.
# Other processes do not count.  The floor is one below the measured value.
covered = $(SCRATCH) && export COVERAGE_FILE="$(STATE)/tmp/coverage-$1" && \
  .venv/bin/python -m pytest -p no:cacheprovider \
  -m "not matrix" --cov=$2 --cov-report= --cov-fail-under=$3 $1/tests

# The collectors run where only Keystone's libraries are, so that an import of
# anything else is found out.
test-collectors:
	@$(SCRATCH) && cd collectors && "$(COLLECTORS_TESTS)" -m pytest -p no:cacheprovider \
	  -m "not matrix"

# And with the oldest release of Keystone that Keylag knows.
test-oldest:
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.matrix zed

test-exporters:
	@$(call covered,exporters,keylag_exporters,89)

test-keylag:
	@$(call covered,keylag,keylag,92)

test-others:
	@$(call covered,bench,keylag_bench,82)
	@$(call covered,dashboards,keylag_dashboards,85)
	@$(call covered,dev,keylag_dev,35)

# What crosses folders, on a stack of real servers.
test-stack:
	@$(SCRATCH) && .venv/bin/python -m pytest -p no:cacheprovider -m "not matrix" tests

QUICKLY := $(filter-out 0,$(QUICK))

bench: ## Measure what Keylag costs, an hour or so (QUICK=1 only tries it)
	@./setup.sh --with bench
	@$(SCRATCH) && .venv/bin/python exporters/bench/throughput.py \
	  $(if $(QUICKLY),--megabytes 10 --rounds 1)
	@$(SCRATCH) && .venv/bin/python exporters/bench/following.py \
	  $(if $(QUICKLY),--seconds 5)
	@$(SCRATCH) && .venv/bin/python exporters/bench/scrape.py \
	  $(if $(QUICKLY),--scrapes 10)
	@$(SCRATCH) && .venv/bin/python bench/parts.py
	@$(SCRATCH) && .venv/bin/python bench/overhead.py $(if $(QUICKLY),--quick)

test-matrix: setup-tests ## Run what is too long for test: four releases, each server, experiments
	@./setup.sh --with keystone-2026.1 --with labs
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.matrix $(RELEASES)
	@$(SCRATCH) && .venv/bin/python -m pytest -p no:cacheprovider -m matrix

test-diagnosis: setup-tests ## Plant each fault under load and score the diagnosis, about two hours (CASES=...)
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.diagnosis_score $(CASES)

test-native: setup-tests ## Check the C part with sanitizers, reference counts, random operations (CHECKS=...)
	@./setup.sh --with native
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.native_checks $(CHECKS)

test-pythons: ## Run the collectors' tests on each Python that Debian has (PYTHONS=...)
	@./setup.sh --with pythons
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.pythons $(PYTHONS)

test-keystone: setup-tests ## Run Keystone's own tests with and without Keylag (MODULES=..., or all)
	@./setup.sh --with keystone-own
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.keystone_unit_tests $(MODULES)

mutation: setup-tests ## Score tests by the mutants that they kill (MODULES=...)
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.mutation $(MODULES)

dist: ## Build the distributions into dist/, and test the wheels without the source
	@./setup.sh --with pythons
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.dist

man: setup ## Write manual pages of the commands into .keylag/man
	@.venv/bin/python -m keylag_dev.man_pages "$(STATE)/man/man1"

pictures: setup-tests ## Take the pictures of docs/dashboards.md: a load with a fault (MINUTES=20)
	@$(SCRATCH) && .venv/bin/python -m keylag_dev.pictures \
	  $(if $(MINUTES),--minutes $(MINUTES))

up: setup ## Start a stack and print its addresses
	@$(KEYLAG) up

down: ## Stop the stack
	@if [[ -x $(KEYLAG) ]]; then $(KEYLAG) down; else echo "No stack is running."; fi

clean: ## Stop everything and delete all that was made
	@if [[ -x $(KEYLAG) ]]; then $(KEYLAG) down --all; fi
	@for lab in "$(STATE)"/labs/*/; do \
	  if [[ -x $(KEYLAG) && -d "$$lab" ]]; then \
	    $(KEYLAG) lab swift-regions down --state "$$lab"; \
	    $(KEYLAG) lab wan down --state "$$lab"; \
	    $(KEYLAG) lab storage down --state "$$lab"; \
	    $(KEYLAG) lab neighbours down --state "$$lab"; \
	  fi; \
	done
# Only what is ours: $$KEYLAG_STATE may be a folder that holds other things too.
	@cd "$(STATE)" 2>/dev/null && rm -rf --one-file-system tools stack labs pictures demo bench bench.lock mutation prepared tmp man || true
	@rmdir "$(STATE)" 2>/dev/null || true
	@rm -rf .venv .venv.new dist .mypy_cache .ruff_cache
