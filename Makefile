# Set-up is part of every target: `make demo` and `make test` work on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
RUN := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/python
# one thread a process: the tests run in as many processes as there are cores, those that share what is slow to make in
# one (tests/conftest.py says which), in the order of their folders, but for the long ones, which begin. Bytecode is kept
# even where the environment says otherwise: a thousand processes are started, and each would compile the packages
TESTS ?= -n auto --dist loadgroup --no-loadscope-reorder
ONCE := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
# the inner loop: the checks' engine, the worker's wire and values, how an answer is read, and three exercises
QUICK := tests/kit/engine tests/kit/worker/test_wire.py tests/kit/worker/test_values.py \
	tests/kit/submission/test_parse.py tests/kit/submission/test_static_rules.py \
	tests/course/test_attention.py tests/course/test_patches.py tests/course/test_vit.py

.PHONY: demo test test-all quick proof proof-changed exercise lesson data notebooks figures site site-check check bench colab bounds install clean

demo: install
	$(RUN) -m vit_course demo --out demo

# all but the proofs
test: install check
	$(ONCE) $(RUN) -m pytest $(TESTS)

# before a release: the proofs, too. What runs in the sandbox is not measured, for it inherits nothing of a test's
test-all: install check
	$(ONCE) $(RUN) -m pytest $(TESTS) --all --cov --cov-report=term --cov-fail-under=90
	$(RUN) -m tests.proof.stamps --write

# over all known mistakes, mutants and attacks, and the long roads; the stamps say for which code they have run
proof: install
	$(ONCE) $(RUN) -m pytest $(TESTS) -m proof
	$(RUN) -m tests.proof.stamps --write

# the proofs of what has changed since the stamps: of some exercises, of everything where the machinery has
proof-changed: install
	changed="$$($(RUN) -m tests.proof.stamps)"; case "$$changed" in \
	"") echo "Nothing to prove: no exercise has changed since the last proof." ;; \
	everything) $(ONCE) $(RUN) -m pytest $(TESTS) -m proof ;; \
	*) $(ONCE) $(RUN) -m pytest $(TESTS) -m proof -k "$$changed" ;; esac

quick: install
	$(ONCE) $(RUN) -m pytest $(TESTS) $(QUICK)

# one exercise, after an edit of its folder: make exercise NAME=patchify. What follows from it is built, then it is proven
exercise: install
	$(RUN) -m vit_course build
	$(RUN) -m tests.proof.second_mistakes $(NAME) --points
	$(ONCE) $(RUN) -m pytest $(TESTS) --all -k "$(NAME) or test_clauses or test_in_training or is_a_heading" tests/course

# one lesson: make lesson NAME=11_topic
lesson: install
	$(RUN) -m vit_course build
	$(ONCE) $(RUN) -m pytest $(TESTS) --all -k "$(NAME) or test_clauses or has_a_ground or was_timed or build_on_one_another" \
		tests/course tests/kit/sandbox/test_package_view.py

data: install
	$(ONCE) $(RUN) -m pytest $(TESTS) tests/course/data tests/course/recipes

notebooks: install
	$(RUN) -m vit_course build
	$(RUN) docs/cheat_sheet.py

figures: install
	$(RUN) figures/draw_all.py

# the site, in build/site/html; nothing is fetched for it
site: install
	$(RUN) docs/site/make_site.py build/site

# the same, then every link and picture of it, and some pages in a browser; `make test` looks at a part of it
site-check: site
	$(ONCE) VIT_COURSE_SITE="$(CURDIR)/build/site/html" $(RUN) -m pytest tests/e2e/test_site.py

check: install
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(RUN) -m vit_course build --check

# make bench DATA=path/to/cifar10.npz DATA100=path/to/cifar100.npz RECIPES="cpu-minute cpu-coffee" WEIGHTS=path/to/best.safetensors
# Without DATA and DATA100 what trains on CIFAR-10 or CIFAR-100 is left out, without RECIPES no recipe is trained, and without WEIGHTS nobody
# measures how far a trained model looks. What has its log is not trained again.
bench: install
	$(RUN) benchmarks/grading.py
	$(RUN) benchmarks/attacks.py
	$(RUN) benchmarks/proof.py
	$(RUN) benchmarks/models.py
	$(RUN) benchmarks/loops.py
	$(if $(DATA),$(RUN) benchmarks/broken_vit.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/broken_vit.py --data "$(DATA)" --selection classics)
	$(if $(DATA),$(RUN) benchmarks/fair_bet.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/lesson_cifar.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/modern.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/short_lessons.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/lesson_modern.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/inside.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/training_tools.py --data "$(DATA)")
	$(if $(DATA),$(RUN) benchmarks/hand_in.py --data "$(DATA)")
	$(if $(DATA100),$(RUN) benchmarks/fine_tuning.py --data "$(DATA100)")
	$(if $(RECIPES),$(RUN) benchmarks/recipes.py $(addprefix --recipe ,$(RECIPES)))
	$(if $(and $(DATA),$(WEIGHTS)),$(RUN) benchmarks/attention_distance.py --weights "$(WEIGHTS)" --data "$(DATA)")
	$(RUN) -m vit_course build

# every lesson under Colab's packages; a test asks for it when our dependencies or theirs have changed
colab: install
	$(ONCE) $(RUN) benchmarks/colab.py $(if $(DATA),--data "$(dir $(DATA))")

# whether the lowest and the highest versions that pyproject.toml allows grade; a test asks for it when these have changed
bounds: install
	$(ONCE) $(RUN) benchmarks/bounds.py

# by uv in a minute or two; by pip, which takes five times as long, where uv does not find what a pip of yours is set up for
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PACKAGES := --constraint constraints.txt --editable ".[dev]"

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vit_course needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@echo "Setting up $(VENV): once, a minute or more, several gigabytes (PyTorch)."
	$(PYTHON) -m venv $(VENV)
	$(PIP) uv && $(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --compile-bytecode $(PACKAGES) || $(PIP) $(PACKAGES)
	touch $(VENV)/installed

clean:
	rm -rf $(VENV) demo .cache
