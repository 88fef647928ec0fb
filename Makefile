# Everything the project does, by name. Caches live in the user's cache folder; nothing is written next to the sources.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/triton-operator
VENV := $(CACHE)/venv-$(shell sha256sum requirements/dev.txt | cut -c1-12)
export PATH := $(VENV)/bin:$(PATH)
# Compiled modules too, those of pytest among them: without them each process compiles all that it imports.
export PYTHONPYCACHEPREFIX := $(CACHE)/pycache
unexport PYTHONDONTWRITEBYTECODE
export MYPY_CACHE_DIR := $(CACHE)/mypy
export RUFF_CACHE_DIR := $(CACHE)/ruff
export PYTHONPATH := $(CURDIR)/operator:$(CURDIR)/converters:$(CURDIR)/plugin:$(CURDIR)/local:$(CURDIR)

LOCK_IMAGE := uv pip compile -q --python-version 3.13 --python-platform x86_64-manylinux_2_40 --generate-hashes --no-header

# What MLflow's server runs without: 600 MB.
MLFLOW_LEAVES_OUT := contourpy cycler docker fonttools gunicorn joblib kiwisolver matplotlib narwhals pillow prettytable pyarrow pyparsing scikit-learn \
  skops threadpoolctl wcwidth

.PHONY: help venv lock
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

venv: $(VENV)/.done ## Make the development environment from the lock file
# Its name is a hash of the lock file: a fresh clone finds it and leaves it alone.
$(VENV)/.done:
	@echo "Python packages of requirements/dev.txt, usually 1 min on two cores ..."; SECONDS=0; \
	  python3 -m venv --clear $(VENV); \
	  $(VENV)/bin/pip install --quiet --require-hashes -r requirements/dev.txt; \
	  touch $@; echo "Python packages of requirements/dev.txt: $$SECONDS s"

lock: ## Resolve the dependencies of pyproject.toml and of the images again
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --extra operator pyproject.toml -o requirements/operator.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --all-extras pyproject.toml -o requirements/dev.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header hack/site/requirements.in -o requirements/site.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --extra plugin pyproject.toml hack/release/requirements.in \
	  -c requirements/dev.txt -o requirements/plugin-archive.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header tests/converters/mlflow.in -o requirements/mlflow.txt \
	  $(addprefix --no-emit-package ,$(MLFLOW_LEAVES_OUT))
	$(LOCK_IMAGE) --extra converters --extra sources pyproject.toml images/converter/requirements.in -o requirements/image-converter.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --extra trees pyproject.toml -c requirements/image-converter.txt \
	  -o requirements/image-converter-trees.txt --no-emit-package numpy --no-emit-package packaging --excludes <(echo onnx)
	$(LOCK_IMAGE) --no-deps images/tritonserver-cpu/requirements.in -c requirements/image-converter.txt \
	  -o requirements/image-tritonserver-cpu.txt
	$(LOCK_IMAGE) --extra converters pyproject.toml images/converter-tensorflow/requirements.in \
	  -c requirements/image-converter.txt -o requirements/image-converter-tensorflow.txt
	$(LOCK_IMAGE) images/digits-trainer/requirements.in -o requirements/image-digits-trainer.txt
	$(LOCK_IMAGE) manifests/samples/pictures/decode/requirements.txt manifests/samples/texts/tokenize/requirements.txt -o requirements/samples.txt
	$(subst 3.13,3.12,$(subst 2_40,2_39,$(LOCK_IMAGE))) images/converter-gpu/requirements.in -o requirements/image-converter-gpu.txt \
	  $(addprefix --no-emit-package ,numpy packaging sympy mpmath typing-extensions)

.PHONY: images install cluster-prepare cluster-up cluster-down cluster-binaries
images: ## Build every container image that changed, into the cache
	python3 -m hack.imagebuild build

install: venv ## Install the operator of this tree into the development cluster, or into KUBECONFIG's
	python3 -m hack.deploy

cluster-prepare: ## Download what cluster-up and Helm are built from
	python3 -m hack.devcluster prepare

cluster-up: ## Start a Kubernetes on this machine, unless KUBECONFIG names a cluster; NODES=3 starts three nodes
	python3 -m hack.devcluster up $(if $(NODES),--nodes $(NODES))

cluster-down: ## Remove that cluster, and what killed clusters left behind
	python3 -m hack.devcluster down

