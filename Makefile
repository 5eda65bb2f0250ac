# The only task runner. Each target installs and builds its own requirements; if they exist, this takes a moment.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# All files stay in the checkout, and the machine's locale has no effect.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export LC_ALL := C.UTF-8
# Go, pip and Ansible keep files in the home of the user, who need not have one.
ifeq ($(shell test -w "$$HOME" && echo yes),)
export HOME := $(CURDIR)/.cache/home
endif
export ANSIBLE_HOME := $(CURDIR)/.ansible
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/.ansible/collections
export GOTOOLCHAIN := local
export GOFLAGS := -mod=readonly -trimpath -buildvcs=false
# git accepts a checkout that belongs to another user, as on CI.
export GIT_CONFIG_COUNT := 1
export GIT_CONFIG_KEY_0 := safe.directory
export GIT_CONFIG_VALUE_0 := $(CURDIR)

# The budget of each stage of `make test` in seconds, on a warm machine with two cores; an excess is a warning.
STAGES := setup=30 static=240 unit=180 integration=800 clients=240 molecule-default=180
STAGES_FULL := $(filter-out clients=%,$(STAGES)) mutants=1200 explore=660 clients=1800 oldest=1200 between=1200 newest=1200 frameworks=2400 attack=1200 \
  nodes-guests=2400 nodes-machines=2400 nodes-moves=2400 nodes-slurm=1200 nodes-training=4800 kubernetes=3600 \
  molecule-guests=2400 molecule-vm=1200 molecule-airgap=1000 molecule-t4_packages=1000
# The parts of tests/lab, and the scenarios of Molecule that need root: each is a stage.
NODES := $(filter nodes-%,$(subst =, ,$(STAGES_FULL)))
MOLECULE := $(filter-out molecule-default,$(filter molecule-%,$(subst =, ,$(STAGES_FULL))))

# Tests marked slow run only in test-full.
PYTEST := python -m pytest
# Records for `make quick` which files each test opened; CI runs all tests.
RECORDED := $(PYTEST) $(if $(CI),,-p lab.bytecode.opened)
MARKS := $(if $(FULL),,-m "not slow")
REPORTS := .cache/reports
SIMULATOR := .cache/vcenter
GOVC := .cache/govc

.PHONY: help root setup setup-nodes setup-machines setup-kubernetes setup-tests environment lock release demo demo-down test quick test-full \
  lint lint-python lint-types lint-shell lint-yaml lint-ansible lint-docs lint-go lint-pins lint-security static sanity \
  unit unit-python unit-go mutants explore attack integration clients frameworks nodes $(NODES) kubernetes oldest between newest devel molecule $(MOLECULE) molecule-default bench gpu docs build clean

help: ## try: List the targets
	@awk -f tools/help.awk $(MAKEFILE_LIST)

setup: environment $(SIMULATOR) $(GOVC) ## try: Install .venv with all packages pinned and Go, and build the simulator

root:
	@test "$$(id -u)" = 0 || { echo "Nodes cannot be made: network namespaces need root. Run the command as root or with sudo." >&2; exit 1; }

setup-nodes: setup ## build: Install the requirements of the lab's nodes: podman, runc and debootstrap, as root or with sudo
	@tools/setup --nodes

setup-machines: root setup ## build: Install the requirements of the lab's virtual machines and build their images, as root
	@tools/setup --machines
	@python -m lab.machines

setup-kubernetes: export KUBERNETES := 1
setup-kubernetes: root setup-nodes ## build: Build the lab's Kubernetes once, in ten minutes of CPU time
	@python -m lab.kubernetes

environment:
	@tools/setup

# A folder gets a newer time when a file is added or removed.
$(SIMULATOR): $(shell find lab/vcenter -name '.*' -prune -o -print) | environment
	@echo "Building the simulator"
	@cd lab/vcenter && go build -o ../../$@ .
	@touch $@

# VMware's client, for tests that verify the changes of the modules.
$(GOVC): lab/govc/main.go lab/govc/go.mod | environment
	@echo "Building govc"
	@cd lab/govc && go build -o ../../$@ .
	@touch $@

