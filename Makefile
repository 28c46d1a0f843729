# Two commands open the README: `make serve` and `make test`. Each sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# What is never imported need not be compiled, which takes half of the time of an installation.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# A lock is complete. Left to resolve it, the pip that comes with Python 3.11 refuses it once there is a
# newer version of what another package asks for with an extra (coverage[toml]).
LOCKED := --require-hashes --no-deps

# Who has Python write no bytecode beside the sources gets it below build/: tests start hundreds of brokers and
# commands, and each would take a second longer to compile what the one before has compiled.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
endif

CHECKS := check-types check-words check-style check-imports
.PHONY: setup setup-dev setup-audit setup-spark setup-gssapi serve test test-all test-fast coverage check $(CHECKS) \
	compiled-tests checked-and-compiled audit-demo bench bench-quick bench-gateway attack bench-audit messages lock release clean

setup: $(VENV)/.runtime

setup-dev: $(VENV)/.dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "aclbroker needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements/runtime.lock pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) $(LOCKED) -r requirements/runtime.lock
	$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.runtime
	$(PIP_INSTALL) $(LOCKED) -r requirements/dev.lock
	@touch $@

# The extra for the audit of small logs, without Java.
setup-audit: $(VENV)/.audit

$(VENV)/.audit: requirements/audit.lock $(VENV)/.runtime
	$(PIP_INSTALL) $(LOCKED) -r requirements/audit.lock
	@touch $@

# The extra for the audit of logs of any size; Spark runs on Java 17 or newer.
setup-spark: $(VENV)/.spark

$(VENV)/.spark: requirements/spark.lock $(VENV)/.dev
	$(PIP_INSTALL) $(LOCKED) -r requirements/spark.lock
	@touch $@

# The extra for Kerberos is built here. Where its headers are not (Debian: gcc, libkrb5-dev), the
# tests that need it are skipped.
setup-gssapi: setup-dev
	@if command -v krb5-config >/dev/null && command -v cc >/dev/null; then \
		$(MAKE) --no-print-directory $(VENV)/.gssapi; \
	else \
		echo "without the extra gssapi: krb5-config and a C compiler are not installed"; \
	fi

$(VENV)/.gssapi: requirements/gssapi.lock $(VENV)/.dev
	$(PIP_INSTALL) $(LOCKED) -r requirements/gssapi.lock
	@touch $@

# `make serve ARGS="server.properties --override node.id=7"`
serve: setup
	$(BIN)/aclbroker serve $(ARGS)

check: setup-dev
	@$(MAKE) --no-print-directory -j2 $(CHECKS)

check-style:
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

check-types:
	$(BIN)/mypy

check-imports:
	$(BIN)/lint-imports --no-logo

check-words:
	$(BIN)/python tools/check_words.py --lower

# Compiles all tests once, so that not each process of pytest does it. The run of the tests reports errors.
compiled-tests: setup-spark
	@$(BIN)/pytest --collect-only --quiet >/dev/null 2>&1 || true

# The extras are installed while the checks run, which need none of them. Two commands run at a time, because
# each uses one core.
checked-and-compiled: setup-dev
	@$(MAKE) --no-print-directory -j2 setup-spark $(CHECKS) $(if $(ARGS),,compiled-tests) setup-gssapi

# Processes among which the tests are divided, by tests/support/scheduling.py.
# They wait for other programs half of the time, so that two or three would leave two cores idle.
WORKERS ?= 4

# What a contributor has to know, in ten minutes on two cores. `make test ARGS="tests/acl -x"` runs some tests.
test: checked-and-compiled setup-spark setup-gssapi
	$(BIN)/pytest -n $(WORKERS) --daily $(ARGS)