cluster-binaries: ## Build Kubernetes, etcd, CoreDNS, Helm, kubeconform, actionlint, an S3 server and a registry into the cache
	python3 -m hack.devcluster binaries

.PHONY: changelog changelog-check
changelog: venv ## Move the fragments of changelog.d into CHANGELOG.md: VERSION=X.Y.Z; without a version, only show them
	towncrier build $(if $(VERSION),--yes --version "$(VERSION)",--draft --version Next)

changelog-check: venv ## Fail if this branch differs from BASE, by default main, and adds no fragment to changelog.d
	towncrier check --compare-with "$(or $(BASE),main)"

.PHONY: site
# Named by its lock file, as the development environment is.
SITE_VENV := $(CACHE)/site-venv-$(shell sha256sum requirements/site.txt | cut -c1-12)
$(SITE_VENV)/.done:
	python3 -m venv --clear $(SITE_VENV)
	$(SITE_VENV)/bin/pip install --quiet --require-hashes -r requirements/site.txt
	touch $@

site: venv $(SITE_VENV)/.done ## Build the documentation as a site in FOLDER, by default dist/site, and check its links; REPOSITORY=URL of this tree
	python3 -m hack.site.build $(or $(FOLDER),dist/site) --zensical $(SITE_VENV)/bin/zensical $(if $(REPOSITORY),--repository $(REPOSITORY))

.PHONY: release
release: venv ## Build, push and sign a release: REGISTRY=HOST/PATH VERSION=X.Y.Z KEY=cosign.key, GPU=1; see docs/releasing.md
	python3 -m hack.release --registry "$(REGISTRY)" --version "$(VERSION)" $(if $(KEYLESS),--keyless,--key "$(KEY)") $(if $(GPU),--gpu) \
	  $(if $(DOWNLOADS),--downloads "$(DOWNLOADS)")

.PHONY: demo examples bench bench-latency
demo: ## Convert, measure and serve a model of handwritten digits, and send it a request
	@$(MAKE) --no-print-directory --silent --jobs 2 venv cluster-prepare
	python3 -m demo

examples: venv ## Run every example of manifests/examples on a cluster, one line each; NAME="a b" runs some
	python3 -m examples $(NAME)

bench: venv cluster-binaries ## Measure the operator with 100 to 5,000 objects on an API server without nodes: 30 minutes on a quiet machine
	python3 -m bench.scale

bench-latency: venv ## Measure the operator's latency: from creation to the first Job, and the overhead of one demo
	python3 -m bench.latency

.PHONY: bench-search bench-service
bench-search: venv ## Compare the search with Model Analyzer's on one model, and on the cluster: 15 minutes on a quiet machine
	python3 -m bench.search
	python3 -m bench.search.cluster

.PHONY: bench-gates bench-gates-served
bench-gates: venv ## Count how often the gates pass a wrong variant of 42 models, or fail a right one: an hour; NAME="a b" runs some
	python3 -W ignore -m bench.gates $(NAME) $(if $(OUTPUT),--output $(OUTPUT))

bench-gates-served: venv ## Put 22 of those variants through the profile stage and a real tritonserver: the same verdicts?
	python3 -W ignore -m bench.gates.served

bench-service: venv ## Measure three examples in the profile's pod, through the Service and next to a busy pod: 25 minutes
	python3 -m bench.service

.PHONY: bench-int8 bench-mixed bench-defaults
bench-mixed: venv images ## Compare sweeps of one length and of all lengths with what a client gets from a text encoder: 15 minutes
	python3 -m bench.mixed

bench-defaults: venv images ## Compare untouched objects with the best of a grid within a p99 budget, three models: 20 minutes; NAME="a b" runs some
	python3 -m bench.defaults $(NAME) $(if $(OUTPUT),--output $(OUTPUT))

bench-int8: venv images ## Compare INT8 with fp32 by four models that are served, their throughput, latency and metrics: 15 minutes; NAME="a b" runs some
	python3 -m bench.int8 $(NAME) $(if $(OUTPUT),--output $(OUTPUT))

.PHONY: bench-ramp
bench-ramp: venv ## Have KEDA, and then an autoscaler by CPU, scale an object while a load rises to twice its saturation and falls: 50 minutes
	python3 -m hack.devcluster binaries keda metrics-server prometheus
	python3 -m bench.ramp keda
	python3 -m bench.ramp hpa

