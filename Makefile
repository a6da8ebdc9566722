# Every target sets up what it needs in .venv; Python 3.11+ and make are enough.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What rounding could decide runs again with another BLAS kernel, one that every machine of this architecture has; and
# what calls BLAS in threads of its own with two BLAS threads, where `make test` has one.
OTHER_CORE := $(if $(filter aarch64 arm64,$(shell uname -m)),ARMV8,SANDYBRIDGE)
NUMERICAL := tests/certificates tests/kernels tests/operators tests/solvers tests/selection tests/statements \
  $(addprefix tests/test_, exact.py leverage.py linalg.py path.py) tests/classes/test_newton.py \
  tests/losses/test_references.py tests/tuning/test_criterion.py \
  $(addprefix tests/estimators/test_, accuracy.py exact_rounding.py intervals.py rounding.py)
THREADED := tests/passes/test_engine.py tests/passes/test_threads.py tests/operators/test_products.py \
  tests/solvers/test_cholesky.py tests/solvers/test_landmark_gradient.py tests/test_linalg.py

.PHONY: demo test test-all test-blas coverage lint docs bench clean

demo: .venv/report
	$(BIN)/ridgemark demo

# Tests start many processes, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# As many tests at a time as there are cores; each has one BLAS thread, and ends with an error if it hangs.
PARALLEL := -n auto --dist worksteal --timeout-method thread --timeout

test: .venv/dev
	$(BIN)/pytest -m "not slow" $(PARALLEL) 600

test-all: .venv/dev
	RIDGEMARK_TEST_EXAMPLES=100 $(BIN)/pytest $(PARALLEL) 5400

coverage: .venv/dev
	$(BIN)/pytest -m "not slow" --cov --cov-report=term:skip-covered

test-blas: .venv/dev
	OPENBLAS_CORETYPE=$(OTHER_CORE) $(BIN)/pytest -q -m "not slow" $(PARALLEL) 600 $(NUMERICAL)
	RIDGEMARK_TEST_THREADS=2 $(BIN)/pytest -q -m "not slow" --timeout 600 $(THREADED)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: .venv/dev
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/accuracy.py --rows 2000

clean:
	rm -rf .venv build dist docs/_build

.venv/python: 
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ridgemark needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + "; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/core: .venv/python pyproject.toml
	$(INSTALL) --upgrade "pip>=25.1"  # older ones know no dependency groups
	$(INSTALL) -e .
	@touch $@

.venv/report: .venv/core
	$(INSTALL) -e ".[arrow,report]"
	@touch $@

.venv/docs: .venv/core
	$(INSTALL) -e . --group docs
	@touch $@

.venv/dev: .venv/core
	$(INSTALL) -e . --group dev
	@touch $@
