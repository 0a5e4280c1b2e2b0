# The same targets for a newcomer, a contributor and CI. Each works from a bare checkout with Python 3.11+, pip and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: run test test-embedded test-heavy lint bench requirements reference clean

run: $(VENV)/.embedded
	@$(BIN)/python examples/main_job.py

test: $(VENV)/.dev
	@$(BIN)/python -m pytest -n 2 -q

test-embedded: $(VENV)/.dev
	@$(BIN)/lollms models pull
	@$(BIN)/lollms models pull smollm2-135m-instruct
	@LOLLMS_TEST_MODELS="$$($(BIN)/lollms models home)" $(BIN)/python -m pytest -q -m "embedded and not heavy" -p no:randomly tests/embedded

# Minutes to hours: ten ways of asking the main question, a whole gateway in front of a real server, and whatever else no contributor
# waits for. The gateway gets an environment of its own.
test-heavy: $(VENV)/.dev $(VENV)-gateway/.ready
	@$(BIN)/lollms models pull
	@$(BIN)/lollms models pull smollm2-135m-instruct
	@LOLLMS_TEST_MODELS="$$($(BIN)/lollms models home)" LOLLMS_TEST_LITELLM="$(abspath $(VENV))-gateway/bin/litellm" \
		$(BIN)/python -m pytest -q -m heavy -s -p no:randomly

lint: $(VENV)/.dev
	@$(BIN)/ruff check src tests benchmarks examples ai_documentation
	@$(BIN)/ruff format --check -q src tests benchmarks examples ai_documentation
	@$(BIN)/mypy
	@$(BIN)/python ai_documentation/generate.py --check
	@$(BIN)/python -m pytest -q tests/architecture

bench: $(VENV)-bench/.ready
	@$(VENV)-bench/bin/python -m benchmarks

requirements: $(VENV)/.dev
	@$(BIN)/python -m tests.requirements_table

reference: $(VENV)/.dev
	@$(BIN)/python ai_documentation/generate.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("lollms_client needs Python 3.11 or newer; this is " + sys.version)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.embedded: pyproject.toml | $(VENV)/bin/python
	@echo "Installing lollms_client with its embedded model runtime into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[embedded]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "Installing lollms_client with its development tools into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[embedded,dev]'
	@touch $@ $(VENV)/.embedded

# The peers get an environment of their own, so that what they need is not taken for what we need.
$(VENV)-bench/.ready: pyproject.toml
	@$(PYTHON) -m venv $(VENV)-bench
	@echo "Installing lollms_client and the peers into $(VENV)-bench ..."
	@$(VENV)-bench/bin/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)-gateway/.ready:
	@$(PYTHON) -m venv $(VENV)-gateway
	@echo "Installing the LiteLLM proxy into $(VENV)-gateway ..."
	@$(VENV)-gateway/bin/python -m pip install -q --disable-pip-version-check 'litellm[proxy]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-bench $(VENV)-gateway build .pytest_cache .mypy_cache .ruff_cache .hypothesis
