# Every target sets up what it needs; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TEST_TOOLS := javac:openjdk-17-jdk-headless mvn:maven chromium:chromium
FAULT_TOOLS := $(TEST_TOOLS) faketime:faketime nft:nftables
DATABASE := pg_lsclusters:postgresql
# Most of what takes long waits for brokers, so that two cores do for two at once.
TEST_WORKERS ?= 2
LIVE_WORKERS ?= 3
# Tests that work all the time, and the one that measures how fast real groups work: as many at a time as there are
# processors. All others mostly wait for real things.
STEADY := tests/unit tests/spark tests/report tests/contract/test_matrix_live.py
BY_FILE := --dist loadfile --no-loadscope-reorder
CODE := planner spark_apps dags tests benchmarks scripts

.PHONY: help setup lock crds java fmt lint types imports quick test test-live test-long matrix soak beside run picture demo demo-doctor bench backtest capture docs replay conformance calibrate conformance-report faults fuzz supply-chain same check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-18s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## build .venv from the lock; .venv/bin/planner is the command

$(STAMP): requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" bash scripts/setup.sh $(VENV)
	@touch $@

lock: setup ## renew requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --all-extras --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --python-version 3.11 --upgrade --quiet -o requirements.lock

crds: setup ## renew k8s/crds from the types in planner/documents
	@$(BIN)/python -m planner.documents.crd k8s/crds

java: ## check that Java 17 or newer is there; as root on Debian install it
	@bash scripts/java.sh

fmt: setup ## format the code
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix-only --quiet $(CODE)

lint: setup ## ruff: rules and format
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check --quiet $(CODE)

types: setup ## mypy, strict
	@$(BIN)/mypy

imports: setup ## import contracts: who may know whom
	@$(BIN)/lint-imports --no-logo

quick: lint types imports ## lint, types, imports and the unit tests: no broker, no Java
	@$(BIN)/python -m pytest -q -n $(TEST_WORKERS) tests/unit -m "not slow and not cluster and not spark and not airflow"

test-live: setup ## the live tests of one area: TOPIC=kafka takes those with kafka in the name of their file or test
	@test -n "$(TOPIC)" || { echo "make test-live: no TOPIC: say one, as in make test-live TOPIC=kafka" >&2; exit 2; }
	@bash scripts/java.sh --try $(FAULT_TOOLS)
	@bash scripts/java.sh --try $(DATABASE)
	@$(BIN)/python -m pytest -k "$(TOPIC)" -m "cluster or spark or airflow or browser"

test: setup ## all tests but the longest; real brokers, Spark, Airflow and Chromium set themselves up
	@bash scripts/java.sh --try $(FAULT_TOOLS)
	@bash scripts/java.sh --try $(DATABASE)
	@# Kubernetes is compiled once, for some minutes: meanwhile other tests can run. Its own tests wait and report, so that
	@# it gets its share of the processors: niced, it went on into the second half, where most of them wait for it.
	@$(BIN)/python -m tests.clusters.kubernetes build > /dev/null 2>&1 & \
	 status=0; \
	 $(BIN)/python -m pytest -n $(TEST_WORKERS) $(BY_FILE) $(STEADY) || status=$$?; \
	 $(BIN)/python -m pytest -n $(LIVE_WORKERS) $(BY_FILE) -m "not long" $(addprefix --ignore=,$(STEADY)) || status=$$?; \
	 exit $$status

test-long: setup ## the tests that take minutes each: kills, transitions of live groups, Argo Rollouts and OpenKruise (an hour and a half)
	@bash scripts/java.sh --try $(FAULT_TOOLS)
	@$(BIN)/python -m pytest -n $(LIVE_WORKERS) $(BY_FILE) -m long

matrix: setup ## real groups whose truth is known against what the planner says of them; ONLY=kafka-java takes some, goes on
	@bash scripts/java.sh $(TEST_TOOLS)
	@$(BIN)/python -m tests.matrix --only "$(ONLY)"

soak: setup java ## a day in half an hour without hands: brokers, pods, Airflow's schedule, controller; MINUTES=30, see docs/soak.md
	@bash scripts/java.sh $(TEST_TOOLS)
	@bash scripts/java.sh $(DATABASE)
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),30)

beside: setup java ## the same day for three groups: the planner's, and two that real HPAs scale by lag; MINUTES=30
	@bash scripts/java.sh $(TEST_TOOLS)
	@$(BIN)/python -m tests.soak.beside --minutes $(or $(MINUTES),30) --page

