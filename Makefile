# Everything a person types. `make help` lists it.
#
# Stamps under .venv say what is installed already, so that a second `make` does nothing. What can be set from outside:
#   PYTHON         the Python that .venv is made from (3.11 or newer)
#   LADDER_TORCH   what pip is asked for as torch: a requirement, a wheel's path, or either with pip options before it

SHELL := /bin/sh
.DEFAULT_GOAL := help

LADDER_TORCH ?= torch==2.13.0
BIN := .venv/bin
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VENV := .venv/.made
TORCH := .venv/.torch-$(shell printf '%s' '$(LADDER_TORCH)' | cksum | cut -d ' ' -f 1)
NODE := .venv/.node
TOOLS := .venv/.tools
PAGES := web/static/dist/.built
PAGE_SOURCES := $(shell find web/src web/build.mjs web/package.json web/package-lock.json -type f 2>/dev/null)

.PHONY: help
help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-10s %s\n", $$1, $$2 }'

.PHONY: setup
setup: $(NODE) $(TOOLS) $(PAGES) ## Install everything into .venv and build the pages

$(VENV):
	@sh scripts/make_venv.sh .venv
	@touch $@

# torch is the large one, so it has a stamp of its own; what follows takes it as it is.
$(TORCH): $(VENV)
	$(BIN)/python -m pip install --quiet $(LADDER_TORCH)
	@rm -f .venv/.torch-*
	@touch $@

$(NODE): $(TORCH) pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[node]'
	@touch $@

$(TOOLS): $(NODE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[node,pallas,cutlass]' --group check --group test
	@touch $@

$(PAGES): $(VENV) $(PAGE_SOURCES)
	@sh scripts/build_pages.sh
	@touch $@

.PHONY: demo
demo: $(NODE) $(PAGES) ## Set up, serve, submit five kernels and show what becomes of each
	$(BIN)/ladder demo

.PHONY: up
up: $(NODE) $(PAGES) ## Set up and keep serving; Ctrl-C stops
	$(BIN)/ladder up

.PHONY: down
down: ## Stop what `make up` started
	$(BIN)/ladder down

.PHONY: check
check: $(TOOLS) ## Format, lint, types, import rules, house rules
	@sh scripts/check.sh

.PHONY: docs
docs: $(TOOLS) ## Build the documentation as a site in var/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean

.PHONY: test
test: $(TOOLS) $(PAGES) ## Run a part of every kind of test (10 to 20 minutes); says what it left to test-full
	@$(BIN)/python -m tests.suite quick

.PHONY: test-full
test-full: $(TOOLS) $(PAGES) ## Run every test: both databases, both sandboxes, containers (an hour)
	@$(BIN)/python -m tests.suite full

.PHONY: compose-up
compose-up: $(TORCH) $(PAGES) ## Start a course in containers; makes images, secrets and a certificate first (docs/deploy.md)
	@PYTHON=$(BIN)/python LADDER_TORCH='$(LADDER_TORCH)' sh deploy/up.sh

.PHONY: compose-down
compose-down: ## Stop the containers; what they keep stays
	@sh deploy/compose.sh down

.PHONY: compose-test
compose-test: $(TOOLS) $(PAGES) ## Bring the containers up from nothing, grade in them, restart some, tear them down
	$(BIN)/python -m pytest tests/compose -p no:cacheprovider

.PHONY: bench
bench: $(TOOLS) $(PAGES) ## Read the published figures and write docs/performance.md
	$(BIN)/python scripts/bench.py

.PHONY: load
load: $(TOOLS) $(PAGES) ## Find how much the web tier takes on PostgreSQL; writes docs/performance.md (10 minutes)
	$(BIN)/python scripts/load.py --publish

.PHONY: seed-large
seed-large: $(TOOLS) ## Fill var/large with 300 students, 30 rungs and 100 000 submissions (URL=postgresql://… for another database)
	$(BIN)/python -m scripts.seed_large $(if $(URL),--url '$(URL)')

.PHONY: bench-web
bench-web: $(TOOLS) $(PAGES) ## Time every page of that course, by who looks; writes docs/performance.md (minutes)
	$(BIN)/python -m scripts.bench_web --publish $(if $(URL),--url '$(URL)')

.PHONY: screenshots
screenshots: $(TOOLS) $(PAGES) ## Take the pictures of docs/screenshots with a course in the middle of its term (minutes)
	$(BIN)/python -m scripts.screenshots $(ONLY)

.PHONY: surge
surge: $(TOOLS) ## Replay the hours before a due date in simulated time; writes docs/reliability.md (minutes)
	$(BIN)/python scripts/surge.py --publish

.PHONY: chaos
chaos: $(TOOLS) $(PAGES) ## Break everything while a course submits, and check that nothing is lost (QUICK=1, SEED=7)
	$(BIN)/python -m tests.chaos $(if $(QUICK),--quick) $(if $(SEED),--seed $(SEED)) --report var/chaos/report.json $(if $(QUICK),,--page docs/reliability.md)

.PHONY: redteam
redteam: $(TOOLS) ## Attack every path that this machine has, and print what became of it (ONLY=A1, LANE=h200, SANDBOX=docker)
	@mkdir -p var
	$(BIN)/python -m tests.redteam $(if $(ONLY),--only $(ONLY)) $(if $(LANE),--lane $(LANE)) $(if $(SANDBOX),--sandbox $(SANDBOX)) --json var/redteam.json

.PHONY: b200-acceptance
b200-acceptance: $(TOOLS) ## Try a GPU for all that grading needs, in steps; signed table in OUT (LANE=h200, ONLY='kernels:*', KEY=node.pem)
	$(BIN)/python scripts/acceptance.py run --lane $(or $(LANE),b200) --out $(or $(OUT),var/acceptance) --key $(or $(KEY),var/acceptance-key.pem) \
	    $(if $(ONLY),--only $(ONLY)) $(if $(LANGUAGE),--language $(LANGUAGE)) $(if $(SANDBOX),--sandbox $(SANDBOX)) $(if $(LIMIT_S),--limit-s $(LIMIT_S))

.PHONY: pins
pins: $(TOOLS) ## Say which images of the containers are behind their registry (docs/deploy.md)
	$(BIN)/python -m scripts.pins

.PHONY: format
format: $(TOOLS) ## Format and fix what can be fixed without thinking
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: clean
clean: ## Remove what was installed and built (not var/, where the data is)
	rm -rf .venv web/node_modules web/static/dist dist build
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
