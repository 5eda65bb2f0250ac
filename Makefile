# The only task runner. Each target makes what it needs by itself; where all is there that takes a moment.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Everything stays in the checkout, and the machine's language does not matter.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export LC_ALL := C.UTF-8
export ANSIBLE_HOME := $(CURDIR)/.ansible
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/.ansible/collections
export GOTOOLCHAIN := local
export GOFLAGS := -mod=readonly -trimpath -buildvcs=false
# A checkout that belongs to somebody else, as on CI, is as good as one's own.
export GIT_CONFIG_COUNT := 1
export GIT_CONFIG_KEY_0 := safe.directory
export GIT_CONFIG_VALUE_0 := $(CURDIR)

# Seconds that each stage of `make test` may take on a warm machine with two cores; more is a warning.
STAGES := setup=30 static=240 unit=120 integration=1050 clients=240
STAGES_FULL := $(filter-out clients=%,$(STAGES)) mutants=1200 crowd=1200 clients=1800 oldest=1200 attack=1200 nodes=6000 \
  kubernetes=2400 molecule=5600

# Tests marked slow run only in test-full.
PYTEST := python -m pytest
MARKS := $(if $(FULL),,-m "not slow")
REPORTS := .cache/reports
SIMULATOR := .cache/vcenter
GOVC := .cache/govc

.PHONY: help root setup setup-nodes setup-machines setup-kubernetes setup-tests environment lock demo test test-full \
  lint lint-python lint-types lint-shell lint-yaml lint-ansible lint-docs lint-go lint-pins lint-security static sanity \
  unit unit-python unit-go mutants crowd attack integration clients nodes kubernetes oldest molecule bench docs build clean

help: ## Say what can be done
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: environment $(SIMULATOR) $(GOVC) ## Make .venv with everything pinned, Go, and the simulator

root:
	@test "$$(id -u)" = 0 || { echo "Nodes cannot be made: network namespaces need root. Run the same command as root or by sudo." >&2; exit 1; }

setup-nodes: setup ## Add what the lab's nodes need: podman, runc and debootstrap, as root or by sudo
	@tools/setup --nodes

setup-machines: root setup ## Add what the lab's virtual machines need, and build their images, as root
	@tools/setup --machines
	@python -m lab.machines

setup-kubernetes: export KUBERNETES := 1
setup-kubernetes: root setup-nodes ## Build what the lab's Kubernetes needs: ten minutes of a processor, once
	@python -m lab.kubernetes

environment:
	@tools/setup

# A folder is newer when a file was added or removed.
$(SIMULATOR): $(shell find lab/vcenter -name '.*' -prune -o -print) | environment
	@echo "Building the simulated data centre"
	@cd lab/vcenter && go build -o ../../$@ .
	@touch $@

# VMware's own client, for tests that read back what our modules wrote.
$(GOVC): lab/govc/main.go lab/govc/go.mod | environment
	@echo "Building govc"
	@cd lab/govc && go build -o ../../$@ .
	@touch $@

demo: setup ## Show the whole on the lab of this machine; RELEASE="9.0" and ENCRYPTION=off for another vSphere
	@lab/demo.sh $(if $(LAB),--lab "$(LAB)") $(if $(RELEASE),--release "$(RELEASE)") $(if $(ENCRYPTION),--encryption $(ENCRYPTION))

test: environment ## Everything that CI runs: lint, sanity, unit and integration tests
	@python tools/stages.py $(STAGES)

test-full: environment ## The same with the tests that take minutes each
	@FULL=1 python tools/stages.py $(STAGES_FULL)

lint: lint-python lint-types lint-shell lint-yaml lint-ansible lint-docs lint-go lint-pins lint-security ## Style, types, Ansible's rules, documentation, Go

lint-python: environment
	ruff check
	ruff format --check
	lint-imports --no-cache

lint-types: environment
	mypy -p plugins
	mypy tools lab
	@# Most of these run in test-full alone, so that nothing else would name a slip in them.
	mypy --follow-imports=silent --exclude 'tests/lab/(tensorflow1|horovod_train).py' tests/lab tests/kubernetes tests/attack

lint-shell: environment
	grep -lE '^#!.*\<bash' -r .ci tools lab bench | xargs shellcheck

lint-yaml: environment
	yamllint --strict .

lint-ansible: environment
	ansible-lint --offline --nocolor

