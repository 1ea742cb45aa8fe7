# Every target sets up what it needs. Stamps under .venv/ keep a second call from doing anything twice.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
TRACE ?= $(firstword $(wildcard ../shared/traces/blkreplay_linux-mysql.load.zst) mysql-like)
NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates presets -type f -not -path '*/tests/*' -not -path '*/benches/*' 2>/dev/null)

.PHONY: help setup demo test test-long check format bench docs wheel lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(BIN)/.native ## .venv with the command palimpsest in it

demo: setup ## a real trace on two translation layers, compared
	@$(BIN)/palimpsest compare --ftl page,subpage --workload $(TRACE) --out results/demo
	@echo "demo: compared page and subpage on $(notdir $(TRACE)); the same with charts is in results/demo/report.html"

test: setup ## all tests
	@$(PY) tools/run_tests.py

test-long: setup ## the tests that take minutes
	@$(PY) tools/run_tests.py --long

check: setup ## format, lint, types, documentation, the wheel and all tests
	cargo fmt --all --check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/mypy
	$(MAKE) --no-print-directory docs
	$(MAKE) --no-print-directory wheel
	$(PY) tools/check_wheel.py
	$(MAKE) --no-print-directory test

format: setup ## format all code
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## benchmark figures: simulated requests a second, write-once-memory codes
	cargo bench --locked -p palimpsest-lab --bench speed
	cargo bench --locked -p palimpsest-lab --bench wom

docs: setup ## the documentation, in site/, and that of the core, in target/doc/
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	$(PY) tools/reference.py docs/reference.md
	$(PY) tools/tour.py docs/tour.md
	$(PY) tools/wom_plot.py docs/wom-codes.md docs/images/wom-codes.svg
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: site/index.html and target/doc/palimpsest_lab/index.html"

# Setup has compiled the same crate with the same profile, so this only packs it.
wheel: setup ## a wheel for any Python from 3.11 on, in dist/
	@rm -rf dist
	$(BIN)/maturin build --release --locked --quiet --out dist
	@echo "wheel: dist/$$(ls dist)"

lock: setup ## pin the newest packages that pyproject.toml allows
	$(BIN)/pip install --quiet uv
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

$(BIN)/.packages: $(BIN)/.python requirements/dev.lock
	@echo "setup: installing the Python packages of requirements/dev.lock"
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/dev.lock
	@touch $@

# Fetching every crate here, those of the tests included, lets all later builds work offline.
$(BIN)/.crates: $(BIN)/.python Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml)
	@command -v cargo >/dev/null || { echo "setup: expected cargo (a Rust toolchain, https://rustup.rs) in PATH" >&2; exit 1; }
	@cargo fetch --locked --quiet
	@touch $@

$(BIN)/.native: $(BIN)/.crates $(BIN)/.packages $(NATIVE_SOURCES)
	@echo "setup: building the simulator"
	@PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --release --locked --quiet
	@touch $@
