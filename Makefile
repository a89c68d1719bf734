# Everything a developer or a curious person needs. `make` alone explains.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo kubeconfig stop test unit fuzz check format crds protos chart lock base image bench chaos simulate clean \
  venv cluster volcano helm preflight suite programs style types contracts generated

PYTHON ?= python3
KEEP ?= 1
MODE ?= Memory
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE := core operator plugin extender hostctl cli localcluster image charts demo bench chaos tests
PYTEST_ARGS ?=
SEED ?= 1
OPERATIONS ?= 1000
SHRINK_MINUTES ?= 30
CHAOS_ARGS ?=
EXAMPLES ?= 1000
SIZE ?= quick
ROWS ?=
SKIP ?=
OF_THE_LOCK := --constraints requirements.lock --universal --generate-hashes --python-version 3.11 \
  --no-header --no-annotate --quiet
# Each runs tests of its own, with a local cluster of its own where they need one: as many as memory allows.
PROCESSES ?= auto

help: ## Explain the targets
	@echo "gpushare: share GPU cards on Kubernetes. Targets:"
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: preflight ## Real Kubernetes with simulated cards; MODE=Memory|Slices|Exclusive|Mixed; KEEP=0: show the undo, stop
	$(BIN)/python -m demo --mode "$(MODE)" --keep $(KEEP)

kubeconfig: $(STAMP) ## Print the path of the demo cluster's kubeconfig
	@$(BIN)/localcluster kubeconfig --name demo

stop: $(STAMP) ## Stop the demo cluster
	$(BIN)/localcluster down --name demo

test: preflight ## All checks and all tests: unit, component, end to end on a real local cluster
	@$(MAKE) --no-print-directory --jobs suite programs

# What needs a program that is still being built waits for it; the other tests run meanwhile.
suite: check
	$(BIN)/pytest --numprocesses=$(PROCESSES) $(PYTEST_ARGS)

# One after the other: each build takes all processors.
programs: $(STAMP)
	$(BIN)/localcluster build > /dev/null
	$(BIN)/localcluster build --ignore-preflight-errors --helm > /dev/null
	$(BIN)/localcluster build --volcano > /dev/null

unit: $(STAMP) ## Only the fast tests, no cluster
	$(BIN)/pytest --numprocesses=logical tests/unit tests/component tests/fuzz $(PYTEST_ARGS)

fuzz: $(STAMP) ## Draw EXAMPLES=n odd inputs for each entry point from outside; others each time
	FUZZ_EXAMPLES="$(EXAMPLES)" $(BIN)/pytest --numprocesses=logical tests/fuzz $(PYTEST_ARGS)

simulate: $(STAMP) ## Extender, plugins, kubelets in virtual time, broken at random; SEED= SEEDS= OPERATIONS= MODE=
	$(BIN)/python -m tests.simulation --seed $(or $(SEED),1) --seeds $(or $(SEEDS),1) \
	  --operations $(or $(OPERATIONS),1000) $(if $(filter command,$(firstword $(origin MODE))),--mode $(MODE))

check: $(STAMP) ## Formatting, lint, types, import contracts, generated files
	@$(MAKE) --no-print-directory --jobs --keep-going --output-sync=target types contracts style generated

style: $(STAMP)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)

types: $(STAMP)
	$(BIN)/mypy $(CODE)

contracts: $(STAMP)
	$(BIN)/lint-imports

generated: $(STAMP)
	$(BIN)/python -m gpushare_core.api.crd --check crds/
	$(BIN)/python plugin/generate_protos.py --check
	$(BIN)/python charts/copy_objects.py --check

format: $(STAMP) ## Format the code
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

crds: $(STAMP) ## Generate crds/ from the models
	$(BIN)/python -m gpushare_core.api.crd crds/

chart: crds ## Copy manifests/ and crds/ into the chart
	$(BIN)/python charts/copy_objects.py

protos: $(STAMP) ## Generate the kubelet's APIs from their .proto files
	$(BIN)/python plugin/generate_protos.py

lock: $(STAMP) ## Resolve the newest dependencies into requirements.lock, and the image's part of them
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --generate-hashes \
	  --python-version 3.11 --no-header --upgrade --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml $(OF_THE_LOCK) --output-file image/requirements.lock
	echo hatchling | $(BIN)/uv pip compile - $(OF_THE_LOCK) --output-file image/build.lock

base: ## Name the image's base in the Dockerfile by the digest that its tag has now; BASE=image:tag for another one
	@$(PYTHON) image/renew_base.py $(BASE)

image: ## Build the image with docker or buildah; IMAGE=name:tag BASE=image:tag
	IMAGE="$(IMAGE)" BASE="$(BASE)" image/build.sh

bench: cluster ## Measure every target and print tables; SIZE=quick|full ROWS=a,b SKIP=a,b; --help of it names the rows
	GRPC_VERBOSITY=ERROR $(BIN)/python -m bench --size "$(SIZE)" --rows "$(ROWS)" --skip "$(SKIP)"

preflight: $(STAMP) ## Say what this machine lacks for the local cluster
	@$(BIN)/localcluster preflight

cluster: preflight ## Build the local cluster's binary (minutes the first time, cached outside the checkout)
	$(BIN)/localcluster build

volcano: preflight ## Build Volcano's scheduler, which its tests need (2 minutes the first time, cached likewise)
	$(BIN)/localcluster build --volcano > /dev/null

helm: $(STAMP) ## Build Helm, which the chart's tests need (90 seconds the first time, cached likewise)
	$(BIN)/localcluster build --ignore-preflight-errors --helm > /dev/null

chaos: cluster ## Break everything on purpose, seeded: SEED=n OPERATIONS=n; fails at the first difference between books
	$(BIN)/python -m chaos --seed "$(SEED)" --operations "$(OPERATIONS)" --shrink-minutes "$(SHRINK_MINUTES)" $(CHAOS_ARGS)

clean: ## Remove what the targets made inside the checkout
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(STAMP)

$(STAMP): requirements.lock pyproject.toml localcluster/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) \
	  || { echo "no virtual environment: on Debian, apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e ./localcluster
	@touch $@
