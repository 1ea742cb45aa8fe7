# Every target sets up what it needs. Stamps under .venv/ keep a second call from doing anything twice.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# An environment that forbids compiled modules has each command compile polars anew: it takes twice the time of the tests.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
MODULE := python/palimpsest/_core.abi3.so
# A line every ten seconds while a quiet command runs.
AT_WORK := tools/at_work.sh 10
SAMPLE := ../shared/traces/blkreplay_linux-mysql.load.zst
TRACE ?= $(firstword $(wildcard $(SAMPLE)) mysql-like)
NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml .cargo/config.toml $(shell find crates presets -type f -not -path '*/tests/*' -not -path '*/benches/*' 2>/dev/null)

# The native module in .venv is a release, or the one of `make dev` until something asks for a release again.
BUILD := $(if $(wildcard $(BIN)/.dev),dev,setup)
# Set in .ci/run, where the compiler lints what it compiles and writes the pages of the crates.
LINTS := $(filter %/tools/rustc.sh,$(RUSTC_WORKSPACE_WRAPPER))
TESTS = $(if $(ONLY),--only '$(ONLY)') $(if $(PART),--part '$(PART)')

.PHONY: help setup dev demo test test-long soak prove audit golden check static compiled lint-rust lint-python types format bench docs docs-rust wheel wheel-pgo wheel-check lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(BIN)/.native ## .venv with the command palimpsest in it

# Not for figures of speed. What is running keeps the module it has: the new one is another file. The compiler is asked for what
# maturin asks for, so that all three share one module.
dev: $(BIN)/.command ## the same in seconds after a change, unoptimized and with assertions
	@$(AT_WORK) "dev: building the simulator" cargo rustc --locked --quiet --manifest-path crates/extension/Cargo.toml \
		--lib --crate-type cdylib
	@rm -f $(BIN)/.native
	@touch $(BIN)/.dev
	@cp $$(ls -t $${CARGO_TARGET_DIR:-target}/debug/lib_core.{so,dylib} 2>/dev/null | head -1) $(MODULE:.so=.new.so)
	@mv $(MODULE:.so=.new.so) $(MODULE)
	@echo "dev: .venv/bin/$$($(BIN)/palimpsest --version); make setup goes back to a release"

demo: setup ## a real trace on two translation layers, compared
	@$(if $(filter mysql-like,$(TRACE)),echo "demo: expected $(abspath $(SAMPLE)); there is none: runs the synthetic mysql-like instead")
	@$(BIN)/palimpsest compare --ftl page,subpage --set buffer.ack=volatile --set buffer.flush=programs --workload $(TRACE) --out results/demo --force
	@echo "demo: compared page and subpage behind the same volatile buffer on $(notdir $(TRACE)); the same with charts is in results/demo/report.html"

test: $(BUILD) ## all tests; ONLY=NAME for those whose name has it, PART=2/5 for the second of five parts
	@$(PY) tools/run_tests.py $(TESTS)

test-long: $(BUILD) $(if $(ONLY)$(PART),,wheel) ## the tests that take minutes, with ONLY and PART too, and a release of the wheel
	@$(if $(ONLY)$(PART),,$(PY) tools/check_wheel.py)
	@$(PY) tools/run_tests.py --long $(TESTS)

soak: ## new seeds of the long tests for MINUTES=60: lives, power cuts, and how to repeat what was red; FROM=N is the first seed
	@$(PYTHON) tools/soak.py $(or $(MINUTES),60) $(FROM)

prove: ## every power cut of every sequence of LENGTH=4 requests on a tiny drive of each layer: how many states each survived
	PROVE_LENGTH=$(or $(LENGTH),4) cargo test --locked --release --quiet -p palimpsest-lab --test model -- \
		--exact --ignored --nocapture prove::long_every_cut_of_every_sequence

audit: ## what is locked against a database of known weaknesses, where that can be reached
	@$(PYTHON) tools/audit.py

golden: $(BIN)/.crates $(BIN)/.packages ## every figure of the revision REV against those of WITH, or of the working tree
	@$(PY) tools/golden.py '$(REV)' '$(WITH)'

check: static test ## format, lint, types, documentation, the wheel and all tests

static: lint-python lint-rust wheel-check types docs # all of check but the tests

# What the tests need, of which the module of `make dev` is a part: with all of it to do both cores are busy. And the benches.
compiled: $(BIN)/.crates
	@echo "compiled: building the tests and all they need$(if $(LINTS), with lints and pages of the crates)"
	@$(AT_WORK) "compiled: building the tests" cargo test --workspace --all-targets --locked --quiet --no-run

lint-rust: $(if $(LINTS),compiled,$(BIN)/.crates)
	cargo fmt --all --check
	$(if $(LINTS),,cargo clippy --workspace --all-targets --locked --quiet -- -D warnings)

lint-python: $(BIN)/.packages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(BIN)/.packages
	$(BIN)/mypy

format: setup ## format all code
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## benchmark figures: simulated requests a second, write-once-memory codes, readers of traces, an attached drive
	cargo bench --locked -p palimpsest-lab --bench speed
	cargo bench --locked -p palimpsest-lab --bench wom
	cargo test --release --locked -p palimpsest-workload -p palimpsest-server -- --ignored --nocapture measured_

