# Everything happens in a private .venv; the only requirements are make and Python 3.11 or newer. With a C compiler the
# hot modules are compiled, without one the same commands run interpreted.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
COMPILED := build/.compiled
ROAMCAST := $(VENV)/bin/roamcast

.PHONY: demo test lint bench bench-peers lock clean

demo: $(COMPILED)
	$(ROAMCAST) campaign run campaigns/arena-quick.toml --out results/arena-quick

test: $(COMPILED)
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(VENV)/bin/ruff check setup.py src tests examples
	$(VENV)/bin/mypy

bench: $(COMPILED)
	$(ROAMCAST) bench flood
	$(ROAMCAST) bench spark
	$(ROAMCAST) bench fidelity tests/reference/layout-*.json
	$(ROAMCAST) reproduce all --scale quick --out results

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Roamcast needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	ROAMCAST_PURE=1 $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(COMPILED): $(READY) setup.py $(shell find src/roamcast -name '*.py')
	@mkdir -p build
	@echo "compiling the hot modules (a minute or two; build/compile.log)"
	@$(VENV)/bin/python setup.py build_ext --inplace > build/compile.log 2>&1 || echo "compiling failed, see build/compile.log"
	@$(ROAMCAST) --version
	@touch $@

# Resolves the dependencies of pyproject.toml anew; needs uv.
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade -o requirements.lock

clean:
	find src -name '*.so' -delete
	rm -rf src/roamcast/compiled.txt $(VENV) build dist results .mypy_cache .ruff_cache .pytest_cache .hypothesis