demo: ## try: Run the demo on this machine; KEEP=1 leaves its data centre running, TIED=1: workers that cannot move
	@lab/demo.sh $(if $(or $(TIED),$(LAB)),--lab "$(strip $(if $(TIED),tied) $(LAB))") $(if $(KEEP),--keep) $(if $(RELEASE),--release "$(RELEASE)") \
	  $(if $(ENCRYPTION),--encryption $(ENCRYPTION)) $(if $(ENCRYPTED),--encrypted)

demo-down: environment ## try: Remove the data centre that the demo left running
	@python -m lab --name demo down

test: environment ## check: Run the checks of CI: lint, sanity, unit and integration tests, the Molecule scenario default
	@python tools/stages.py $(STAGES)

# Go caches what its tests opened.
quick: setup-tests unit-go ## check: Run the tests that changes since the last full run can affect
	@python -m tools.quick $(MARKS) --numprocesses 2 --dist worksteal

test-full: environment ## long: Run all tests, also those that take minutes each
	@FULL=1 python tools/stages.py $(STAGES_FULL)

# Ruff has most rules of bandit.
lint: lint-python lint-types lint-shell lint-yaml lint-ansible lint-docs lint-go lint-pins $(if $(FULL),lint-security) ## check: Check style, types, Ansible's rules, documentation and Go

lint-python: environment
	ruff check
	ruff format --check
	lint-imports --no-cache
	python -m tools.unused

lint-types: environment
	mypy -p plugins
	mypy tools lab front/dml.py
	@# Most of these run only in test-full, so that only this check finds a mistake early.
	mypy --follow-imports=silent --exclude 'tests/lab/(training/projects/.*|tensorflow1|horovod_train).py' tests/lab tests/kubernetes tests/attack

lint-shell: environment
	grep -lE '^#!.*\<bash' -r .ci tools lab bench | xargs shellcheck

lint-yaml: environment
	yamllint --strict .

