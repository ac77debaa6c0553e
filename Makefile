# Everything happens in a private .venv; the only requirements are make and Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
ROAMCAST := $(VENV)/bin/roamcast

.PHONY: demo test lint bench lock clean

demo: $(READY)
	$(ROAMCAST) campaign run campaigns/arena-quick.toml --out results/arena-quick

test: $(READY)
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(VENV)/bin/ruff check src tests examples
	$(VENV)/bin/mypy

bench: $(READY)
	$(ROAMCAST) bench flood
	$(ROAMCAST) bench fidelity tests/reference/layout-*.json
	$(ROAMCAST) reproduce all --scale quick --out results

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Roamcast needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Resolves the dependencies of pyproject.toml anew; needs uv.
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade -o requirements.lock

clean:
	rm -rf $(VENV) build dist results .mypy_cache .ruff_cache .pytest_cache .hypothesis
