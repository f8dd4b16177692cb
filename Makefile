# Every command sets up what it needs. `make` alone lists them.

PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
else
  BIN := $(VENV)/bin
endif
RUN := $(BIN)/python -m
# Python compiles what it imports when it does, a small part of what is installed.
INSTALL := $(RUN) pip install --disable-pip-version-check --no-compile
# Material's notice about its successor: CONTRIBUTING.md says what we do about it.
export NO_MKDOCS_2_WARNING := 1
# Without bytecode each process compiles torch and MkDocs again, for two seconds or more.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait, for a browser or another process, for a third of the time: one process more than there are processors.
PROCESSES := $(shell $(PYTHON) -c "import os; print(1 + (os.cpu_count() or 1))")

.DEFAULT_GOAL := help
.PHONY: help serve build results test packages rounding nightly browser-test zensical ci browsers method goldens dates experiments census bench notebooks tag checker versions fresh mutants lock advisories bill newest font clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## / - /'

serve: $(VENV)/site ## read the site at http://127.0.0.1:8000, rebuilt as you edit
	$(RUN) executable_prose serve

build: $(VENV)/site ## build the site into site/, strictly, and only if it is whole
	$(RUN) executable_prose build

results: $(VENV)/site ## bring what exhibits, diagrams and labs give up to date
	$(RUN) executable_prose results

test: $(VENV)/test ## check style, bring results up to date, then run every test that needs no browser
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) codespell_lib
	$(if $(BUILT),,$(RUN) executable_prose results)
	$(RUN) pytest -m "not browser and not slow" --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder

packages: $(VENV)/test ## run the tests of the engine and of the checker alone
	$(RUN) pytest packages/*/tests -m "not browser and not slow" --numprocesses auto --dist loadfile

# Where floats are computed and printed, and how other processors round them: instructions, BLAS, threads.
FLOATS := tests/exhibits tests/snippets tests/experiments tests/labs tests/docs tests/test_peers.py
ROUNDINGS := ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=COMPATIBLE TEST_THREADS=2

rounding: $(VENV)/test ## run some tests that compare floats with the arithmetic of another processor
	ATEN_CPU_CAPABILITY=avx2 $(RUN) pytest tests/exhibits/test_printed.py tests/exhibits/test_returned.py --cold \
	  -k "not is_read_by_a_test" --numprocesses auto --dist loadfile

# What `make ci` has built while it installed is not built again by each of its checks.
BUILT :=
BUILD := $(if $(BUILT),,build)

BROWSER := pytest tests/site tests/workflows packages/check-positions --numprocesses $(PROCESSES) --dist worksteal --reruns 1 -r fER

browser-test: $(VENV)/test tests/site/node_modules/.installed $(BUILD) ## open every page in Chromium and check it
	$(RUN) $(BROWSER) -m "browser and not slow"

zensical: export SITE_DIR := .cache/zensical
zensical: $(VENV)/test tests/site/node_modules/.installed ## build with what succeeds Material, and check that all is as it is known to be
	$(RUN) executable_prose build $(SITE_DIR) zensical
	$(RUN) pytest tests/site -m "browser and not slow" -r fER --ignore-glob "*_can_fail.py" --ignore-glob "*_graph.py"

nightly: $(VENV)/test tests/site/node_modules/.installed $(BUILD) ## all tests, slow ones included, and no cache believed
	$(RUN) pytest -m "not browser" --cold --numprocesses auto --dist loadfile
	set -e; for each in $(ROUNDINGS); do \
	  env $$each $(RUN) pytest $(FLOATS) -m "not browser and not slow" --cold --numprocesses auto --dist loadfile; done
	$(RUN) $(BROWSER) -m browser --cold

CHECKS ?= test rounding browser-test
APT := apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

# The site as it is published: with links to its sources, which bring scripts and buttons of their own.
ci: export REPOSITORY_URL ?= https://github.com/example/guide
ci: export EDIT_URI ?= edit/main/docs/
ci: export EXECUTE_NOTEBOOKS = true
ci: export SITE_URL ?= https://example.github.io/guide/
ci: ## what must pass before a change lands; needs Python, make, git and Node, or `make ci CHECKS=nightly`
	$(PYTHON) tests/lines.py
	$(PYTHON) tests/commit_titles.py
	$(MAKE) --jobs browsers $(VENV)/test tests/site/node_modules/.installed build
	$(MAKE) BUILT=yes $(CHECKS)

browsers:
	@command -v chromium || command -v google-chrome || { $(APT) chromium >/dev/null; }
	@case "$(CHECKS)" in *nightly*) command -v firefox || command -v firefox-esr || { $(APT) firefox-esr >/dev/null; };; esac

method: ## list what a method still lacks, as in `make method NAME=my_method`
	@$(PYTHON) tests/lacking.py $(NAME)

goldens: $(VENV)/test ## store anew what exhibits give, how far snippets are from peers, and llms.txt
	$(RUN) pytest tests/exhibits tests/docs/test_llms.py --rewrite-goldens
	$(RUN) pytest tests/snippets packages/check-positions -m peer --rewrite-goldens

dates: $(VENV)/site ## write into the head of each snippet when its code last changed
	$(RUN) guide.copies

experiments: $(VENV)/test ## train again what is missing or was made by other code; goes on where it was stopped
	$(RUN) experiments

census: $(VENV)/test ## ask every model of the pinned transformers again what it does with positions; goes on where it was stopped
	$(RUN) experiments.census

bench: $(VENV)/test ## build times beside goals, page weights, and how fast the snippets are beside their peers
	$(BIN)/python tests/bench

notebooks: ## push the notebooks to a branch that Colab and Binder open: make notebooks REMOTE=https://...
	rm -rf .cache/branch
	PYTHONPATH=packages/executable-prose/src $(PYTHON) -m guide.notebooks .cache/branch
	@cd .cache/branch && git init --quiet --initial-branch notebooks && git add . && \
	  git -c user.name=build -c user.email=build@localhost commit --quiet --message Notebooks && \
	  git push --quiet --force "$$REMOTE" notebooks

tag: ## tag this commit with the newest date in CHANGES.md, if no tag has it: make tag REMOTE=origin
	@date=$$(sed -n 's/^## //p' CHANGES.md | head -n 1) && \
	  { git ls-remote --exit-code --tags "$$REMOTE" "$$date" || git push "$$REMOTE" "HEAD:refs/tags/$$date"; }

checker: $(VENV)/site ## build the sdist and the wheel of check-positions into dist/; fails if TAG is given and names another version
	@cd packages/check-positions && version=$$(../../$(BIN)/python -m hatchling version) && \
	  { [ "$${TAG:-check-positions-v$$version}" = "check-positions-v$$version" ] || \
	    { echo "TAG must be check-positions-v$$version, the version in pyproject.toml, got $$TAG" >&2; exit 1; }; }
	rm -rf dist
	cd packages/check-positions && ../../$(BIN)/python -m hatchling build --target sdist --target wheel --directory ../../dist

TRANSFORMERS ?= 4.57.6
versions: $(VENV)/test ## check models with another version of transformers: make versions TRANSFORMERS=5.24.0
	$(INSTALL) --quiet --upgrade --target .cache/versions/$(TRANSFORMERS) transformers==$(TRANSFORMERS)
	PYTHONPATH=.cache/versions/$(TRANSFORMERS) $(RUN) pytest packages/check-positions/tests/test_versions.py --numprocesses auto

fresh: $(VENV)/site ## refuse to publish speeds and costs that are older than their code
	$(RUN) experiments.fresh

mutants: $(VENV)/test ## change each snippet in small ways and see that a test notices each time
	$(BIN)/python tests/mutants.py

TOOLS := $(BIN:$(VENV)/%=$(VENV)/tools/%)
LOCK := $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-header --no-annotate \
  --no-emit-package torch --no-emit-package positional-encoding-guide --no-emit-package executable-prose

LOCKS := requirements.lock requirements-test.lock tests/bench/requirements.lock .github/requirements.lock
AUDIT := $(TOOLS)/pip-audit --disable-pip --no-deps

lock: $(VENV)/tools/.installed ## write down all packages that are installed, with hashes, after a requirement changed
	cat requirements.lock requirements-test.lock > $(VENV)/lock.txt # versions stay where they may
	$(LOCK) requirements.txt requirements-test.txt --output-file $(VENV)/lock.txt
	$(LOCK) requirements.txt --constraint $(VENV)/lock.txt --output-file requirements.lock
	awk 'NR == FNR {site[$$0]; next} /^[^ ]/ {more = !($$0 in site)} more' requirements.lock $(VENV)/lock.txt > requirements-test.lock
	$(LOCK) tests/bench/requirements.txt --constraint $(VENV)/lock.txt --output-file tests/bench/requirements.lock
	printf '%s\n' cyclonedx-bom==7.5.0 pip-audit==2.10.1 uv==0.13.9 | $(LOCK) - --output-file .github/requirements.lock

advisories: $(VENV)/tools/.installed ## ask whether anything known speaks against a package that is locked
	$(AUDIT) $(foreach lock,$(LOCKS),--requirement $(lock))

bill: $(VENV)/tools/.installed ## write the bill of materials of what the site is built with beside it
	$(TOOLS)/cyclonedx-py requirements --output-reproducible --output-file site/bom.json requirements.lock

newest: $(VENV)/test ## test with the newest version of every package: what will break
	rm $(VENV)/locked $(VENV)/torch $(VENV)/test # whatever comes next installs what is locked
	sed -n 's/==.*//p' requirements.txt requirements-test.txt | xargs $(INSTALL) --upgrade
	$(RUN) pytest -m "not browser and not slow" --numprocesses $(PROCESSES) --dist loadfile