# The scenarios but for one run only in test-full too.
lint-ansible: environment
	python -m tools.ansible_lint --offline --nocolor $(if $(FULL),,$(foreach each,$(filter-out %/default/,$(wildcard molecule/*/)),--exclude $(each)))

lint-docs: environment
	antsibull-docs lint-collection-docs --plugin-docs .

lint-go: environment
	@found=$$("$$(go env GOROOT)/bin/gofmt" -l lab/vcenter lab/kubernetes tests/clients); test -z "$$found" || { echo "Not formatted by gofmt: $$found"; exit 1; }
	@long=$$(find lab/vcenter lab/kubernetes tests/clients -name '*.go' -exec awk \
	  '{ line = $$0; gsub(/\t/, "    ", line) } length(line) >= 120 { print FILENAME ":" FNR }' {} +); \
	  test -z "$$long" || { echo "Lines that do not end before column 120:" $$long; exit 1; }
	cd lab/vcenter && go vet ./...

lint-pins: environment
	@python tools/pins.py
	@python tools/advisories.py

lint-security: environment
	bandit --quiet --recursive --configfile pyproject.toml plugins

lock: environment ## build: Pin all packages of .venv in constraints.txt
	@python tools/pins.py --write

release: environment ## build: Make a release in this checkout, without a push; VERSION=1.2.3
	@python -m tools.release $(VERSION)

# The longest one, which uses one core, comes first: after lint, it would run alone.
static: environment ## check: Run sanity and lint in parallel
	@$(MAKE) --jobs 2 sanity lint

sanity: environment ## check: Run tests of ansible-test sanity that need no container; FULL=1 for all of them
	tools/sanity $(if $(FULL),,--quick)

# The simulator's tests mostly wait.
unit: environment ## check: Run the unit tests and the simulator's tests
	@$(MAKE) --jobs 2 unit-python unit-go

unit-python: environment
	$(RECORDED) tests/unit $(MARKS) --numprocesses 2 --dist worksteal --junitxml=$(REPORTS)/unit.xml

unit-go: environment
	cd lab/vcenter && go test ./...

# A changed program may send a signal to every process: it sees only its own.
mutants: environment ## long: Run mutation tests of a sample of each room; ROOMS="hosts workers" for some
	unshare $$(test "$$(id -u)" = 0 || echo --map-root-user) --pid --fork --kill-child --mount-proc python -m tools.mutants $(ROOMS)

explore: environment ## long: Explore random histories of a simulated site for ten minutes; SECONDS=3600, SEED=7
	python -m tools.explore $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

attack: setup-tests ## long: Kill runs and break the server at random, search for secrets; ROUNDS=1000, MINUTES=60, SEED=7, ONLY=kill:17
	python -m tests.attack $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(foreach each,$(ONLY),--only $(each))
	$(if $(ONLY),,$(PYTEST) tests/unit/test_foreign_text.py --hypothesis-profile=roam --numprocesses 2 --dist worksteal)
	$(if $(ONLY),,$(PYTEST) tests/attack --numprocesses 2 --dist worksteal --junitxml=$(REPORTS)/attack.xml)

setup-tests: setup ## build: Install the requirements of the tests, such as OpenMPI and GnuPG, as root or with sudo
	@tools/setup --tests

integration: setup-tests ## check: Run the tests against the simulator
	$(RECORDED) tests/integration $(MARKS) --numprocesses 3 --dist worksteal --junitxml=$(REPORTS)/integration.xml

clients: setup-tests ## check: Run govmomi's test scripts against this simulator and VMware's; SUITES="vm pool" for some, FULL=1 for all and Cluster API
	@python tools/suites.py $(SUITES)
	$(if $(FULL),$(PYTEST) tests/clients --junitxml=$(REPORTS)/clients.xml)

frameworks: setup-tests ## long: Run unchanged scripts of PyTorch, Keras and others, also in a window by restart; installs several GB
	tools/frameworks --junitxml=$(REPORTS)/frameworks.xml

nodes: $(NODES) ## long: Run the tests of the lab's nodes and machines, as root; nodes-slurm for one folder of tests/lab

$(NODES): nodes-%: root setup-nodes setup-machines
	$(PYTEST) tests/lab/$* $(MARKS) --junitxml=$(REPORTS)/$@.xml

kubernetes: root setup-kubernetes ## long: Run the tests of the lab's Kubernetes, as root
	$(PYTEST) tests/kubernetes $(MARKS) --junitxml=$(REPORTS)/kubernetes.xml

oldest: setup-tests ## long: Run module and integration tests with the oldest supported ansible-core and pyVmomi
	tools/other_core $@

between: setup-tests ## long: Run module and integration tests with the ansible-core between the oldest and that of .venv
	tools/other_core $@

newest: setup-tests ## long: Run module and integration tests with the next ansible-core, which needs Python 3.13
	tools/other_core $@

devel: setup-tests ## long: Run module and integration tests with the branch devel of ansible-core, which needs GitHub
	tools/other_core $@

molecule: $(MOLECULE) ## long: Test the roles on the lab's nodes and machines, as root; molecule-vm for one scenario

$(MOLECULE): molecule-%: root setup-nodes setup-machines
	molecule test --scenario-name $*

molecule-default: setup ## check: Test the playbooks for ESXi hosts and workers on the simulated data centre, without root
	molecule test

gpu: ## long: Check this machine's GPU, without a network, in eight minutes at most; PYTHON=python3 with PyTorch
	@$(or $(PYTHON),python3) -m tools.gpu

bench: setup ## long: Run all benchmarks
	@for each in bench/*/run; do echo "== $$each"; "$$each"; done

docs: environment ## build: Render the documentation site in build/docs; LINKS=1 to check its links to other sites
	tools/docs

build: environment ## build: Build the tarball for ansible-galaxy in build
	@python -m tools.build

clean: ## build: Remove all files that make created
	rm -rf .venv .cache .ansible build .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
