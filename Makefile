# Everything happens in a private .venv; the only requirements are make and Python 3.11 or newer. With a C compiler the
# hot modules are compiled, without one the same commands run interpreted.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check
READY := $(VENV)/.ready
COMPILED := build/.compiled
ROAMCAST := $(VENV)/bin/roamcast
PEERS := build/peers

.PHONY: demo docs fuzz mutants test wheel lint bench bench-peers reference-aodv reference-radio lock clean

demo: $(COMPILED)
	$(ROAMCAST) campaign run campaigns/arena-quick.toml --out results/arena-quick

# One process more than two cores: tests of live nodes spend much of their time waiting. Half a minute of fuzzing is part
# of it, beside the half minute of nonsense and storms that tests/hunt has anyway.
test: $(COMPILED)
	ROAMCAST_FUZZ=500000 $(VENV)/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# The guide as a site that needs no network: docs/_build/index.html.
docs: $(READY)
	$(VENV)/bin/python -m sphinx -q -b html docs docs/_build

# Well-formed nonsense for every protocol, and datagrams that must not be accepted: far more of both than in the tests.
# Then mutated datagrams for an hour; messages of new shapes are added to the corpus.
fuzz: $(COMPILED)
	ROAMCAST_NONSENSE=300000 ROAMCAST_DATAGRAMS=10000000 $(VENV)/bin/python -m pytest -n 2 tests/hunt/test_attack.py tests/hunt/test_datagrams.py
	$(ROAMCAST) hunt fuzz --hours 1 --keep

# Thirty seeded bugs, one at a time: does the suite find them, does a hunt of five minutes?
mutants: $(READY)
	$(VENV)/bin/python tests/mutants/run.py --minutes 5 --out results/mutants.json

# For users without a compiler: dist/roamcast-*.whl has the compiled form for this Python and platform.
wheel: $(READY)
	$(VENV)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

lint: $(READY)
	$(VENV)/bin/ruff check setup.py src tests examples peers docs
	$(VENV)/bin/mypy

bench: $(COMPILED)
	$(ROAMCAST) bench flood
	$(ROAMCAST) bench spark
	$(ROAMCAST) bench fidelity tests/reference/layout-*.json tests/reference/g-layout-*.json tests/reference/aodv-*.json
	$(ROAMCAST) reproduce all --scale quick --most 16 --out results

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Roamcast needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	@mkdir -p build
	@awk '/^[^ ]/ {keep = /^uv==/} keep' requirements.lock > build/uv.lock
	@echo "installing what requirements.lock names"
	@$(PIP) --require-hashes -r build/uv.lock && $(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --require-hashes -r requirements.lock \
		|| { echo "uv could not, so pip does"; $(PIP) --require-hashes -r requirements.lock; }
	ROAMCAST_PURE=1 $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(COMPILED): $(READY) setup.py $(shell find src/roamcast -name '*.py')
	@mkdir -p build
	@echo "compiling the hot modules (a minute or two; build/compile.log)"
	@$(VENV)/bin/python setup.py build_ext --inplace > build/compile.log 2>&1 || echo "compiling failed, see build/compile.log; the next make tries again"
	@$(ROAMCAST) --version | tee build/form
	@if grep -q ', compiled$$' build/form; then touch $@; fi

# Roamcast beside ns-3, SimPy and plain C++, and compiled beside interpreted; writes docs/results/speed.md.
bench-peers: $(COMPILED) $(PEERS)/ns3 $(PEERS)/limit $(PEERS)/simpy/.ready
	$(ROAMCAST) bench peers --ns3 $(PEERS)/ns3 --limit $(PEERS)/limit --simpy-python $(PEERS)/simpy/bin/python --layout tests/reference/layout-1.json --layout tests/reference/layout-2.json --store docs/results
	$(ROAMCAST) bench forms --store docs/results

$(PEERS)/ns3: peers/ns3/wireless.cc
	@mkdir -p $(PEERS)
	@test -e /usr/include/ns3/wifi-module.h || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++ pkg-config libns3-dev > $(PEERS)/apt.log; } \
		|| { echo "make bench-peers needs ns-3: install it as root, on Debian or Ubuntu with apt-get install g++ pkg-config libns3-dev"; exit 1; }
	$(CXX) -std=c++17 -O3 -DNS3_VERSION="\"$$(pkg-config --modversion ns3-core)\"" -o $@ $< -lns3-wifi -lns3-propagation -lns3-mobility -lns3-network -lns3-core

# Built after ns-3, whose recipe installs the compiler.
$(PEERS)/limit: peers/limit.cc $(PEERS)/ns3
	$(CXX) -std=c++17 -O3 -o $@ $<

# Measures the references of AODV again, with ns-3.
reference-aodv: $(COMPILED) $(PEERS)/ns3-aodv
	$(ROAMCAST) bench reference tests/reference/aodv-1.json --ns3 $(PEERS)/ns3-aodv --seed 1 --speed-max 5
	$(ROAMCAST) bench reference tests/reference/aodv-2.json --ns3 $(PEERS)/ns3-aodv --seed 2 --speed-max 10
	$(ROAMCAST) bench reference tests/reference/aodv-3.json --ns3 $(PEERS)/ns3-aodv --seed 3 --speed-max 20

# Measures the references of 802.11g again, with ns-3.
reference-radio: $(COMPILED) $(PEERS)/ns3
	$(ROAMCAST) bench reference-radio tests/reference/g-layout-1.json --ns3 $(PEERS)/ns3 --seed 1
	$(ROAMCAST) bench reference-radio tests/reference/g-layout-2.json --ns3 $(PEERS)/ns3 --seed 2

$(PEERS)/ns3-aodv: peers/ns3/aodv.cc $(PEERS)/ns3
	$(CXX) -std=c++17 -O3 -DNS3_VERSION="\"$$(pkg-config --modversion ns3-core)\"" -o $@ $< -lns3-aodv -lns3-internet -lns3-wifi -lns3-propagation -lns3-mobility -lns3-network -lns3-core

$(PEERS)/simpy/.ready: peers/requirements.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# Resolves the dependencies of pyproject.toml anew.
lock: $(READY)
	$(VENV)/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade -o requirements.lock

clean:
	find src -name '*.so' -delete
	rm -rf src/roamcast/compiled.txt $(VENV) build dist results .mypy_cache .ruff_cache .pytest_cache .hypothesis
