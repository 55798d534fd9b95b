# Everything here needs python3 (3.11 or newer, with venv) and make, and nothing else.
# Works with GNU make from 3.81 on.

PORT ?= 8080
WORKERS ?= 2
# Emptied, in what make starts as well: another project's modules must not come before ours.
PYTHONPATH :=
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help install run test test-all fuzz check format bench bench-full bench-peers soak faults \
	clients lock clean environment test-environment system-packages client-environment

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

environment:
	@PYTHON="$(PYTHON)" .ci/environment run

test-environment:
	@PYTHON="$(PYTHON)" .ci/environment test

system-packages:
	@.ci/packages

client-environment: test-environment system-packages
	@.ci/clients

install: environment ## Set up .venv with the gateway command in it
	@echo "Ready: $(BIN)/gateway --help"

run: environment ## Start the demo on PORT (8080): no key, no network
	@exec $(BIN)/gateway demo --port $(PORT)

test: test-environment ## Run the tests that need nothing but pip
	$(PYTEST) -m "not all" -n $(WORKERS) --dist loadfile

test-all: test-environment system-packages client-environment ## Run the tests that need Debian packages, npm or a browser
	$(PYTEST) -m all

fuzz: test-environment ## Look for new examples that break a property (the suite's own stay the same)
	GATEWAY_TEST_EXAMPLES=random $(PYTEST) -q -m hypothesis -n $(WORKERS) --dist loadfile

check: test-environment ## Lint, types and architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check gateway adapters tests benchmarks
	$(BIN)/mypy
	$(PYTEST) -q tests/architecture

format: test-environment ## Format the code
	$(BIN)/ruff format gateway adapters tests benchmarks
	$(BIN)/ruff check --fix .

bench: test-environment ## Measure the main scenarios against a bare relay (10 minutes at most)
	$(BIN)/python -m benchmarks

bench-full: test-environment ## Measure the whole matrix (about 40 minutes)
	$(BIN)/python -m benchmarks --full

bench-peers: test-environment ## Measure beside LiteLLM, MLflow, Portkey and others (installs them: PyPI, npm)
	$(BIN)/python -m benchmarks.peers --keep .venv-peers

soak: test-environment ## Mixed load with faults for SOAK_MINUTES (30)
	$(BIN)/python -m benchmarks.soak

faults: test-environment ## Show what becomes of each provider fault
	$(PYTEST) -q -s tests/faults

clients: client-environment ## Run the clients that people have, over both upstreams
	$(PYTEST) -q -s -m all tests/clients

lock: test-environment ## Pin the newest versions that pyproject.toml allows, with hashes
	.ci/lock

clean: ## Remove everything that was made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf .venv-clients .venv-peers tests/clients/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
