# Everything works offline once the cache of the control plane's programs and the module cache are filled. docs/development.md explains the
# targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Passed to `go test`, for example TESTFLAGS="-race -run Dependency".
TESTFLAGS ?=
# Passed to `ginkgo`, which runs the integration tests, for example GINKGOFLAGS="--focus=immutable --race".
GINKGOFLAGS ?=
# The revision that `make test-changed` compares with.
BASE ?= HEAD
# How long each fuzz target runs.
FUZZTIME ?= 10s
# The fleet that `make bench-dependencies` measures, addon-manager's limits there, and a file for its report as JSON.
CLUSTERS ?= 100
ADDONS ?= 20
QPS ?= 200
BURST ?= 400
CONCURRENCY ?= 10
OUT ?=
# How many Instances at a time `make bench-plans` deploys, one row of its report for each number.
INSTANCES ?= 1,10,100
# How many Instances `make bench-children` deploys, and how many each of them brings along.
PARENTS ?= 200
CHILDREN ?= 3
# What the images' names begin with, what they run on, and with a value of PUSH that they are pushed there. Their date is that of the
# commit, so that the same commit makes the same images.
REPOSITORY ?= localhost/tandem-addons
PLATFORMS ?= linux/amd64,linux/arm64
PUSH ?=
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# How long `make rest-ocm` looks at each of its two fleets.
MINUTES ?= 10
# The kubeconfig of a hub to test, and those of its managed clusters in CLUSTERS, separated by commas; without it sandboxes are tested.
HUB ?=
# A value lets `make sandbox` run OCM's own programs, and deliver the agents by them.
OCM ?=
# A value lets `make demo` assert every act and exit non-zero with the act that failed, and `make tutorial` change nothing.
CHECK ?=

# Everything is compiled without cgo and without paths, so that programs, tests, tools and all clones share one build cache. Only the race
# detector needs cgo.
export CGO_ENABLED ?= $(if $(findstring -race,$(TESTFLAGS) $(GINKGOFLAGS)),1,0)
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

tool := go tool -modfile=hack/tools/go.mod
controlplane := go run ./hack/controlplane

# Where the programs are: what integration tests start, and what a sandbox starts.
envtest := $${KUBEBUILDER_ASSETS:-$$($(controlplane) etcd kube-apiserver kubectl)}
assets := $${TANDEM_ASSETS:-$$($(controlplane))}

# Builds Tandem while the control plane's programs are downloaded. If getting these fails, `assets` tries again and says why. The program that
# gets them is built first, for two builds at the same time would compile the standard library twice.
get-and-build = [ -n "$${TANDEM_ASSETS:-}" ] || { go build -o /dev/null ./hack/controlplane; $(controlplane) >/dev/null & }; \
  $(MAKE) --no-print-directory build; wait

ocm := hack/ocm/build.sh
ocmassets := $${TANDEM_OCM_ASSETS:-$$($(ocm))}

addons := hack/ocm/addons/build.sh
addonassets := $${TANDEM_ADDON_ASSETS:-$$($(addons))}