.PHONY: bench-undo
bench-undo: venv ## Have a soak, and then a canary, undo two bad revisions under real load: one slower by half, one that errs: 25 minutes
	python3 -m hack.devcluster binaries prometheus traefik
	python3 -m bench.undo.soak
	python3 -m bench.undo.canary

.PHONY: generate verify-generated lint
# The chart of the source tree names no images.
RENDER := helm template triton-operator charts/triton-operator --namespace triton-operator --values hack/lint/images.yaml
# Programs that devcluster built come first: they are of known versions.
WITH_PROGRAMS = eval "$$(python3 -m hack.devcluster env)"

generate: venv ## The CRD, its copy in the chart and the generated documentation
	python3 -m triton_operator.crdgen
	python3 -m hack.docs

verify-generated: venv ## Fail if a generated file differs from what `make generate` writes
	python3 -m triton_operator.crdgen --check
	python3 -m hack.docs --check

# Named by what they are made from: another version or CRD makes others.
SCHEMAS = $(CACHE)/schemas-$(shell cat hack/devcluster/modules/kubernetes/go.mod crds/*.yaml hack/lint/kubernetes_schemas.py | sha256sum | cut -c1-12)
KUBECONFORM = kubeconform -strict -summary -schema-location '$(SCHEMAS)/{{.ResourceKind}}{{.KindSuffix}}.json'

lint: venv verify-generated ## Run ruff, mypy --strict, the import layers, helm lint, kubeconform and actionlint, and check generated files
	ruff check .
	ruff format --check .
	mypy
	lint-imports --cache-dir $(CACHE)/import-linter
	python3 -m hack.devcluster binaries kubernetes etcd helm kubeconform actionlint
	# With a shellcheck of the machine, the verdict would depend on the machine.
	$(WITH_PROGRAMS); actionlint -shellcheck= -pyflakes=
	python3 -m hack.lint.kubernetes_schemas $(SCHEMAS)
	$(WITH_PROGRAMS); helm lint --strict charts/triton-operator --values hack/lint/images.yaml
	$(WITH_PROGRAMS); $(RENDER) | $(KUBECONFORM) -
	# These kinds are the Prometheus operator's: no schema of them is here.
	$(WITH_PROGRAMS); $(RENDER) --values hack/lint/all-values.yaml | $(KUBECONFORM) -skip PodMonitor,PrometheusRule,ServiceMonitor -
	$(WITH_PROGRAMS); $(KUBECONFORM) crds
	$(WITH_PROGRAMS); for example in $$(find manifests/examples -name kustomization.yaml -printf '%h\n'); do kubectl kustomize $$example | $(KUBECONFORM) -; done

.PHONY: test test-lint test-fast test-observe test-report test-torch test-tensorflow test-images test-apiserver test-attacks test-chaos test-chaos-node test-cluster test-e2e
# Fast ones first, and one after the other: they share two cores and one cluster.
# In a suite that measures nothing a worker for each core, four at most. Where set-up is dear, as that of an API server for each
# worker, they take whole modules, in their folders' order: by default modules of few tests come last, and some of those are the
# longest.
EACH_CORE := -n auto --maxprocesses 4
BY_MODULE := $(EACH_CORE) --dist loadscope --no-loadscope-reorder
SUITES := lint fast report apiserver torch tensorflow images cluster e2e
test: venv ## Run all tests, including their set-up, and print how long each suite took and what failed
	@CI=1 python3 -m hack.suites $(SUITES)

test-lint: lint

test-fast: venv ## Run the tests that need neither images nor a cluster: minutes
	pytest $(BY_MODULE) -m "not (apiserver or chaos or chromium or cluster or conformance or e2e or examples or gpu or images or integrations or nodes or observe or release or tensorflow or thorough or torch)" tests

.PHONY: test-walk
test-walk: venv ## Walk at random through edits, faults and time, on all cores, for STEPS steps, by default a million: a night
	python3 -m tests.simulation.walk $(if $(STEPS),--steps $(STEPS)) $(if $(SEED),--seed $(SEED))

test-observe: venv ## Test alerts and dashboards with the real Prometheus, a real operator and a real tritonserver: minutes
	python3 -m hack.devcluster binaries prometheus kubernetes etcd helm
	pytest -m observe tests/observe tests/e2e

test-report: venv site ## Test reports of recorded runs, and the site, in a headless Chromium, which it installs from Debian
	type chromium chromedriver > /dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive \
	  apt-get install -qq --no-install-recommends -y chromium chromium-driver fonts-dejavu-core; }
	pytest -m chromium tests/report

test-apiserver: venv cluster-binaries ## Run the tests on a real API server and etcd, without a node
	pytest $(BY_MODULE) -m apiserver tests/chaos tests/apiserver

# A cluster there is where KUBECONFIG names one, or where root may start one.
FAULTY_PODS := $(addprefix tests/e2e/test_,bad_input.py conversion.py repair.py)
test-chaos: venv cluster-binaries ## Try every fault on a real API server and on a real node, and print one table: 35 minutes
	pytest $(if $(or $(KUBECONFIG),$(filter 0,$(shell id -u))),$(FAULTY_PODS) tests/chaos,tests/chaos --ignore tests/chaos/node)

test-chaos-node: venv ## Try only the faults on a real node: it is drained, its kubelet stopped, the operator killed
	pytest tests/chaos/node

ATTACKS := $(addprefix tests/,e2e/test_attacks.py apiserver/test_admission.py apiserver/test_admission_pods.py \
  apiserver/test_gateway_api.py apiserver/test_crd.py images/test_restrictions.py unit/test_hostile_answers.py \
  unit/test_metrics_port.py unit/test_printable.py report/test_hostile_files.py report/test_push.py converters/test_source.py \
  converters/test_possession.py converters/test_registry.py converters/test_clean.py converters/test_three_containers.py \
  simulation/test_data.py simulation/test_route.py local/test_attacks.py local/test_folders.py local/test_images.py \
  local/test_kubelet.py)
test-attacks: venv cluster-binaries ## Attack as an author, a spec, a client and a token's holder, and print one table: 12 minutes
	pytest $(ATTACKS)

# Where `make test` wants to hear of each test's end; see hack/suites/outcomes.py.
TELL = $(if $(SUITE_OUTCOMES),--mount $(SUITE_OUTCOMES):/outcomes --env SUITE_OUTCOMES=/outcomes --env PYTEST_PLUGINS=$(PYTEST_PLUGINS))

# In the image $(1), the tests of the framework $(2); packages of the development environment come after the image's own.
define test_converters
	python3 -m hack.imagebuild run $(1) --mount $(CURDIR):/src:ro \
	  --mount "$$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')":/dev-packages:ro \
	  --env PYTHONPATH=/src/converters:/src $(TELL) -- \
	  python3 -c 'import sys; sys.path.append("/dev-packages"); import pytest; sys.exit(pytest.main(sys.argv[1:]))' \
	  --rootdir /src -c /src/pyproject.toml --confcutdir /src/tests/converters -p no:cacheprovider -p no:hypothesispytest \
	  $(EACH_CORE) --dist worksteal -m $(2) /src/tests/converters/$(2)
endef

test-torch: venv ## Test the PyTorch converters inside the converter image
	$(call test_converters,converter,torch)

test-tensorflow: venv ## Test the TensorFlow converters inside the converter-tensorflow image
	$(call test_converters,converter-tensorflow,tensorflow)

test-images: venv ## Test tritonserver's backends, the gates and perf_analyzer on real servers
	pytest -m images tests/images tests/profile tests/local

# Somebody else's cluster is neither started nor removed.
test-cluster: venv ## Test the development cluster: up, down, killed, up again
	$(if $(KUBECONFIG),@echo "KUBECONFIG is set: the development cluster is not tested",pytest -m cluster tests/devcluster)

test-e2e: venv ## Test the operator on a real cluster, as users see it
	pytest -m "e2e and not thorough" tests/e2e

.PHONY: test-conformance
test-conformance: venv ## Run every pod spec by the development cluster's kubelet, Box and Plain, and print where their statuses differ
	pytest -m conformance tests/conformance

.PHONY: test-nodes
test-nodes: venv ## Lose nodes of a development cluster of three, and print what happened: 10 minutes; not part of `make test`
	pytest -m nodes tests/nodes

.PHONY: test-integrations
test-integrations: venv ## Test with the real Kueue, Traefik and KEDA, on the development cluster, MLflow and cosign: minutes; not part of `make test`
	python3 -m hack.devcluster binaries kueue traefik
	pytest -m integrations tests/integrations tests/converters/test_mlflow_server.py tests/converters/test_example_fraud.py tests/converters/test_cosign.py

.PHONY: test-examples
test-examples: venv ## Run the examples with one candidate each on the cluster: minutes each; not part of `make test`
	pytest -m examples tests/e2e

.PHONY: test-release
test-release: venv ## Release to a registry on this machine, install, upgrade and roll back; not part of `make test`
	pytest -m release tests/release

.PHONY: test-debian
test-debian: venv ## Type the README's first commands on a bare Debian 12 and 13, and print how long it took: root, debootstrap, 15 minutes
	type debootstrap > /dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y debootstrap; }
	python3 -m tests.local.debian $(NAME)

.PHONY: test-following
test-following: venv ## Follow models on a cluster through good and bad nights, with MLflow, a registry, a hub, a bucket and a web server: 40 minutes
	python3 -m tests.following

.PHONY: test-zoo
test-zoo: venv ## Serve other projects' models by the smallest object on the cluster; NAME="a b" runs some, OUTPUT=file keeps the rows
	python3 -m tests.zoo $(NAME) $(if $(OUTPUT),--output $(OUTPUT))

.PHONY: test-user-files
test-user-files: venv ## Run the user files of NVIDIA's examples in the images: CHECKOUT=, DLLOGGER= are clones, EXTRA= a folder of packages; NAME="a b"
	python3 -m tests.user_files --checkout "$(CHECKOUT)" --dllogger "$(DLLOGGER)" --extra "$(EXTRA)" $(NAME)

.PHONY: test-repositories
test-repositories: venv ## Make one object of each of twelve public Triton repositories, and try it here: MIRRORS= holds clones; NAME="a b", OUTPUT=, WITHOUT=torch, IMAGES=1
	python3 -m tests.triton_repositories --mirrors "$(MIRRORS)" $(NAME) $(if $(OUTPUT),--output "$(OUTPUT)") $(if $(WITHOUT),--without "$(WITHOUT)") $(if $(IMAGES),--images)

# The checklist of docs/gpu.md. Nothing but the images has to be there; the server's is the chart's.
GPU_FOLDER = $(CACHE)/gpu
GPU_SERVER = $$(python3 -c 'import yaml; print("{repository}:{tag}".format(**yaml.safe_load(open("charts/triton-operator/values.yaml"))["images"]["server"]))')
ON_GPU = docker run --rm --gpus all --shm-size 2g --user "$$(id -u):$$(id -g)" --env NVIDIA_TF32_OVERRIDE=0 --env HOME=/tmp \
  --env PYTHONPATH=/src/converters:/src --env PYTHONDONTWRITEBYTECODE=1 --env GPU_FOLDER=/gpu --volume $(CURDIR):/src:ro \
  --volume $(GPU_FOLDER):/gpu
# In the image for GPUs, these files of tests/gpu, in this order.
define gpu_tests
$(ON_GPU) --volume "$$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')":/dev-packages:ro \
	  --entrypoint python3 "$$(python3 -m hack.imagebuild reference converter-gpu)" \
	  -c 'import sys; sys.path.append("/dev-packages"); import pytest; sys.exit(pytest.main(sys.argv[1:]))' \
	  --rootdir /src -c /src/pyproject.toml --confcutdir /src/tests/gpu -p no:cacheprovider -p no:hypothesispytest \
	  -m gpu $(addprefix /src/tests/gpu/,$(1))
endef
# A machine with a GPU may be had for half an hour: what fails stops nothing that comes after it, and what is slow is last.
.PHONY: test-gpu
test-gpu: venv ## Check on this machine's GPU, in the images, what needs one: docker, NVIDIA's container toolkit and nvcr.io
	@docker info >/dev/null || { echo "make test-gpu needs docker with NVIDIA's container toolkit"; exit 1; }
	python3 -m hack.imagebuild run converter-gpu -- true
	python3 -m tests.gpu.repository $(GPU_FOLDER)
	failed=""; \
	$(ON_GPU) --entrypoint nvidia-smi $(GPU_SERVER) || failed=1; \
	$(call gpu_tests,test_tf32.py test_traces.py test_engine_to_serve.py) || failed=1; \
	$(ON_GPU) --entrypoint python3 $(GPU_SERVER) /src/tests/gpu/served.py /gpu || failed=1; \
	$(call gpu_tests,test_tensorrt.py) || failed=1; \
	test -z "$$failed"
