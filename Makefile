# Every target sets up what it needs: a virtual environment in .venv, with margrave and that target's extras in it.
# Needs only make and a Python of at least 3.11 (with its venv module). Another Python: make test PYTHON=/path/to/python

VENV   ?= .venv
BIN    := $(VENV)/bin
PYTHON ?=

.PHONY: help demo docs dist lock versions test check fast slow browser one trust trust-page bench adaptive public transport leaderboard clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    synthesize a public table of 336,776 flights at epsilon = 1, with a report (about two minutes)"
	@echo "make test    formatting, lint, types, language, and every fast test"
	@echo "make check   formatting, lint, types and language alone"
	@echo "make one NAME=star  the checks of one mechanism"
	@echo "make slow    the tests that take minutes, and further forms and units of mechanisms"
	@echo "make browser  the reports in Chromium: no request, no overflow, keyboard, print, accessibility"
	@echo "make trust   the long tests, written to docs/trust-results.md (most of a day; TRUST_MINUTES=30 shares out thirty,"
	@echo '             TRUST="--jobs 2" runs two processes at a time, TRUST="--only fuzz --loaders csv" a piece)'
	@echo "make trust-page  count again how many lines changed since each was run, into docs/trust-results.md"
	@echo "make bench   the benchmarks (see benchmarks/)"
	@echo "make leaderboard  every mechanism on AIM's tables, into docs/research/leaderboard.md (hours; MINUTES=30 for part)"
	@echo "make adaptive  the adaptive mechanisms on their paper's tables, into docs/research/adaptive.md (hours; MINUTES=30 for part)"
	@echo "make public    public data on the tables of the JAM-PGM paper, into docs/research/jam.md (hours; MINUTES=30 for part)"
	@echo "make transport  PrivPGD and others on its paper's tables, into docs/research/transport.md (hours; MINUTES=30 for part)"
	@echo "make docs    run the notebooks, and make the documentation as a site, into site/; fails at a broken link"
	@echo "make dist    wheel and source distribution, into dist/; fails if a file in them is missing or too many"
	@echo "make lock    the versions of all dependencies, into requirements/"
	@echo "make versions  a part of the tests with the lowest and the highest dependencies, on Python 3.11 to 3.14"
	@echo "make clean   remove .venv and what the targets made"

demo: $(VENV)/.ready-demo
	$(BIN)/python examples/demo.py

test: $(VENV)/.ready-dev
	$(MAKE) -j2 check fast

check: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.support.language

fast: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -q -n 2

one: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -q tests/testing/test_mechanisms.py tests/mechanisms/test_conformance.py \
	  tests/mechanisms/test_replay.py tests/mechanisms/test_noninterference.py tests/cli/test_mechanism.py -k "$(NAME)"

slow: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -q -m slow

browser: $(VENV)/.ready-dev $(VENV)/.ready-browser
	$(BIN)/python -m pytest -q -m browser

trust: $(VENV)/.ready-dev
	$(BIN)/python -m tests.support.trust $(TRUST)

trust-page: $(VENV)/.ready-dev
	$(BIN)/python -m tests.support.trust --page

bench: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks run speed --only stage=default --fresh
	$(BIN)/python -m benchmarks page speed

leaderboard: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks run leaderboard $(if $(MINUTES),--minutes $(MINUTES))
	$(BIN)/python -m benchmarks page leaderboard

adaptive: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks run adaptive --only stage=default $(if $(MINUTES),--minutes $(MINUTES))
	$(BIN)/python -m benchmarks page adaptive

public: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks run public --only stage=default $(if $(MINUTES),--minutes $(MINUTES))
	$(BIN)/python -m benchmarks page public

transport: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks run transport $(if $(MINUTES),--minutes $(MINUTES))
	$(BIN)/python -m benchmarks page transport

# Zensical builds a page outside the navigation without a warning.
docs: $(VENV)/.ready-docs
	$(BIN)/python mkdocs_notebooks.py
	@cd docs && for page in $$(find * -name '*.md'); do \
	  grep -q ": $$page\$$" ../mkdocs.yml || { echo "docs/$$page is not in the nav of mkdocs.yml. Add it." >&2; exit 1; }; \
	done
	$(BIN)/zensical build --clean --strict

dist: $(VENV)/.ready-dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tests.support.distributions dist

# No address of an index, so that the files hold for any. The lowest versions are those of the oldest Python.
lock: $(VENV)/.ready-lock
	$(BIN)/uv pip compile --quiet --upgrade --custom-compile-command "make lock" --no-emit-index-url --universal \
	  --python-version 3.11 --all-extras --generate-hashes pyproject.toml -o requirements/lock.txt
	$(BIN)/uv pip compile --quiet --upgrade --custom-compile-command "make lock" --no-emit-index-url --no-annotate \
	  --python-version 3.11 --extra dev --resolution lowest-direct pyproject.toml -o requirements/lowest.txt

versions: $(VENV)/.ready-lock
	$(BIN)/python -m tests.support.versions $(VERSIONS)

$(VENV)/.ready-%: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

# Not every name on the path that looks like a Python runs, or is new enough, so each candidate is asked.
$(VENV)/.made:
	@python=""; \
	for name in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	  if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python="$$name"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "margrave needs Python 3.11 or newer, and none was found. Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$("$$python" --version)"; \
	if ! "$$python" -m venv $(VENV); then \
	  echo "This Python cannot make a virtual environment. On Debian and Ubuntu, install the package python3-venv." >&2; \
	  rm -rf $(VENV); exit 1; \
	fi
	@touch $@

clean:
	rm -rf $(VENV) .versions demo-output dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
