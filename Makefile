# Two commands set everything up by themselves: `make demo` and `make test`.
# They need Python 3.11 or later, pip, make and git. No root, no compiler, nothing left from before.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Threads that wait give their core away: several processes of several threads share the cores here.
export OMP_WAIT_POLICY ?= PASSIVE
WORKERS := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.PHONY: demo test check lint types docs nightly bench-aggregators bench-choices bench-exchange bench-graph bench-graph-peers bench-growth bench-noise bench-paper-sizes bench-ray bench-release bench-train bench-unseen bench-utility bench-wire api-page attack-page audit-page chaos study-page proof-read clean help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	@echo "vesper: setting up $(VENV) with $(PYTHON); the first time this downloads about 1 GB and takes two minutes"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "vesper: expected Python 3.11 or later, got $$($(PYTHON) --version 2>&1); set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@echo "vesper: installing torch, the largest part"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	@echo "vesper: installing everything else, at the versions of constraints.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,psi,ray]'
	@touch $@
	@echo "vesper: ready"

demo: $(READY)  ## run the main job end to end on simulated finance data; the report is in demo/
	@$(BIN)/vesper demo --out demo

test: $(READY)  ## run all tests
	@echo "vesper: running the tests"
	@$(BIN)/python -m pytest $(WORKERS) -m "not nightly"

nightly: $(READY)  ## run everything, the slow proofs too
	@$(BIN)/python -m pytest $(WORKERS) -o faulthandler_timeout=7200

lint: $(READY)  ## style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(READY)  ## mypy --strict, no exemptions
	@$(BIN)/mypy

check: lint types test  ## what the gate runs

docs: .venv-docs/.ready  ## build the documentation site into site/
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build
	@echo "vesper: open site/index.html"

# Docstrings are read from the source, so the package itself is not installed here.
.venv-docs/.ready: pyproject.toml constraints.txt
	@echo "vesper: setting up .venv-docs with MkDocs"
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

bench-aggregators: $(READY)  ## six ways to weigh neighbours at equal epsilon
	@$(BIN)/python -m benchmarks.aggregators $(ARGS)

bench-choices: $(READY)  ## constants of the certified plan, judged without test nodes
	@$(BIN)/python -m benchmarks.choices $(ARGS)

bench-exchange: $(READY)  ## rounded messages and several local updates an exchange: bytes and utility
	@$(BIN)/python -m benchmarks.exchange $(ARGS)

bench-graph: $(READY)  ## sampling and bytes an edge, against peers where they are installed
	@$(BIN)/python -m benchmarks.graph $(ARGS)

bench-graph-peers: .venv-peers/.ready  ## the same in an environment with DGL and PyG
	@.venv-peers/bin/python -W ignore -m benchmarks.graph $(ARGS)

bench-growth: $(READY)  ## time and memory from 1 M to 124 M edges
	@$(BIN)/python -m benchmarks.growth $(ARGS)

bench-noise: $(READY)  ## draws of noise a CPU second, against generators that are not secure
	@$(BIN)/python -m benchmarks.noise $(ARGS)

bench-paper-sizes: $(READY)  ## the paper's sizes from end to end: hours at full size
	@$(BIN)/python -m benchmarks.paper_sizes $(ARGS)

bench-ray: $(READY)  ## releases on workers of Ray against this process, on 1, 2 and 4 workers
	@$(BIN)/python -m benchmarks.ray $(ARGS)

bench-release: $(READY)  ## noisy neighbour sums of a whole graph, against sums without noise
	@$(BIN)/python -m benchmarks.release $(ARGS)

bench-wire: $(READY)  ## a step on the wire against raw TLS sockets
	@$(BIN)/python -m benchmarks.wire $(ARGS)

bench-train: .venv-peers/.ready  ## a training step of the paper's plan against DGL and plain PyTorch
	@.venv-peers/bin/python -W ignore -m benchmarks.train $(ARGS)

bench-unseen: $(READY)  ## the certified plan on graphs that nobody tuned for
	@$(BIN)/python -m benchmarks.unseen $(ARGS)

bench-utility: $(READY)  ## every method at every epsilon on the public sets; ARGS=--table writes the page
	@$(BIN)/python -m benchmarks.utility $(ARGS)

.venv-peers/.ready: constraints.txt benchmarks/requirements-peers.txt
	@echo "vesper: setting up .venv-peers with the libraries we compare with"
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . -r benchmarks/requirements-peers.txt
	@touch $@

api-page: $(READY)  ## write the reference in docs/api.md from signatures and docstrings
	@$(BIN)/python tests/docs/test_api_page.py

study-page: $(READY)  ## run every study of the paper with --small and write docs/study-small.md; ARGS="--out DIR"
	@$(BIN)/python -m benchmarks.study_page $(ARGS)

audit-page: $(READY)  ## audit both plans with three seeds and write docs/audit.md; ARGS=--again forgets old results
	@$(BIN)/python -m benchmarks.audit $(ARGS)

attack-page: $(READY)  ## node membership under each protection: the table in docs/attacks.md
	@$(BIN)/python -m benchmarks.membership $(ARGS)

chaos: $(READY)  ## kill, fill, cut off and lie to real runs for an hour; ARGS="--minutes 5"; resumable
	@$(BIN)/python -m chaos $(ARGS)

proof-read: $(READY)  ## note that the proof of CLAIM was read against the code as it is
	@$(BIN)/python tests/docs/test_proofs_are_current.py $(CLAIM)

clean:  ## remove the environment and caches
	rm -rf $(VENV) .venv-docs .mypy_cache .ruff_cache .pytest_cache demo site