run: setup java ## the scheduled DAG through Airflow and local Spark on the bundled capture
	@$(BIN)/python -m scripts.run_local

picture: setup ## take the pictures in README of the pages that make run and make demo left
	@$(BIN)/python -m scripts.picture

demo: setup ## the closed loop, live on loopback: load rises and falls, plans are made, approved, applied, verified
	@bash scripts/java.sh $(TEST_TOOLS)
	@$(BIN)/python -m scripts.demo $(if $(KEEP),--keep) $(if $(RECORD),--record docs/demo)

demo-doctor: setup ## a deliberately sick RocketMQ on loopback, and what planner doctor says of it (WATCH=60 seconds)
	@bash scripts/java.sh $(TEST_TOOLS)
	@$(BIN)/python -m scripts.demo_doctor $(WATCH)

bench: setup ## measure, and print figures and ratios
	@bash scripts/java.sh $(TEST_TOOLS)
	@$(BIN)/python -m benchmarks

backtest: setup ## the nine backtests of docs/backtest.md, from public traces: TRACES=FOLDER, ONLY=nasa takes some
	@$(BIN)/python -m benchmarks.backtest "$(or $(TRACES),traces)" --only "$(ONLY)"

capture: setup ## record a real group again: RocketMQ (35 minutes), SYSTEM=kafka (18 minutes)
	@bash scripts/java.sh $(TEST_TOOLS)
	@$(BIN)/python -m tests.load.record_capture --system $(or $(SYSTEM),rocketmq) \
	    examples/captures/$(if $(filter kafka,$(SYSTEM)),kafka-restart-overload,two-brokers-day)

docs: setup ## build the site of docs/ into work/site, strictly
	@$(BIN)/python -m scripts.site

replay: setup ## play the recorded run of make demo in this terminal (SPEED=4 plays it faster)
	@$(BIN)/python -m scripts.cast docs/demo/demo.cast $(or $(SPEED),4)

conformance: setup ## 10^6 RocketMQ and 10^5 Kafka allocations against the real client classes
	@bash scripts/java.sh $(TEST_TOOLS)
	@$(BIN)/python -m tests.oracles.conformance
	@$(BIN)/python -m tests.oracles.kafka.conformance

calibrate: setup ## change real groups, keep what was seen; SYSTEM=kafka, MINUTES=60 bounds it, ONLY=orderly,silent takes some kinds
	@bash scripts/java.sh $(TEST_TOOLS)
	@MINUTES="$(or $(MINUTES),60)" $(BIN)/python -m tests.conformance.$(or $(SYSTEM),rocketmq) --only "$(ONLY)"

conformance-report: setup ## forecasts beside what was observed: coverage, error, width, pictures; renews the tables of docs/conformance.md
	@$(BIN)/python -m tests.conformance --pictures work/conformance --page

faults: setup ## 1 000 killed executors (an hour), all that goes wrong, 200 changes; SEED=7 KILLS=1 DRIFTS=0 SCENARIOS=none replays one
	@bash scripts/java.sh --try $(FAULT_TOOLS)
	@$(BIN)/python -m tests.faults --seed $(or $(SEED),0) --kills $(or $(KILLS),1000) --drifts $(or $(DRIFTS),200) \
	    --scenarios "$(or $(SCENARIOS),all)"

fuzz: setup ## 10^6 damaged inputs against each reader; ONLY=kafka CASES=1000 SEED=7; GROW=60 adds to the kept corpora instead
	@$(BIN)/python -m tests.fuzz --cases $(or $(CASES),1000000) --seed $(or $(SEED),1) --only "$(ONLY)" --grow $(or $(GROW),0)

supply-chain: setup ## renew sbom.cdx.json and docs/licences.md from the lock; python -m scripts.supply_chain audit asks for advisories
	@$(BIN)/python -m scripts.supply_chain sbom
	@$(BIN)/python -m scripts.supply_chain licences

same: setup ## is every answer what it was? before and after a change of names; KEEP=1 keeps the new ones, ONE_IN=10 asks a tenth
	@$(BIN)/python -m tests.same $(if $(KEEP),--keep) --one-in $(or $(ONE_IN),1)

check: lint types imports test ## everything that CI asks for

clean: ## remove what make made inside the checkout
	@rm -rf $(VENV) work .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
