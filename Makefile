# Every target sets up its requirements. Stamps under .venv/ prevent repeated set-up.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# With this variable set, each command would compile polars again and double the time of the tests.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
MODULE := python/palimpsest/_core.abi3.so
LIVE := python/palimpsest/live/palimpsest.wasm.gz
WASM = $(wildcard $(shell rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null))
# Prints a line every ten seconds while a quiet command runs.
AT_WORK := tools/at_work.sh 10
SAMPLE := ../shared/traces/blkreplay_linux-mysql.load.zst
TRACE ?= $(firstword $(wildcard $(SAMPLE)) mysql-like)
NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml .cargo/config.toml \
	$(shell find crates presets -type f -not -path '*/tests/*' -not -path '*/benches/*' 2>/dev/null)

# The native module in .venv is a release, or the build of `make dev` until a target requires a release again.
BUILD := $(if $(wildcard $(BIN)/.dev),dev,setup)
# Set in .ci/run, where the compiler wrapper lints each crate and writes its pages.
LINTS := $(filter %/tools/rustc.sh,$(RUSTC_WORKSPACE_WRAPPER))
TESTS = $(if $(ONLY),--only '$(ONLY)') $(if $(PART),--part '$(PART)')

# Files of the drive for programs in C.
PREFIX ?= target/c
PROFILE ?= release

.PHONY: c-library help setup dev demo test test-long soak prove audit golden check static compiled \
	lint-rust lint-python types format bench docs docs-rust live wheel wheel-pgo wheel-check release lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(BIN)/.native $(BIN)/.packages ## .venv with the command palimpsest in it

# Not for figures of speed. A running command keeps the old module, because the new one is another file. The arguments
# of cargo equal maturin's, so the builds share one module.
dev: $(BIN)/.command ## the same, unoptimized and with assertions, in seconds after a change
	@$(AT_WORK) "dev: building the simulator" cargo rustc --locked --quiet --manifest-path crates/extension/Cargo.toml \
		--lib --crate-type cdylib
	@rm -f $(BIN)/.native
	@touch $(BIN)/.dev
	@cp $$(ls -t $${CARGO_TARGET_DIR:-target}/debug/lib_core.{so,dylib} 2>/dev/null | head -1) $(MODULE:.so=.new.so)
	@mv $(MODULE:.so=.new.so) $(MODULE)
	@echo "dev: .venv/bin/$$($(BIN)/palimpsest --version); make setup goes back to a release"

demo: $(BIN)/.native ## a real trace on two translation layers, compared
	@$(if $(filter mysql-like,$(TRACE)),echo "demo: expected $(abspath $(SAMPLE)); there is none: runs the synthetic mysql-like instead")
	@$(BIN)/palimpsest compare --ftl page,subpage --seeds 1..3 --workload $(TRACE) --out results/demo --force
	@echo "demo: compared page and subpage behind the same write buffer on $(notdir $(TRACE)); the same with charts is in results/demo/report.html"

test: $(BUILD) ## all tests; ONLY=NAME selects tests by a part of the name, PART=2/5 the second of five parts
	@$(PY) tools/run_tests.py $(TESTS)

test-long: $(BUILD) $(if $(ONLY)$(PART),,$(if $(WASM),live) wheel) ## tests that take minutes, with ONLY and PART too, and a release wheel
	@$(if $(ONLY)$(PART),,$(PY) tools/check_wheel.py --everywhere)
	@$(if $(ONLY)$(PART),,$(if $(WASM),$(PY) -m pytest --quiet tests/python/test_live.py,echo "test-long: no target wasm32 here: the live lab is not tested"))
	@$(PY) tools/run_tests.py --long $(TESTS)

soak: ## runs the long tests with new seeds for MINUTES=60 and prints how to repeat failures; FROM=N is the first seed
	@$(PYTHON) tools/soak.py $(or $(MINUTES),60) $(FROM)

prove: ## tests every power cut of every sequence of LENGTH=4 requests on a tiny drive of each layer
	PROVE_LENGTH=$(or $(LENGTH),4) cargo test --locked --release --quiet -p palimpsest-lab --test model -- \
		--exact --ignored --nocapture prove::long_every_cut_of_every_sequence

audit: ## compares locked packages with a database of known vulnerabilities; status 2: no answer
	@$(PYTHON) tools/audit.py

golden: $(BIN)/.crates $(BIN)/.packages ## compares every figure of revision REV with WITH, or the working tree
	@$(PY) tools/golden.py '$(REV)' '$(WITH)'

check: static test ## format, lint, types, documentation, the wheel and all tests

static: lint-python lint-rust wheel-check types docs # all of check except the tests