# Everything, in 35 minutes: every case of every table, each job of the audit on both engines, and new
# installations. CI runs this.
# The thorough tests are busy themselves: a fourth process would make others wait too long for an answer.
test-all: WORKERS := 3
test-all: checked-and-compiled setup-spark setup-gssapi
	$(if $(ARGS),,MEASURE=1) $(BIN)/pytest -n $(WORKERS) $(ARGS)

# The tests that need no broker, JVM or client and go through few cases, in a minute. Two processes
# are enough, because these tests wait for nothing. Spark is not downloaded.
test-fast: WORKERS := 2
test-fast: setup-dev
	$(BIN)/pytest -n $(WORKERS) --fast $(ARGS)

# The branch coverage of everything, in an hour. `make test-all` prints that of the folders that decide.
coverage: checked-and-compiled setup-spark setup-gssapi
	$(BIN)/pytest -n $(WORKERS) --cov --cov-report=json:build/coverage.json

# This broker beside Kafka and kfake; writes benchmarks/RESULTS.md and a plot. With ARGS="--rounds 3" it takes
# three quarters of an hour. `make bench ARGS="--only describe"` measures some rows, and prints alone;
# `--only ask` those of questions about all requests, which take some minutes.
bench: setup-dev
	$(BIN)/python -m benchmarks $(ARGS)

# The same with fewer rounds and sizes, in three minutes; prints alone.
bench-quick: setup-dev
	$(BIN)/python -m benchmarks --quick $(ARGS)

# The gateway beside a proxy in C and a direct connection to the same Kafka, in half an hour; needs cc, Java
# and Maven. Writes benchmarks/GATEWAY.md. `make bench-gateway ARGS="--quick --only small"` prints alone.
bench-gateway: setup-dev
	$(BIN)/python -m benchmarks.gateway $(ARGS)

# How long a client waits while others do their worst, and what memory and log that takes, beside Kafka,
# in half an hour; prints alone. `make attack ARGS="--only attacked-by-tags"` measures some rows.
attack: setup-dev
	$(BIN)/python -m benchmarks --only attacked $(ARGS)

# The audit pipeline beside Spark's own scan and DuckDB, in about half an hour; 30 GB of build/.
bench-audit: setup-spark
	$(BIN)/python -m benchmarks.audit --large $(ARGS)

# The audit pipeline on 1 M made-up events: every job, one HTML report in build/audit-demo/report.
audit-demo: setup-spark
	rm -rf build/audit-demo
	$(BIN)/python tools/generate_audit.py build/audit-demo --events 1000000 --days 28 \
		--principals 2000 --topics 5000 --groups 1000 --acls 20000 --forged 200 --group-members 0.02
	$(BIN)/aclbroker audit all --input build/audit-demo/log --acls build/audit-demo/acls.yaml \
		--proposed build/audit-demo/proposed.yaml --other build/audit-demo/proposed.yaml \
		--super-user User:admin --output build/audit-demo/report $(ARGS)

# Reads Kafka's message specifications from the kafka-clients jars and rewrites src/aclbroker/protocol/messages.
messages: setup-dev
	$(BIN)/python tools/generate_messages.py
	$(BIN)/ruff check --quiet --fix src/aclbroker/protocol/messages
	$(BIN)/ruff format --quiet src/aclbroker/protocol/messages

lock: setup-dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		pyproject.toml requirements/build.in -o requirements/runtime.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group dev -c requirements/runtime.lock pyproject.toml -o requirements/dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--extra gssapi -c requirements/runtime.lock pyproject.toml -o requirements/gssapi.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--extra audit -c requirements/runtime.lock -c requirements/dev.lock pyproject.toml -o requirements/audit.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--extra spark -c requirements/runtime.lock -c requirements/dev.lock pyproject.toml -o requirements/spark.lock

# `make release VERSION=1.2.0`; with DRY_RUN=1 in a clone that is thrown away. See CONTRIBUTING.md.
release: setup-dev
	$(BIN)/python tools/release.py $(VERSION) $(if $(DRY_RUN),--dry-run)

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
