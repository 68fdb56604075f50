# The two commands: `make demo` and `make test`. Each sets up what is missing (Python 3.11, gcc and Rust
# have to be there) and costs nothing when nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
JOBS ?= 2

# TileGym is a corpus to translate; its own dependencies (torch, ...) are not needed for that.
TILEGYM := tilegym==1.5.1
BUILD_REQUIRES = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])
# TileGym without its dependencies would make pip warn about them every time.
PIP = $(BIN)/pip install --quiet --disable-pip-version-check --no-warn-conflicts
RUST_SOURCES := Cargo.toml Cargo.lock build_backend/backend.py $(shell find rust_runtime -name '*.rs' -o -name Cargo.toml)
CARGO := $(BIN)/python build_backend/cargo.py

.DEFAULT_GOAL := demo
.PHONY: demo test lint lint-python lint-rust test-rust test-python browser setup clean gpu-pack interpreter-pack \
	agents-demo fuzz mutation dispatch

demo: setup
	@mkdir -p out
	$(BIN)/transpile batch tilegym-24 -o out/tilegym-24 --json out/tilegym-24.json

test: lint test-rust test-python

lint: lint-python lint-rust

lint-python: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-rust: setup
	cargo fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings

test-rust: setup
	$(CARGO) test --release --locked --quiet

test-python: setup browser
	$(BIN)/pytest -n $(JOBS)

# The tests of the coverage page look at it in headless Chromium, a package of Debian.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "Setting up Chromium for the tests" && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -qq -y --no-install-recommends chromium chromium-driver >/dev/null; \
	} || echo "Without chromium and chromedriver the tests of the coverage page are skipped" >&2

# Nightly: random kernels through everything; findings are minimized into out/fuzz. SEED gives other kernels.
COUNT ?= 10000
SECONDS ?= 7200
SEED ?= 0

fuzz: setup
	PYTHONPATH=tests $(BIN)/python -m fuzz --count $(COUNT) --seconds $(SECONDS) --seed $(SEED) -j $(JOBS) -o out/fuzz

# Nightly, with COUNT=5000: random calls; what a launch would take is proved for exactly that call.
dispatch: setup
	PYTHONPATH=tests $(BIN)/python -m dispatch $(CORPORA) --count $(COUNT) --seed $(SEED)

# Every kind of fault in every kernel of tilegym-24; who finds it.
mutation: setup
	PYTHONPATH=tests $(BIN)/python -m mutation tilegym-24 -j $(JOBS) -o out/mutation

setup: $(STAMPS)/extension

$(STAMPS)/requirements: pyproject.toml
	@command -v cargo >/dev/null || { echo "Rust is needed: see https://rustup.rs" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@echo "Setting up $(VENV): Python packages"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) $$($(PYTHON) -c '$(BUILD_REQUIRES)')
	@$(PIP) --no-deps $(TILEGYM)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/extension: $(STAMPS)/requirements $(RUST_SOURCES)
	@echo "Setting up $(VENV): building the compiler extension (2 to 5 minutes the first time)"
	@$(PIP) --no-build-isolation -e '.[dev]'
	@$(BIN)/python -m compileall -q transpiler
	@touch $@

# What a GPU machine without internet needs for benchmarks/gpu: .dev/gpu and .dev/cu.tar.xz.
# CHECKOUT is a clone of TileGym's repository, whose tests (of operators and of suites) are run.
CHECKOUT ?= TileGym
GPU_OUT := out/gpu

gpu-pack: setup
	$(BIN)/transpile batch tilegym-gpu -o $(GPU_OUT) --json out/gpu.json || test $$? = 3
	$(BIN)/transpile benchmarks/gpu/launch_kernels.py --spec benchmarks/gpu/launch_kernels.toml -o $(GPU_OUT)
	$(BIN)/transpile build $(GPU_OUT)
	$(BIN)/python benchmarks/gpu/pack.py $(GPU_OUT) --tests $(CHECKOUT) -o .dev/gpu --toolchain

# What the interpreter is judged by: kernels with inputs for `python interpreter_run.py job --out RESULTS` on a GPU
# machine. Afterwards `python benchmarks/gpu/interpreter_keep.py .dev/gpu/interp/job RESULTS` here, and commit.
interpreter-pack: setup
	mkdir -p .dev/gpu/interp
	cp benchmarks/gpu/interpreter_run.py benchmarks/gpu/machine.py .dev/gpu/interp/
	$(BIN)/python benchmarks/gpu/interpreter_pack.py -o .dev/gpu/interp/job -j $(JOBS)

# A Hole, a wrong answer, the difference, a right one, the proof, the promotion; offline.
agents-demo: setup
	$(BIN)/python tools/agents_demo.py

clean:
	rm -rf $(VENV) target out
