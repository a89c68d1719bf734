# Everything a developer or a curious person needs. `make` alone explains.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo kubeconfig stop test unit fuzz engines cases staticcheck races check format crds reference docs protos chart modules lock base hook image scheduler-image client release bench chaos matrix simulate clean \
  venv cluster volcano helm preflight suite programs style types contracts generated page

PYTHON ?= python3
KEEP ?= 1
REPLACE ?= 0
MODE ?= Memory
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS := build/docs
PIP = $(BIN)/pip install --quiet --disable-pip-version-check
CODE := core operator plugin extender hostctl cli localcluster image charts release demo bench chaos matrix tests
GO_CODE := localcluster scheduler
# The folder of Go's programs. It is asked for where a target needs it: Go may have to be fetched.
GO_BIN = $(shell $(BIN)/python -m gpushare_localcluster.build.toolchain)
TSC := cli/node_modules/.bin/tsc
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
C_FILES = $(shell find hook tests/e2e tests/fakes -name '*.[ch]')
PYTEST_ARGS ?=
SEED ?= 1
OPERATIONS ?= 1000
SHRINK_MINUTES ?= 30
KUBERNETES ?=
ifneq ($(KUBERNETES),)
export GPUSHARE_KUBERNETES := $(KUBERNETES)
endif
CHAOS_ARGS ?=
EXAMPLES ?= 1000
SIZE ?= quick
RELEASE ?= dist
URL ?=
ROWS ?=
MINORS ?=
TESTS ?=
SKIP ?=
NODES ?=
# What a target does, before it does it: what follows may take a while until it says anything.
say = @printf '%s: %s\n' '$@'
# The client is resolved with the rest (cli/), and is in no index.
LOCK := pip compile --universal --generate-hashes --python-version 3.11 --no-header --quiet \
  --no-emit-package kubectl-gpushare
OF_THE_LOCK := --constraints requirements.lock --no-annotate
# Each runs tests of its own, with a local cluster of its own where they need one: as many as memory allows.
PROCESSES ?= auto

help: ## Explain the targets
	@echo "gpushare: share GPU cards on Kubernetes. Targets:"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/; s/ \| /\n\t  /g' | expand -t 24

demo: preflight ## Real Kubernetes with simulated cards, and what we do there | MODE=Memory|Slices|Exclusive|Mixed  KEEP=0: undo, stop | REPLACE=1: instead of a demo cluster that runs | KUBERNETES=1.34: another minor than the newest
	$(say) "installs the product on a local cluster, and shows what it does"
	@$(BIN)/python -m demo --mode "$(MODE)" --keep $(KEEP) --replace $(REPLACE)

kubeconfig: $(STAMP) ## Print the path of the demo cluster's kubeconfig
	@$(BIN)/localcluster kubeconfig --name demo || { echo "make demo starts it"; exit 1; } >&2

stop: $(STAMP) ## Stop the demo cluster
	$(say) "stopping the demo cluster"
	@$(BIN)/localcluster down --name demo || { echo "there is nothing to stop"; exit 1; } >&2

test: preflight ## All checks and all tests; those end to end on real clusters | KUBERNETES=1.34: of another minor than the newest
	$(say) "checks, then all tests; beside them, programs that are not built yet"
	@$(MAKE) --no-print-directory --jobs suite programs

# What needs a program that is still being built waits for it; the other tests run meanwhile.
# Each start of a program with all of Kubernetes inside takes half the processor time with this, and more memory.
suite matrix: export GOGC := 200
# With one thread each they wake each other less often: a twelfth less processor time. Others run beside.
suite matrix: export GOMAXPROCS := 1
# Each start of our programs compiles them anew where the environment forbids to keep what was compiled.
suite matrix: export PYTHONDONTWRITEBYTECODE :=
suite: check
	$(BIN)/pytest --numprocesses=$(PROCESSES) $(PYTEST_ARGS)

# One after the other: each build takes all processors.
# TERM=dumb: a bar would come between the lines of the tests.
programs: export TERM := dumb
programs: $(STAMP)
	$(BIN)/localcluster build > /dev/null
	$(BIN)/localcluster build --scheduler > /dev/null
	$(BIN)/localcluster build --ignore-preflight-errors --helm > /dev/null
	$(BIN)/localcluster build --volcano > /dev/null
	$(BIN)/localcluster build --containerd > /dev/null

unit: $(STAMP) ## Only the fast tests, no cluster
	$(say) "the tests that need no cluster"
	$(BIN)/pytest --numprocesses=logical tests/unit tests/component tests/fuzz $(PYTEST_ARGS)

fuzz: $(STAMP) ## Property tests with other examples each time | EXAMPLES=n: so many odd inputs for each entry point
	$(say) "others than in 'make test', for every property test"
	FUZZ_EXAMPLES="$(EXAMPLES)" $(BIN)/pytest --numprocesses=logical -m hypothesis tests/fuzz tests/unit \
	  tests/component $(PYTEST_ARGS)