docs-rust: $(if $(LINTS),compiled,$(BIN)/.crates)
	$(if $(LINTS),,RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet)

docs: $(BUILD) docs-rust ## the documentation, in site/, and that of the crates, in target/doc/
	$(PY) tools/reference.py docs/reference.md
	$(PY) tools/tour.py docs/tour.md
	$(PY) tools/wom_plot.py docs/wom-codes.md docs/images/wom-codes.svg
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: site/index.html and target/doc/"

# A release, of which this only packs what setup has built.
wheel: $(BIN)/.crates $(BIN)/.packages ## a wheel for any Python from 3.11 on, in dist/
	$(call build-wheel,release,dist)
	@echo "wheel: dist/$$(ls dist)"

wheel-pgo: $(BIN)/.crates $(BIN)/.packages ## the same, up to 1.3 times as fast: built twice, with training runs between
	@$(PY) tools/pgo.py

# The wheel of the build in use: packing and installing are checked, whatever the compiler did.
wheel-check: $(BUILD)
	$(call build-wheel,$(if $(filter dev,$(BUILD)),dev,release),target/wheel)
	$(PY) tools/check_wheel.py target/wheel/*.whl

define build-wheel
@rm -rf $(2)
$(AT_WORK) "wheel: building the $(1)" $(BIN)/maturin build --profile $(1) --locked --quiet --out $(2)
endef

lock: $(BIN)/.packages ## pin the newest packages that pyproject.toml allows
	$(BIN)/pip install --quiet --upgrade uv
	echo uv | $(BIN)/uv pip compile - --python-version 3.11 --universal --generate-hashes --upgrade \
		--quiet --custom-compile-command "make lock" -o requirements/uv.lock
	$(BIN)/uv pip compile pyproject.toml --extra dev --python-version 3.11 --universal --generate-hashes --upgrade \
		--quiet --custom-compile-command "make lock" -o requirements/dev.lock
	$(BIN)/uv pip compile pyproject.toml --constraint requirements/dev.lock --python-version 3.11 --universal --generate-hashes \
		--quiet --custom-compile-command "make lock" -o requirements/runtime.lock

clean: ## remove what was built, .venv included
	rm -rf .venv target site dist results docs/reference.md docs/tour.md docs/plotly.min.js docs/images/wom-codes.svg .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests tools \( -name __pycache__ -o -name '*.so' \) -prune -exec rm -rf {} +

# A .venv that is already there is used as it is, if its Python is new enough.
$(BIN)/.python:
	@if [ ! -x $(PY) ]; then \
		command -v $(PYTHON) >/dev/null || { echo "setup: expected $(PYTHON), version 3.11 or newer, in PATH" >&2; exit 1; }; \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
			echo "setup: $(PYTHON) is $$($(PYTHON) -V 2>&1), expected 3.11 or newer; name one with make PYTHON=..." >&2; exit 1; }; \
		$(PYTHON) -m venv .venv; \
	fi
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "setup: .venv holds $$($(PY) -V 2>&1), expected 3.11 or newer; make clean removes it" >&2; exit 1; }
	@touch $@

# uv takes a third of pip's time; where it does not find its way to the packages (it reads no pip.conf) pip does.
$(BIN)/.packages: $(BIN)/.python requirements/dev.lock requirements/uv.lock
	@echo "setup: installing the Python packages of requirements/dev.lock"
	@$(AT_WORK) "setup: installing Python packages" bash -c '$(PIP_INSTALL) -r requirements/uv.lock && \
		$(BIN)/uv pip install --quiet --python $(PY) --require-hashes -r requirements/dev.lock || \
		$(PIP_INSTALL) -r requirements/dev.lock'
	@touch $@

# Fetching every crate here, those of the tests included, lets all later builds work offline. It waits for no Python.
$(BIN)/.crates: Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml)
	@command -v cargo >/dev/null || { echo "setup: expected cargo (a Rust toolchain, https://rustup.rs) in PATH" >&2; exit 1; }
	@$(AT_WORK) "setup: fetching Rust crates" cargo fetch --locked --quiet
	@mkdir -p $(BIN)
	@touch $@

$(BIN)/.native: $(BIN)/.crates $(BIN)/.packages $(NATIVE_SOURCES)
	@echo "setup: building the simulator, a release of $$(grep -c '^name = ' Cargo.lock) crates: minutes the first time"
	$(call develop,setup,--release)
	@rm -f $(BIN)/.dev
	@touch $(BIN)/.command $@

# uv installs in no time what takes pip three seconds.
define develop
@PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/.venv PATH="$(CURDIR)/$(BIN):$$PATH" \
	$(AT_WORK) "$(1): building the simulator" $(BIN)/maturin develop $(2) --locked --quiet \
	$$(test ! -x $(BIN)/uv || echo --uv)
endef

# The command palimpsest in .venv; its module is whatever lies in python/.
$(BIN)/.command: $(BIN)/.crates $(BIN)/.packages pyproject.toml
	@echo "dev: building the simulator and all it needs, once"
	$(call develop,dev,--profile dev)
	@rm -f $(BIN)/.native
	@touch $(BIN)/.dev $@