# The suites of integration tests, which need a control plane. Those that take longest come first, with several processes each.
large := agent hub cluster delivery policy cli
suites := $(large) $(filter-out $(large),$(patsubst test/integration/%/suite_test.go,%,$(wildcard test/integration/*/suite_test.go)))
procs-agent := 3
procs-hub := 3
procs-cluster := 2
procs-policy := 2
procs-delivery := 2

##@ Use

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the programs into bin/.
	go build -ldflags "-X main.version=$(VERSION)" -o bin/ ./cmd/...

.PHONY: images
images: ## Pack addon-manager and addon-agent into container images, as archives in bin/images (PUSH=1 pushes them).
	@go -C hack/images run . -source=../.. -out=../../bin/images -repository=$(REPOSITORY) -platforms=$(PLATFORMS) $(if $(PUSH),-push) \
	  -version=$(VERSION) -created=$(SOURCE_DATE_EPOCH) -revision=$$(git rev-parse HEAD 2>/dev/null || echo unknown)

.PHONY: controlplane
controlplane: ## Download or build etcd, kube-apiserver and the like, once, into a cache folder; print it.
	@$(controlplane)

.PHONY: ocm
ocm: ## Build OCM's own programs, once, into a cache folder; print it.
	@$(ocm)

.PHONY: addons
addons: ## Build real add-ons of OCM's, once, into a cache folder; print it.
	@$(addons)

.PHONY: demo
demo: ## Show the whole idea on a hub and two managed clusters (CHECK=1 asserts every act).
	@$(get-and-build); assets=$(assets); TANDEM_ASSETS=$$assets bin/sandbox demo $(if $(CHECK),--check)

.PHONY: sandbox
sandbox: ## Start a hub and two managed clusters with nothing on them, for you to use (OCM=1 runs OCM too).
	@$(get-and-build); assets=$(assets); export TANDEM_ASSETS=$$assets; \
	  $(if $(OCM),ocm=$(ocmassets); TANDEM_OCM_ASSETS=$$ocm )bin/sandbox up $(if $(OCM),--ocm --deliver-agents)

.PHONY: demo-down
demo-down: ## Stop what `make demo` or `make sandbox` left running.
	@if [ -x bin/sandbox ]; then bin/sandbox down; else echo "nothing to stop: bin/sandbox was never built"; fi

##@ Test

.PHONY: test
test: test-unit test-integration ## Run unit and integration tests.

.PHONY: test-unit
test-unit: ## Test everything that needs no control plane.
	@packages=$$(go list ./... | grep -v -e /test/e2e $(suites:%=-e /test/integration/%$$)); \
	  echo "unit tests: every package that needs no control plane"; \
	  go test $$packages $(TESTFLAGS); go -C hack/images test ./... $(TESTFLAGS)

# Each suite has API servers of its own, and so has each of its processes. `make` runs three suites at a time, those that take longest first,
# and prints what a suite says when it ends. Results are not cached, for the control plane is no input that `go test` could see.
.PHONY: test-integration
test-integration: ## Test against real API servers (GINKGOFLAGS='--focus=TEXT' for some of the specs).
	@assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; \
	  echo "integration tests: $(words $(suites)) suites against real API servers, three at a time; each reports when it ends"; \
	  $(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=target $(suites:%=suite-%)

.PHONY: $(suites:%=suite-%)
$(suites:%=suite-%): suite-%: # `make lint` vets them
	@go tool ginkgo run --procs=$(or $(procs-$*),1) --no-color --succinct --vet=off --ldflags="-s -w" --timeout=20m $(GINKGOFLAGS) ./test/integration/$*

.PHONY: test-changed
test-changed: ## Test what depends on changes since BASE (unit and integration tests).
	@changed=$$(go run ./hack/changed -base=$(BASE) | grep -v '^./test/e2e' || true); \
	  [ -n "$$changed" ] || { echo "no test depends on what changed since $(BASE)"; exit 0; }; \
	  suites=$$(sed -n 's,^./test/integration/\(.*\),\1,p' <<<"$$changed" | grep -xF "$$(printf '%s\n' $(suites))" || true); \
	  units=$$(grep -vxF "$$(printf './test/integration/%s\n' $(suites))" <<<"$$changed" || true); \
	  [ -z "$$units" ] || go test $$units $(TESTFLAGS); \
	  [ -z "$$suites" ] || $(MAKE) --no-print-directory test-integration suites="$$(tr '\n' ' ' <<<"$$suites")"

.PHONY: test-e2e
test-e2e: build ## Test whole sandboxes: hub, managed clusters, workloads (HUB=FILE CLUSTERS=FILE,FILE: given clusters).
ifdef HUB
	TANDEM_HUB=$(HUB) TANDEM_CLUSTERS=$(CLUSTERS) go test -count=1 -p=1 -timeout=30m ./test/e2e/... $(TESTFLAGS)
else
	@assets=$(assets); ocm=$(ocmassets); addons=$(addonassets); \
	  export TANDEM_ASSETS=$$assets TANDEM_OCM_ASSETS=$$ocm TANDEM_ADDON_ASSETS=$$addons; set -x; \
	  go test -count=1 -p=1 -timeout=30m ./test/e2e/... $(TESTFLAGS)
endif

.PHONY: test-e2e-quick
test-e2e-quick: build ## Test sandboxes by the specs that take about a minute each and need no OCM.
	@assets=$(assets); export TANDEM_ASSETS=$$assets; \
	  go tool ginkgo run --procs=2 --no-color --succinct --vet=off --timeout=20m --label-filter=quick $(GINKGOFLAGS) ./test/e2e

.PHONY: rest-ocm
rest-ocm: build ## Count who writes what on a fleet at rest with OCM for MINUTES, without Tandem and beside it.
	@assets=$(assets); ocm=$(ocmassets); export TANDEM_ASSETS=$$assets TANDEM_OCM_ASSETS=$$ocm; set -x; \
	  TANDEM_REST=$(MINUTES)m go test -count=1 -v -timeout=$$((30 + 3 * $(MINUTES)))m ./test/e2e -ginkgo.label-filter=rest $(TESTFLAGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME.
	hack/fuzz.sh $(FUZZTIME)

.PHONY: bench-dependencies
bench-dependencies: build ## Measure how CLUSTERS × ADDONS dependencies are judged (OUT=FILE.json for a report).
	go build -o bin/bench-dependencies ./test/bench/dependencies
	@assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; set -x; \
	  bin/bench-dependencies -clusters=$(CLUSTERS) -addons=$(ADDONS) -qps=$(QPS) -burst=$(BURST) -concurrency=$(CONCURRENCY) $(if $(OUT),-out=$(OUT))

.PHONY: bench-commands
bench-commands: build ## Measure what kubectl addon takes on a fleet of CLUSTERS × ADDONS.
	go build -o bin/bench-dependencies ./test/bench/dependencies
	@assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; set -x; \
	  bin/bench-dependencies -kubectl-addon=bin/kubectl-addon -clusters=$(CLUSTERS) -addons=$(ADDONS)

# addon-agent's own limits are higher than addon-manager's.
bench-plans: QPS = 400
bench-plans: BURST = 800
.PHONY: bench-plans
bench-plans: build ## Measure how INSTANCES are deployed by plans, beside a bare client (OUT=FILE.json for a report).
	go build -o bin/bench-plans ./test/bench/plans
	@assets=$(assets); export TANDEM_ASSETS=$$assets; set -x; \
	  bin/bench-plans -instances=$(INSTANCES) -qps=$(QPS) -burst=$(BURST) $(if $(OUT),-out=$(OUT))

# Beyond addon-agent's own limits towards the hub: one agent stands for those of many clusters.
bench-children: QPS = 400
bench-children: BURST = 800
.PHONY: bench-children
bench-children: build ## Measure how soon the CHILDREN of PARENTS are brought about (OUT=FILE.json for a report).
	go build -o bin/bench-children ./test/bench/children
	@assets=$(assets); export TANDEM_ASSETS=$$assets; set -x; \
	  bin/bench-children -parents=$(PARENTS) -children=$(CHILDREN) -qps=$(QPS) -burst=$(BURST) $(if $(OUT),-out=$(OUT))

##@ Maintain

.PHONY: generate
generate: ## Generate deep copies, resource definitions and the reference of the command line.
	$(tool) controller-gen object paths=./pkg/api/...
	$(tool) controller-gen crd paths=./pkg/api/kudo/... output:crd:dir=manifests/crds
	$(tool) controller-gen crd paths=./pkg/api/addon/... output:crd:stdout | \
	  go run ./hack/crds -upstream "$$(go list -m -f '{{.Dir}}' open-cluster-management.io/api)" -output manifests/crds
	go run ./hack/reference -output docs/reference

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum.
	go mod tidy
	go -C hack/images mod tidy

.PHONY: lint
lint: ## Check format, correctness, complexity, structure and style.
	hack/lint.sh

# It starts as its reader does, with no sandbox, and leaves none.
.PHONY: tutorial
tutorial: demo-down ## Run the commands of docs/tutorial.md and write down what they print (CHECK=1 checks that it is true).
	@trap '$(MAKE) -s demo-down' EXIT; unset MAKEFLAGS MAKELEVEL; go run ./hack/tutorial $(if $(CHECK),-check) docs/tutorial.md

.PHONY: verify
verify: generate tidy lint ## Generate, tidy and lint; fail if that leaves the tree dirty.
	@changes=$$(git status --porcelain); [ -z "$$changes" ] || { \
	  echo "verify: these files differ from what is committed:"; echo "$$changes"; git --no-pager diff; exit 1; }

.PHONY: clean
clean: demo-down ## Stop the demo and remove what was built here (not the control plane's cache).
	rm -rf bin .sandbox
