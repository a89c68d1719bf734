# Everything a developer or a curious person needs. `make` alone explains.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo kubeconfig stop test unit fuzz check format crds protos chart lock base image bench chaos simulate clean \
  venv cluster volcano helm preflight suite programs style types contracts generated

PYTHON ?= python3
KEEP ?= 1
REPLACE ?= 0
MODE ?= Memory
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP = $(BIN)/pip install --quiet --disable-pip-version-check
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
# What a target does, before it does it: what follows may take a while until it says anything.
say = @printf '%s: %s\n' '$@'
OF_THE_LOCK := --constraints requirements.lock --universal --generate-hashes --python-version 3.11 \
  --no-header --no-annotate --quiet
# Each runs tests of its own, with a local cluster of its own where they need one: as many as memory allows.
PROCESSES ?= auto

help: ## Explain the targets
	@echo "gpushare: share GPU cards on Kubernetes. Targets:"
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: preflight ## Real Kubernetes, simulated cards; MODE=Memory|Slices|Exclusive|Mixed KEEP=0: stop at the end REPLACE=1
	$(say) "installs the product on a local cluster, and shows what it does"
	@$(BIN)/python -m demo --mode "$(MODE)" --keep $(KEEP) --replace $(REPLACE)

kubeconfig: $(STAMP) ## Print the path of the demo cluster's kubeconfig
	@$(BIN)/localcluster kubeconfig --name demo

stop: $(STAMP) ## Stop the demo cluster
	$(say) "stopping the demo cluster"
	@$(BIN)/localcluster down --name demo

test: preflight ## All checks and all tests: unit, component, end to end on a real local cluster
	$(say) "checks, then all tests; beside them, programs that are not built yet"
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
	$(say) "the tests that need no cluster"
	$(BIN)/pytest --numprocesses=logical tests/unit tests/component tests/fuzz $(PYTEST_ARGS)

fuzz: $(STAMP) ## Draw EXAMPLES=n odd inputs for each entry point from outside; others each time
	$(say) "others than in 'make test', for every property test"
	FUZZ_EXAMPLES="$(EXAMPLES)" $(BIN)/pytest --numprocesses=logical -m hypothesis tests/fuzz tests/unit \
	  tests/component $(PYTEST_ARGS)

simulate: $(STAMP) ## Extender, plugins, kubelets in virtual time, broken at random; SEED= SEEDS= OPERATIONS= MODE=
	$(say) "as many operations as asked for, then what was seen"
	$(BIN)/python -m tests.simulation --seed $(or $(SEED),1) --seeds $(or $(SEEDS),1) \
	  --operations $(or $(OPERATIONS),1000) $(if $(filter command,$(firstword $(origin MODE))),--mode $(MODE))

check: $(STAMP) ## Formatting, lint, types, import contracts, generated files
	$(say) "each of four checks prints when it is done: a minute, two with no cache"
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
	$(say) "writing crds/"
	@$(BIN)/python -m gpushare_core.api.crd crds/

chart: crds ## Copy manifests/ and crds/ into the chart
	$(say) "writing charts/gpushare/files/"
	@$(BIN)/python charts/copy_objects.py

protos: $(STAMP) ## Generate the kubelet's APIs from their .proto files
	$(say) "writing plugin/gpushare_plugin/kubelet/proto/"
	@$(BIN)/python plugin/generate_protos.py

lock: $(STAMP) ## Resolve the newest dependencies into requirements.lock, and the image's part of them
	$(say) "asking the package index for the newest versions: a minute"
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --generate-hashes \
	  --python-version 3.11 --no-header --upgrade --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml $(OF_THE_LOCK) --output-file image/requirements.lock
	echo hatchling | $(BIN)/uv pip compile - $(OF_THE_LOCK) --output-file image/build.lock

base: ## Name the image's base in the Dockerfile by the digest that its tag has now; BASE=image:tag for another one
	$(say) "asking the registry for the digest of the image's base"
	@$(PYTHON) image/renew_base.py $(BASE)

image: ## Build the image with docker or buildah; IMAGE=name:tag BASE=image:tag
	$(say) "three minutes the first time, then one"
	@IMAGE="$(IMAGE)" BASE="$(BASE)" image/build.sh

bench: cluster ## Measure every target and print tables; SIZE=quick|full ROWS=a,b SKIP=a,b; --help of it names the rows
	$(say) "measuring; each row is printed when it is done"
	GRPC_VERBOSITY=ERROR $(BIN)/python -m bench --size "$(SIZE)" --rows "$(ROWS)" --skip "$(SKIP)"

preflight: $(STAMP) ## Say what this machine lacks for the local cluster
	@$(BIN)/localcluster preflight

cluster: preflight ## Build the local cluster's binary (minutes the first time, cached outside the checkout)
	$(say) "the local cluster's program, and where it is"
	@$(BIN)/localcluster build

volcano: preflight ## Build Volcano's scheduler, which its tests need (2 minutes the first time, cached likewise)
	$(say) "Volcano's scheduler, and where it is"
	@$(BIN)/localcluster build --volcano

helm: $(STAMP) ## Build Helm, which the chart's tests need (minutes the first time, cached likewise), and print its path
	$(say) "Helm, and where it is"
	@$(BIN)/localcluster build --ignore-preflight-errors --helm

chaos: cluster ## Break everything on purpose, seeded: SEED=n OPERATIONS=n; fails at the first difference between books
	$(say) "operations as they are done, on a cluster that is started first"
	$(BIN)/python -m chaos --seed "$(SEED)" --operations "$(OPERATIONS)" --shrink-minutes "$(SHRINK_MINUTES)" $(CHAOS_ARGS)

clean: ## Remove what the targets made inside the checkout
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(STAMP)

$(STAMP): requirements.lock pyproject.toml localcluster/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@echo "Making $(VENV) with the packages of requirements.lock: a minute, once"
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "no virtual environment: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e . -e ./localcluster
	@touch $@
