# Everything a fresh Debian or Ubuntu machine (x86-64 or aarch64) needs is set up by these targets, from
# Python >= 3.11, make and git alone:
#
#   make demo     a photograph, two image programs, the default device; prints a table
#   make test     environment, OpenCL platform where one can be installed, then lint, types and tests
#
# A second call reinstalls nothing: the marks under .venv/ say what is there.

VENV   := .venv
PYTHON_IN_VENV := $(VENV)/bin/python
PIP    := $(PYTHON_IN_VENV) -m pip --disable-pip-version-check
JOBS   ?= 2
PYTEST_ARGS ?=

.PHONY: help demo test lint types unit long bench docs opencl dev clean distclean

help:
	@echo 'make demo       set up, then run the demonstration (needs no compiler, GPU or OpenCL)'
	@echo 'make test       set up, then lint, type-check and run the test suite'
	@echo 'make lint       ruff and mypy only'
	@echo 'make unit       the test suite only; PYTEST_ARGS="tests/arith -x" narrows it'
	@echo 'make long       the suites that take minutes'
	@echo 'make bench      measure on this machine, record under benchmarks/results'
	@echo 'make docs       check that the examples and links in README.md and docs/ hold'
	@echo 'make opencl     try (again) to install an OpenCL platform for the CPU and its checker'
	@echo 'make clean      remove caches and output; distclean removes the environment too'

# -- the jobs ---------------------------------------------------------------------------------------------

demo: $(VENV)/.has-demo
	$(PYTHON_IN_VENV) examples/demo.py

test: $(VENV)/.has-dev $(VENV)/.tried-opencl lint unit

lint: $(VENV)/.has-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

unit: $(VENV)/.has-dev
	$(PYTHON_IN_VENV) -m pytest -q -n $(JOBS) $(PYTEST_ARGS)

long: $(VENV)/.has-dev
	$(PYTHON_IN_VENV) -m pytest -q -n $(JOBS) -m long $(PYTEST_ARGS)

bench: $(VENV)/.has-dev
	$(PYTHON_IN_VENV) -m benchmarks

docs: $(VENV)/.has-dev
	$(PYTHON_IN_VENV) -m pytest -q tests/test_documentation.py

dev: $(VENV)/.has-dev

# -- set-up -----------------------------------------------------------------------------------------------

$(PYTHON_IN_VENV):
	tools/make_venv $(VENV)

$(VENV)/.has-demo: pyproject.toml | $(PYTHON_IN_VENV)
	@echo 'installing lithify and what the demonstration needs ...'
	$(PIP) install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.has-dev: pyproject.toml | $(PYTHON_IN_VENV)
	@echo 'installing lithify and the development tools ...'
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.has-demo

# Never fails: without a platform the OpenCL tests are skipped and the summary says so.
$(VENV)/.tried-opencl: | $(PYTHON_IN_VENV)
	tools/opencl_platform
	@touch $@

opencl: | $(PYTHON_IN_VENV)
	tools/opencl_platform
	@touch $(VENV)/.tried-opencl

clean:
	rm -rf build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