# Builds the module of `make dev`, the tests and the benches together, because that keeps all cores busy.
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

format: setup ## formats all code
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## benchmarks: simulated requests a second, write-once-memory codes, trace readers, an attached drive
	cargo bench --locked -p palimpsest-lab --bench speed
	cargo bench --locked -p palimpsest-lab --bench wom
	$(PY) benches/instructions.py
	cargo test --release --locked -p palimpsest-workload -p palimpsest-server -p palimpsest-drive -- --ignored --nocapture measured_

docs-rust: $(if $(LINTS),compiled,$(BIN)/.crates)
	$(if $(LINTS),,RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet)

docs: $(BUILD) docs-rust ## the documentation in site/, and the pages of the crates in target/doc/
	$(PY) tools/reference.py docs/reference.md
	$(PY) tools/tour.py docs/tour.md docs/pacing.md
	$(PY) tools/wom_plot.py docs/wom-codes.md docs/images/wom-codes.svg
	$(PY) tools/gallery.py docs/images
	@$(AT_WORK) "docs: ranking the layers" $(PY) tools/standings.py docs/standings.md
	@rm -rf docs/live
	@if [ -f $(LIVE) ]; then cp -r $(dir $(LIVE)) docs/live; else \
		mkdir docs/live && echo '<p>This build of the docs has no lab; <code>make live docs</code> adds it.' > docs/live/index.html; fi
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: site/index.html and target/doc/"

# Packs the release that setup has built.
wheel: $(BIN)/.crates $(BIN)/.packages ## a wheel for any Python from 3.11 on, in dist/
	$(call build-wheel,release,dist)
	@echo "wheel: dist/$$(ls dist)"

wheel-pgo: $(BIN)/.crates $(BIN)/.packages ## the same, up to 1.3x faster: built twice, with training runs between
	@$(PY) tools/pgo.py

# An environment of its own, because zig takes more space than all other packages of a build.
release: $(BIN)/.crates ## wheels, sdist, crates, container file, recipe, bill of materials and sums, checked, in dist/
	@test -x target/release-tools/bin/python || $(PYTHON) -m venv target/release-tools
	@$(AT_WORK) "release: installing zig" target/release-tools/bin/python -m pip install --quiet \
		--disable-pip-version-check -r requirements/release.lock
	@$(AT_WORK) "release: working" target/release-tools/bin/python tools/release.py $(STEPS)