lint-docs: environment
	antsibull-docs lint-collection-docs --plugin-docs .

lint-go: environment
	@found=$$("$$(go env GOROOT)/bin/gofmt" -l lab/vcenter lab/kubernetes); test -z "$$found" || { echo "Not formatted by gofmt: $$found"; exit 1; }
	@long=$$(find lab/vcenter lab/kubernetes -name '*.go' -exec awk \
	  '{ line = $$0; gsub(/\t/, "    ", line) } length(line) >= 120 { print FILENAME ":" FNR }' {} +); \
	  test -z "$$long" || { echo "Lines that do not end before column 120:" $$long; exit 1; }
	cd lab/vcenter && go vet ./...

lint-pins: environment
	@python tools/pins.py
	@python tools/advisories.py

lint-security: environment
	bandit --quiet --recursive --configfile pyproject.toml plugins

lock: environment
	@python tools/pins.py --write

# Both use one processor for most of their time.
static: environment ## lint and sanity side by side
	@$(MAKE) --jobs 2 lint sanity

sanity: environment ## ansible-test sanity, all of it that needs no container
	tools/sanity

# The simulator's own tests mostly wait.
unit: environment ## Unit tests, and those of the simulator
	@$(MAKE) --jobs 2 unit-python unit-go

unit-python: environment
	$(PYTEST) tests/unit $(MARKS) --numprocesses 2 --dist worksteal --junitxml=$(REPORTS)/unit.xml

unit-go: environment
	cd lab/vcenter && go test ./...

mutants: environment ## Change what decides, one change at a time: a test must notice each; ONLY='plugins.module_utils.runner*' for some
	tools/mutants $(if $(ONLY),'$(ONLY)')

crowd: environment ## Fifty clients of the simulator at once, ten minutes under the race detector; SECONDS=N and HOSTS=N for others
	@$(if $(SECONDS),DML_CROWD_SECONDS=$(SECONDS)) $(if $(HOSTS),DML_CROWD_HOSTS=$(HOSTS)) python -m tools.crowd

attack: setup-tests ## Kill runs and break the server at random, look for secrets; ROUNDS=1000, MINUTES=60, SEED=7, ONLY=kill:17
	python -m tests.attack $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(foreach each,$(ONLY),--only $(each))
	$(if $(ONLY),,$(PYTEST) tests/unit/test_foreign_text.py --hypothesis-profile=roam --numprocesses 2 --dist worksteal)
	$(if $(ONLY),,$(PYTEST) tests/attack --numprocesses 2 --dist worksteal --junitxml=$(REPORTS)/attack.xml)

setup-tests: setup ## Add what the tests need, OpenMPI and GnuPG, as root or by sudo
	@tools/setup --tests

integration: setup-tests ## Tests against the simulator
	$(PYTEST) tests/integration $(MARKS) --numprocesses 3 --dist worksteal --junitxml=$(REPORTS)/integration.xml

clients: setup-tests ## govmomi's own test scripts, here and against VMware's simulator; SUITES="vm pool" for some
	@python tools/suites.py $(SUITES)

nodes: root setup-nodes setup-machines ## Tests of the lab's nodes, which need root
	$(PYTEST) tests/lab $(MARKS) --junitxml=$(REPORTS)/nodes.xml

kubernetes: root setup-kubernetes ## Tests of the lab's Kubernetes, which need root
	$(PYTEST) tests/kubernetes $(MARKS) --junitxml=$(REPORTS)/kubernetes.xml

oldest: setup-tests ## The same with the oldest ansible-core and pyVmomi that are supported
	tools/oldest $(MARKS) --numprocesses 3 --dist worksteal --junitxml=$(REPORTS)/oldest.xml

molecule: root setup-nodes setup-machines ## Test the roles on the lab's nodes and machines, which need root; SCENARIO=NAME for one scenario
	molecule test $(if $(SCENARIO),--scenario-name $(SCENARIO),--all)

bench: setup ## Measure; each prints its ratios
	@for each in bench/*/run; do echo "== $$each"; "$$each"; done

docs: environment ## The collection's documentation as HTML, in build/docs
	tools/docs

build: environment ## The tarball for ansible-galaxy, in build
	ansible-galaxy collection build --force --output-path build

clean: ## Remove all that make has made
	rm -rf .venv .cache .ansible build .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