engines: $(STAMP) ## The scheduler's Go engine beside core on random cases | SEED=n: the first one  SEEDS=n
	$(say) "compiles the Go engine, then compares; it prints where the two differ"
	$(BIN)/python -m tests.engine --seed $(or $(SEED),1) --seeds $(or $(SEEDS),10000)

cases: $(STAMP) ## The table of cases of both engines, after an edit of tests/engine/ or of what core answers
	$(say) "writing tests/engine/cases.jsonl"
	@$(BIN)/python -m tests.engine.cases --write

simulate: $(STAMP) ## Extender, plugins, kubelets in virtual time, faults at random | SEED=n SEEDS=n OPERATIONS=n MODE= ENGINE=Plugin: kube-scheduler's plugin instead of the extender
	$(say) "as many operations as asked for, then what was seen"
	$(BIN)/python -m tests.simulation --seed $(or $(SEED),1) --seeds $(or $(SEEDS),1) \
	  --operations $(or $(OPERATIONS),1000) $(if $(filter command,$(firstword $(origin MODE))),--mode $(MODE)) \
	  $(if $(ENGINE),--engine $(ENGINE))

check: $(STAMP) ## Formatting, lint, types, import contracts, generated files
	$(say) "each of five checks prints when it is done: a minute, two with no cache"
	@$(MAKE) --no-print-directory --jobs --keep-going --output-sync=target types contracts style generated page

style: $(STAMP)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/clang-format --dry-run --Werror $(C_FILES)
	@unformatted=$$($(GO_BIN)/gofmt -l $(GO_CODE)) && [ -z "$$unformatted" ] \
	  || { echo "gofmt changes what 'make format' would change:" $$unformatted >&2; exit 1; }

types: $(STAMP)
	$(BIN)/mypy $(CODE)

contracts: $(STAMP)
	$(BIN)/lint-imports

# The types in the page of `kubectl gpushare web`: plain modules with JSDoc, which are served as they are.
page: export PATH := $(CURDIR)/$(BIN):$(PATH)
page: $(TSC)
	$(TSC) --project cli

$(TSC): cli/package-lock.json | $(STAMP)
	@npm ci --prefix cli --silent --no-fund --no-audit
	@touch $@

generated: $(STAMP)
	$(BIN)/python -m gpushare_core.api.crd --check crds/
	$(BIN)/python plugin/generate_protos.py --check
	$(BIN)/python charts/copy_objects.py --check
	$(BIN)/python -m gpushare_cli.reference --check docs/
	$(BIN)/python -m matrix.documents --check
	$(BIN)/python -m tests.engine.cases

format: $(STAMP) ## Format the code
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/clang-format -i $(C_FILES)
	$(GO_BIN)/gofmt -w $(GO_CODE)

staticcheck: $(STAMP) ## The scheduler's Go code under staticcheck, which 'make test' does not run
	$(say) "fetches and compiles staticcheck, which reads all of Kubernetes the first time: minutes"
	cd scheduler && CGO_ENABLED=0 $(GO_BIN)/go run $(STATICCHECK) ./...

races: $(STAMP) ## The scheduler's Go tests under Go's race detector, which 'make test' does not run; needs a C compiler
	$(say) "compiles Kubernetes for the race detector the first time: ten minutes and more"
	cd scheduler && CGO_ENABLED=1 $(GO_BIN)/go test -race -trimpath -buildvcs=false -count=1 ./...

crds: $(STAMP) ## Generate crds/ from the models
	$(say) "writing crds/"
	@$(BIN)/python -m gpushare_core.api.crd crds/

chart: crds ## Copy manifests/ and crds/ into the chart
	$(say) "writing charts/gpushare/files/"
	@$(BIN)/python charts/copy_objects.py

reference: $(STAMP) ## Generate docs/cli.md and its schema from the command line's parser
	$(say) "writing docs/cli.md and docs/cli-schema.json"
	@$(BIN)/python -m gpushare_cli.reference docs/

docs: $(DOCS)/venv/.installed ## The pages as a site with search, into build/docs/site/; a link that leads nowhere is an error
	$(say) "checks every link, and builds the site"
	@rm -rf $(DOCS)/pages $(DOCS)/site
	@$(PYTHON) -m release.site $(DOCS)
	@$(DOCS)/venv/bin/zensical build --strict --clean --config-file $(DOCS)/zensical.toml
	@echo "Open $(CURDIR)/$(DOCS)/site/index.html, or serve the folder: $(PYTHON) -m http.server --directory $(DOCS)/site"

$(DOCS)/venv/.installed: release/site.lock
	@echo "Making $(DOCS)/venv with the packages of release/site.lock: half a minute, once"
	@$(PYTHON) -m venv $(DOCS)/venv
	@PYTHONPATH=localcluster $(PYTHON) -m gpushare_localcluster.build.environment $(DOCS)/venv/bin/python release/site.lock
	@touch $@

