# The two commands that matter: `make demo` sets up and runs the main job, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
FLAG_VENV ?= .venv-flag

# A service is a dozen processes that import the same packages: compiled once, each starts in a third of the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-flag check fast lock clean

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tactician needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python has no venv module here: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

demo: $(VENV)/.ready
	@$(BIN)/tactician demo

# Unit tests wait for disks, servers and processes half of the time: two run at once, file by file.
# The serve tests share one Ray cluster, and time what it does.
test: check
	$(BIN)/pytest -n 2 --dist loadfile tests/unit
	$(BIN)/pytest tests/serve

fast: check
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not serve" tests/unit

# The FlagEmbedding adapters, in an environment of their own: torch and its kind take 1.8 GB, of which
# uv links what the first environment has too.
$(FLAG_VENV)/.ready: $(VENV)/.ready
	@$(PYTHON) -m venv --without-pip $(FLAG_VENV)
	@$(BIN)/uv pip install --quiet --python $(FLAG_VENV)/bin/python --constraint requirements.lock \
		$(addprefix --find-links ,$(PIP_FIND_LINKS)) --editable ".[flag]" \
		pytest pytest-asyncio pytest-timeout
	@touch $@

test-flag: $(FLAG_VENV)/.ready
	HF_HUB_OFFLINE=1 $(FLAG_VENV)/bin/python -m pytest tests/unit/skills/encoders/test_flag.py \
		tests/unit/skills/scorers/test_flag.py

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock:
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
		--no-emit-index-url --no-header -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) $(FLAG_VENV)
