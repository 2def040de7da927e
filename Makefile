# SPDX-License-Identifier: Apache-2.0
# The front door. Everything here can be run again; later runs reuse what earlier ones built.
DIST := build/dist
SHELL := /bin/bash

.PHONY: help setup build templates demo test serve package bench format unit tidy sanitize fuzz clean

help:            ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:           ## Install the Debian packages that are missing
	@scripts/setup

build:           ## Build the programs
	@scripts/setup build run
	@scripts/build programs

templates: build ## Make the templates base and code-interpreter-v1, or see that they are up to date
	@$(DIST)/glovebox template prepare base code-interpreter-v1

demo:            ## Run the main job: unread code reconciles invoices in a machine without network
	@scripts/setup build run
	@scripts/build demo
	@$(DIST)/glovebox demo

test: setup      ## Run every test
	@scripts/stage 'build' scripts/build tests
	@scripts/stage 'templates' $(DIST)/glovebox template prepare base code-interpreter-v1
	@scripts/stage 'clients' scripts/clients
	@scripts/test

serve: templates ## Keep a server running on port 3000
	@echo "In another terminal: PATH=$$(realpath $(DIST)):\$$PATH; eval \"\$$(glovebox env)\""
	@exec $(DIST)/glovebox serve

package: setup   ## Make the Debian package and the tarball in build/package
	@scripts/package

bench: setup templates ## Measure, with ratios to floors taken in the same run
	@scripts/clients
	@build/venv/bin/python bench/bench.py

format:          ## Format the C++ sources
	@git ls-files -co --exclude-standard '*.cc' '*.h' | xargs clang-format-19 -i

unit:            ## Build and run the tests that need neither root nor machines
	@scripts/build tests
	@ctest --test-dir build/release -j "$$(nproc)" -L '^unit$$' --output-on-failure

tidy:            ## Lint the C++ files that differ from the last commit (all with ALL=1)
	@scripts/tidy

sanitize: setup  ## Unit tests under ASan+UBSan and under TSan
	@scripts/sanitize

fuzz: setup      ## Run each fuzz target for SECONDS_EACH (60) seconds
	@scripts/fuzz

clean:           ## Remove what was built; templates and caches stay
	rm -rf build