# Checks packing and installing with the wheel of the present build, optimized or not.
wheel-check: $(BUILD)
	$(call build-wheel,$(if $(filter dev,$(BUILD)),dev,release),target/wheel)
	$(PY) tools/check_wheel.py target/wheel/*.whl

c-library: ## the drive for programs in C, with files for pkg-config and CMake, under PREFIX=target/c
	@mkdir -p '$(PREFIX)'/{include,lib/pkgconfig,lib/cmake/palimpsest}
	@cargo run --locked --quiet --manifest-path tools/header/Cargo.toml --target-dir target/header -- crates/c \
		'$(PREFIX)/include/palimpsest.h'
	@$(AT_WORK) "c-library: building the simulator" cargo rustc --locked --quiet --profile $(PROFILE) \
		-p palimpsest-c --lib --crate-type cdylib,staticlib
	@cp $$(ls $${CARGO_TARGET_DIR:-target}/$(PROFILE:dev=debug)/libpalimpsest.{a,so,dylib} 2>/dev/null) '$(PREFIX)/lib'
	@version=$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml); \
	sed "s/@VERSION@/$$version/" crates/c/palimpsest.pc.in > '$(PREFIX)/lib/pkgconfig/palimpsest.pc'; \
	sed "s/@VERSION@/$$version/" crates/c/palimpsest-config.cmake.in \
		> '$(PREFIX)/lib/cmake/palimpsest/palimpsest-config.cmake'
	@echo "c-library: $(PREFIX)/include/palimpsest.h and $(PREFIX)/lib"

# Part of the wheels and of the docs if it has been built.
live: ## the simulator as WebAssembly for palimpsest live, and for the lab in the docs
	@rustc --print target-libdir --target wasm32-unknown-unknown | xargs test -d || { \
		echo "live: expected the Rust target wasm32-unknown-unknown; rustup target add wasm32-unknown-unknown" >&2; exit 1; }
	@$(AT_WORK) "live: building the simulator" cargo rustc --locked --quiet --profile live -p palimpsest-live --lib \
		--crate-type cdylib --target wasm32-unknown-unknown
	@gzip -9nc $${CARGO_TARGET_DIR:-target}/wasm32-unknown-unknown/live/palimpsest_live.wasm > $(LIVE)
	@echo "live: $(LIVE), $$(($$(wc -c < $(LIVE)) / 1024)) KiB; palimpsest live shows it"

define build-wheel
@rm -rf $(2)
@$(PY) tools/sbom.py
$(AT_WORK) "wheel: building the $(1)" $(BIN)/maturin build --profile $(1) --locked --quiet --out $(2)
endef

lock: $(BIN)/.packages ## pins the newest packages that pyproject.toml allows
	$(BIN)/pip install --quiet --upgrade uv
	echo uv | $(BIN)/uv pip compile - --python-version 3.11 --universal --generate-hashes --upgrade \
		--quiet --custom-compile-command "make lock" -o requirements/uv.lock
	$(BIN)/uv pip compile pyproject.toml --extra dev --python-version 3.11 --universal --generate-hashes --upgrade \
		--quiet --custom-compile-command "make lock" -o requirements/dev.lock
	$(call pin-subset,pyproject.toml,runtime)
	$(call pin-subset,pyproject.toml --extra report --extra sweep,extras)
	printf 'maturin>=1.16,<2\nziglang\n' | $(call pin-subset,-,release)
	echo 'maturin>=1.16,<2' | $(call pin-subset,- pyproject.toml,demo)

define pin-subset
$(BIN)/uv pip compile $(1) --constraint requirements/dev.lock --python-version 3.11 --universal \
	--generate-hashes --quiet --custom-compile-command "make lock" -o requirements/$(2).lock
endef

clean: ## removes all build products, .venv included
	rm -rf .venv target site dist results LICENCES.md docs/reference.md docs/tour.md docs/pacing.md \
		docs/standings.md docs/plotly.min.js docs/live $(LIVE) docs/images/wom-codes.svg docs/images/gallery-*.svg \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests tools \( -name __pycache__ -o -name '*.so' \) -prune -exec rm -rf {} +

# An existing .venv is used unchanged if its Python is new enough.
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

# uv takes a third of pip's time. pip is the fallback, because uv reads no pip.conf and may not reach the packages.
$(BIN)/.packages: $(BIN)/.base requirements/dev.lock requirements/uv.lock
	@echo "setup: installing the Python packages of requirements/dev.lock"
	@$(AT_WORK) "setup: installing Python packages" bash -c '$(PIP_INSTALL) -r requirements/uv.lock && \
		$(BIN)/uv pip install --quiet --python $(PY) --require-hashes -r requirements/dev.lock || \
		$(PIP_INSTALL) -r requirements/dev.lock'
	@touch $@

# Fetches every crate, tests included, so later builds work offline. This target must not depend on Python.
$(BIN)/.crates: Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml)
	@command -v cargo >/dev/null || { echo "setup: expected cargo (a Rust toolchain, https://rustup.rs) in PATH" >&2; exit 1; }
	@$(AT_WORK) "setup: fetching Rust crates" cargo fetch --locked --quiet
	@mkdir -p $(BIN)
	@touch $@

# Only the packages of a run and of the build: no Ray, Dask or mkdocs.
$(BIN)/.base: $(BIN)/.python requirements/demo.lock
	@echo "setup: installing $$(grep -c '^[a-z]' requirements/demo.lock) Python packages of requirements/demo.lock"
	@$(AT_WORK) "setup: installing Python packages" $(PIP_INSTALL) -r requirements/demo.lock
	@touch $@

$(BIN)/.native: export FAR := tools/crates_begun.sh
$(BIN)/.native: $(BIN)/.crates $(BIN)/.base $(NATIVE_SOURCES)
	@echo "setup: building the simulator, a release: $$(tools/crates_begun.sh), minutes the first time"
	$(call develop,setup,--release)
	@rm -f $(BIN)/.dev
	@touch $(BIN)/.command $@

# uv, because pip takes three seconds for this installation. The distribution was once called palimpsest.
define develop
@rm -rf .venv/lib/python*/site-packages/palimpsest-*.dist-info
@PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/.venv PATH="$(CURDIR)/$(BIN):$$PATH" \
	$(AT_WORK) "$(1): building the simulator" $(BIN)/maturin develop $(2) --locked --quiet \
	$$(test ! -x $(BIN)/uv || echo --uv)
endef

# The command palimpsest in .venv, with the present module in python/.
$(BIN)/.command: $(BIN)/.crates $(BIN)/.packages pyproject.toml
	@echo "dev: building the simulator and all it needs, once"
	$(call develop,dev,--profile dev)
	@rm -f $(BIN)/.native
	@touch $(BIN)/.dev $@