protos: $(STAMP) ## Generate the kubelet's APIs from their .proto files
	$(say) "writing plugin/gpushare_plugin/kubelet/proto/"
	@$(BIN)/python plugin/generate_protos.py

modules: $(STAMP) ## Go's module file of each minor of Kubernetes, after an edit of localcluster/gpushare_localcluster/build/minors.py
	$(say) "Go finds out what each minor needs: a minute, more with an empty module cache"
	@$(BIN)/python -m gpushare_localcluster.build.module_files

lock: $(STAMP) ## Newest dependencies into requirements.lock, image/*.lock and release/site.lock
	$(say) "asking the package index for the newest versions: a minute"
	$(BIN)/uv $(LOCK) pyproject.toml --all-extras --upgrade --output-file requirements.lock
	$(BIN)/uv $(LOCK) pyproject.toml $(OF_THE_LOCK) --output-file image/requirements.lock
	printf '%s\n' hatchling ziglang | $(BIN)/uv $(LOCK) - $(OF_THE_LOCK) --output-file image/build.lock
	$(BIN)/uv $(LOCK) --group pyproject.toml:docs --upgrade --output-file release/site.lock

base: ## The digest that the base image has now into the Dockerfile | BASE=image:tag for another one
	$(say) "asking the registry for the digest of the image's base"
	@$(PYTHON) image/renew_base.py $(BASE)

hook: $(STAMP) ## Compile the library for containers as the image's build does, and say where it is
	@$(BIN)/python -m tests.fakes.hook_library

image: ## Build the image with docker or buildah | IMAGE=name:tag BASE=image:tag
	@IMAGE="$(IMAGE)" BASE="$(BASE)" image/build.sh

scheduler-image: $(STAMP) ## Build the image of our kube-scheduler with docker or buildah | KUBERNETES=1.36.3 or 1.36: of another version than the newest  IMAGE=name:tag of the image of all programs
	@IMAGE="$(IMAGE)" PYTHON="$(BIN)/python" image/build.sh scheduler $(KUBERNETES)

client: $(STAMP) ## kubectl-gpushare: a wheel, an archive that needs no Python, and for krew | RELEASE=folder URL=where the archive is published
	$(say) "the client for this machine's system, into $(RELEASE)/: a minute"
	@$(BIN)/python -m release.client --into "$(RELEASE)" --url "$(URL)"

release: $(STAMP) ## All that is published of a version, into one folder | RELEASE=folder URL=where it is published IMAGE=name:tag BASE=image:tag
	$(say) "what is published of this version, into $(RELEASE)/"
	@IMAGE="$(IMAGE)" BASE="$(BASE)" $(BIN)/python -m release --into "$(RELEASE)" --url "$(URL)"

bench: cluster ## Measure every target and print tables | SIZE=quick|full ROWS=a,b SKIP=a,b NODES=n,n
	$(say) "measuring; each row is printed when it is done"
	GRPC_VERBOSITY=ERROR $(BIN)/python -m bench --size "$(SIZE)" --rows "$(ROWS)" --skip "$(SKIP)" --nodes "$(NODES)"

preflight: $(STAMP) ## Say what this machine lacks for the local cluster
	@$(BIN)/localcluster preflight

cluster: preflight ## Build the local cluster's program: five minutes, cached
	$(say) "the local cluster's program, and where it is"
	@$(BIN)/localcluster build

volcano: preflight ## Build Volcano's scheduler for its tests: minutes, cached
	$(say) "Volcano's scheduler, and where it is"
	@$(BIN)/localcluster build --volcano

helm: $(STAMP) ## Build Helm for the chart's tests, and say where it is
	$(say) "Helm, and where it is"
	@$(BIN)/localcluster build --ignore-preflight-errors --helm

chaos: cluster ## Break everything on purpose until two books differ | SEED=n OPERATIONS=n
	$(say) "operations as they are done, on a cluster that is started first"
	$(BIN)/python -m chaos --seed "$(SEED)" --operations "$(OPERATIONS)" --shrink-minutes "$(SHRINK_MINUTES)" $(CHAOS_ARGS)

matrix: preflight helm ## The end-to-end tests and the scheduler's Go tests on each version of Kubernetes: hours; writes docs/versions.md | MINORS="1.33 1.37"  TESTS=files: only these, and nothing is written
	$(say) "each version's tests, one version after the other; the report has each as soon as it is there"
	$(BIN)/python -m matrix $(MINORS) --processes "$(PROCESSES)" $(if $(TESTS),--tests $(TESTS))

clean: ## Remove what the targets made inside the checkout
	rm -rf $(VENV) build dist cli/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(STAMP)

$(STAMP): requirements.lock pyproject.toml cli/pyproject.toml cli/hatch_build.py localcluster/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@echo "Making $(VENV) with the packages of requirements.lock: a minute, once"
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "no virtual environment: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@PYTHONPATH=localcluster $(PYTHON) -m gpushare_localcluster.build.environment $(BIN)/python requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e . -e ./localcluster
	@$(PIP) --no-deps --no-build-isolation -e ./cli
	@touch $@
