# Everything the project does, by name. Caches live in the user's cache folder; nothing is written beside the sources.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/triton-operator
VENV := $(CACHE)/venv-$(shell sha256sum requirements/dev.txt | cut -c1-12)
export PATH := $(VENV)/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/operator:$(CURDIR)/converters:$(CURDIR)

.PHONY: help venv lock
help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

venv: $(VENV)/.done ## The development environment, from the lock file
$(VENV)/.done: requirements/dev.txt
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --require-hashes -r requirements/dev.txt
	touch $@

lock: ## Resolve the dependencies of pyproject.toml anew
	for extra in operator converters; do \
	  uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --extra $$extra pyproject.toml -o requirements/$$extra.txt; done
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --all-extras pyproject.toml -o requirements/dev.txt

.PHONY: cluster-up cluster-down cluster-binaries
cluster-up: ## A real single-node Kubernetes on this machine, or the one KUBECONFIG names
	python3 -m devcluster up

cluster-down: ## Remove that cluster and whatever killed ones left
	python3 -m devcluster down

cluster-binaries: ## Build Kubernetes, etcd, CoreDNS, Helm and kubeconform into the cache
	python3 -m devcluster binaries

.PHONY: demo bench-latency
demo: venv ## From nothing to a measured server and an answer from it, on real handwritten digits
	python3 -m demo

bench-latency: venv ## The operator's own latency: creation to first Job, and overhead of one demo
	python3 -m bench.latency