font: $(VENV)/test ## cut the fonts again (it needs npm)
	$(RUN) guide.math_font
	$(RUN) guide.text_fonts

clean: ## remove what was built and cached; the environment stays
	rm -rf site dist .cache

# A mark is made last, so that an interrupted set-up starts again.
# torch alone is not held to a hash: each system and each index has builds of its own.
$(VENV)/site: requirements.txt pyproject.toml packages/executable-prose/pyproject.toml $(VENV)/locked $(VENV)/torch
	$(INSTALL) --no-build-isolation --requirement requirements.txt
	touch $@

# These two share no package, and run at once where make may.
$(VENV)/locked: requirements.lock $(VENV)/made
	$(INSTALL) --no-deps --require-hashes --requirement requirements.lock
	touch $@

$(VENV)/torch: requirements.txt $(VENV)/made
	$(INSTALL) --no-deps "$$(grep '^torch==' requirements.txt)"
	touch $@

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5) and "Python 3.11.5 or newer is needed; make PYTHON=... names another one")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/test: requirements-test.lock $(VENV)/site
	$(INSTALL) --no-deps --require-hashes --requirement requirements-test.lock
	touch $@

# What no code of ours imports, apart from what it does.
$(VENV)/tools/.installed: .github/requirements.lock $(VENV)/site
	$(BIN)/python -m venv $(VENV)/tools
	$(TOOLS)/python -m pip install --disable-pip-version-check --no-deps --require-hashes --requirement .github/requirements.lock
	touch $@

tests/site/node_modules/.installed: tests/site/package-lock.json
	cd tests/site && npm ci --no-audit --no-fund
	touch $@
