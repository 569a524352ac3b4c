# All targets work offline once the caches of control plane programs and Go modules are filled. docs/development.md describes the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Passed to `go test`, for example TESTFLAGS="-race -run Dependency".
TESTFLAGS ?=
# Passed to `ginkgo`, which runs the integration tests, for example GINKGOFLAGS="--focus=immutable --race".
GINKGOFLAGS ?=
# The base revision of `make test-changed`.
BASE ?= HEAD
# How long each fuzz target runs.
FUZZTIME ?= 10s
# HISTORIES is the number of random histories that `make test-histories` plays, in a model, or with the programs if PROGRAMS is set. MUTANTS is
# a regular expression that selects the mistakes of `make mutants`.
PROGRAMS ?=
HISTORIES ?= $(if $(PROGRAMS),20,2000)
MUTANTS ?=
# FAULTS_BUDGET limits the time in which `make test-faults` starts fault plans without OCM, and again the time with OCM, such as 4m; all are
# tried if it is empty. FAULTS_SEED is the seed of their order; the day if it is empty. FAULTS_PLAN selects fault plans by the beginnings of
# their names, separated by semicolons, and FAULTS_PART selects a part of them, such as 2/7. FAULTS_LOGS is a folder for the programs' logs.
# FAULTS_WORLDS is the number of hubs, each with a managed cluster, that try fault plans at the same time; two if it is empty, and one with
# OCM. FAULTS_RECONNECTS is how often the agent's link to a hub is cut while its memory is observed.
FAULTS_BUDGET ?=
FAULTS_SEED ?=
FAULTS_PLAN ?=
FAULTS_PART ?=
FAULTS_LOGS ?=
FAULTS_RECONNECTS ?= 20
FAULTS_WORLDS ?=
# The size of the fleet of `make bench-dependencies`, and a file for the JSON report of a benchmark.
CLUSTERS ?= 100
ADDONS ?= 20
OUT ?=
# The number of viewers of the dashboard in `make bench-ui`.
VIEWERS ?= 10
# The comma-separated scenarios of `make bench-dependencies`, all if empty; the pairs of each flip; and a file for a profile of the heap.
SCENARIOS ?=
PAIRS ?= 5
HEAP ?=
# Any value gives each dependency of `make bench-dependencies` a version and a selector of clusters.
SELECTIVE ?=
# Any value makes `make bench-dependencies` measure first installations only, each with a constraint if SELECTIVE has a value, too.
FIRST ?=
# The rate limits of the measured program in benchmarks (0: none), and addon-manager's --concurrency.
QPS ?= 0
BURST ?= 0
CONCURRENCY ?= 10
# The numbers of Instances that `make bench-plans` deploys at the same time, each a row of its report. With REST, such as 10m, it measures that many
# Instances, and 20 charts, at rest for so long in each mode of drift, instead of their plans.
INSTANCES ?= 1,10,100
REST ?= 0
# The number of Instances that `make bench-charts` deploys at the same time, and of charts with which it measures memory; 0 skips one of both.
RELEASES ?= 100
CHARTS ?= 20
# The number of Instances that `make bench-children` deploys, and the number of children of each.
PARENTS ?= 200
CHILDREN ?= 3
# The number of agents of `make bench-agents`, the number of add-ons of each (at most 3), and the scenarios that it skips.
AGENTS ?= 50
CHAIN ?= 3
SKIP ?=
# The prefix of the images' names and their platforms; any value of PUSH pushes them. Their date is the date of the commit, so that builds
# of the same commit are identical.
REPOSITORY ?= localhost/tandem-addons
PLATFORMS ?= linux/amd64,linux/arm64
PUSH ?=
# The platforms of the plugin in `make release`; all six if empty. Any value of BUNDLE adds the control plane programs of this platform. KEY is the
# file of a private key that signs the release, and of the public key with which `make release-check` verifies it. FROM is the folder of the release before,
# from which `make release-check` upgrades a sandbox. Any value of KIND makes it install the release on kind clusters, too, and run the end-to-end tests there.
PLUGIN_PLATFORMS ?=
BUNDLE ?=
KEY ?=
FROM ?=
KIND ?=
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# The versions of Kubernetes of `make test-versions`, beside the one of `make test`, and its suites. LABELS selects specs of the suites by their labels.
VERSIONS ?= 1.34 1.35 1.36
SUITES ?= $(suites) e2e-quick
LABELS ?=
# How many minutes `make rest-ocm` observes each of its two fleets.
MINUTES ?= 10
# The kubeconfig of a hub to test, with the comma-separated kubeconfigs of its managed clusters in CLUSTERS. If empty, sandboxes are tested.
HUB ?=
# Any value makes `make sandbox` run OCM's own programs, which then deliver the agents, and `make bench-agents` roll out by a Placement.
OCM ?=
# The comma-separated reserved namespaces in which packages may be installed on the clusters of `make sandbox`, such as kube-system.
ALLOW_NAMESPACES ?=
# Any value makes `make demo` also check which program writes what, and that nothing is written at rest, and `make tutorial` check the pages without
# changing them. PAGES are the pages of `make tutorial`.
CHECK ?=
PAGES ?= docs/tutorial.md docs/charts-tutorial.md docs/day-two-tutorial.md

# Everything is compiled without cgo and with -trimpath, so that programs, tests, tools and all clones share one build cache. Only the race
# detector requires cgo.
export CGO_ENABLED ?= $(if $(findstring -race,$(TESTFLAGS) $(GINKGOFLAGS)),1,0)
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

tool := go tool -modfile=hack/tools/go.mod
controlplane := go run ./hack/controlplane

# The folders of the control plane programs: for integration tests, and for sandboxes.
envtest := $${KUBEBUILDER_ASSETS:-$$($(controlplane) etcd kube-apiserver kubectl)}
assets := $${TANDEM_ASSETS:-$$($(controlplane))}

ocm := hack/ocm/build.sh
ocmassets := $${TANDEM_OCM_ASSETS:-$$($(ocm))}

addons := hack/ocm/addons/build.sh
addonassets := $${TANDEM_ADDON_ASSETS:-$$($(addons))}

# The suites of integration tests, which require a control plane. The slowest ones are first, with several processes each.
large := agent hub cluster delivery policy cli
suites := $(large) $(filter-out $(large),$(patsubst test/integration/%/suite_test.go,%,$(wildcard test/integration/*/suite_test.go)))
procs-agent := 5
procs-hub := 3
procs-cluster := 2
procs-policy := 2
procs-delivery := 2

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the programs into bin/.
	go build -ldflags "-X main.version=$(VERSION)" -o bin/ ./cmd/...

.PHONY: images
images: ## Pack addon-manager and addon-agent into container images, as archives in bin/images (PUSH=1 pushes them).
	@go -C hack/images run . -source=../.. -out=../../bin/images -repository=$(REPOSITORY) -platforms=$(PLATFORMS) $(if $(PUSH),-push) \
	  -version=$(VERSION) -created=$(SOURCE_DATE_EPOCH) -revision=$$(git rev-parse HEAD 2>/dev/null || echo unknown)

.PHONY: release
release: ## Build all files of release VERSION into dist: the plugin, images, manifests, the chart, SBOMs and checksums.
	@[ -z "$$(git status --porcelain 2>&1)" ] || { echo "make release: commit or remove what git status shows: a release is built from a commit" >&2; exit 1; }
	@folder=$(if $(BUNDLE),$$($(controlplane)) || exit 1); \
	go run ./hack/release -version='$(VERSION)' -revision=$$(git rev-parse HEAD 2>/dev/null || echo unknown) -created=$(SOURCE_DATE_EPOCH) \
	  -repository=$(REPOSITORY) -image-platforms=$(PLATFORMS) $(if $(PLUGIN_PLATFORMS),-platforms=$(PLUGIN_PLATFORMS)) \
	  -controlplane="$$folder" $(if $(KEY),-key='$(KEY)') -output=dist

.PHONY: release-check
release-check: ## Verify the files in dist as a user does: checksums, programs, SBOMs, images, the chart, the demo, an upgrade from the release in FROM, and the manifests.
	@assets=$(assets); export KUBEBUILDER_ASSETS=$$assets TANDEM_ASSETS=$$assets; \
	go run ./hack/release check $(if $(KEY),-key='$(KEY)') $(if $(FROM),-from='$(FROM)') dist
	$(if $(KIND),@hack/kind.sh test --release dist)

.PHONY: controlplane
controlplane: ## Download or build the control plane programs into the cache, and print the folder.
	@$(controlplane)

.PHONY: ocm
ocm: ## Build OCM's own programs into the cache, and print the folder.
	@$(ocm)

.PHONY: addons
addons: ## Build add-ons of the OCM community into the cache, and print the folder.
	@$(addons)

.PHONY: demo
demo: build ## Run the demo on a hub and two managed clusters (CHECK=1 also checks which program writes what).
	@assets=$(assets); TANDEM_ASSETS=$$assets bin/sandbox demo $(if $(CHECK),--check)

.PHONY: sandbox
sandbox: build ## Start a hub and two managed clusters without add-ons (OCM=1 runs OCM too).
	@assets=$(assets); export TANDEM_ASSETS=$$assets; \
	  $(if $(OCM),ocm=$(ocmassets); TANDEM_OCM_ASSETS=$$ocm )bin/sandbox up $(if $(OCM),--ocm --deliver-agents) \
	  $(if $(ALLOW_NAMESPACES),--allow-namespaces=$(ALLOW_NAMESPACES))

.PHONY: demo-down
demo-down: ## Stop the sandbox of `make demo` or `make sandbox`.
	@if [ -x bin/sandbox ]; then bin/sandbox down; else echo "nothing to stop: bin/sandbox does not exist"; fi

##@ Test

.PHONY: test
test: test-unit test-integration ## Run unit and integration tests.

.PHONY: test-unit
test-unit: ## Run the tests that require no control plane.
	@packages=$$(go list ./... | grep -v -e /test/e2e -e /test/browser$$ -e /test/faults/plans $(suites:%=-e /test/integration/%$$)); \
	  echo "unit tests: all packages that require no control plane"; \
	  go test $$packages $(TESTFLAGS); go -C hack/images test ./... $(TESTFLAGS)

browser = command -v chromium >/dev/null || { echo "chromium is required to test the dashboard, for example: apt-get install chromium" >&2; exit 1; }

.PHONY: test-ui
test-ui: ## Test the dashboard in chromium.
	@$(browser); assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; go test -count=1 -timeout=20m ./test/browser $(TESTFLAGS)

.PHONY: screenshots
screenshots: ## Take the screenshots of docs/dashboard.md (REVIEW=FOLDER also takes every page, at 360 pixels and in 4K).
	@$(browser); assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; mkdir -p docs/dashboard; \
	  TANDEM_REVIEW=$(if $(REVIEW),$(abspath $(REVIEW))) TANDEM_SCREENSHOTS=$$PWD/docs/dashboard go test -count=1 ./test/browser -ginkgo.label-filter=pictures

# Each process of each suite has its own API servers. `make` runs two suites at a time, the slowest first, and prints the output of a
# suite when it ends. Results are not cached, because `go test` does not track the control plane as an input.
.PHONY: test-integration
test-integration: ## Run the integration tests against real API servers (GINKGOFLAGS='--focus=TEXT' selects specs).
	@assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; \
	  echo "integration tests: $(words $(suites)) suites against real API servers, two at a time; each reports when it ends"; \
	  $(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target $(suites:%=suite-%)

.PHONY: $(suites:%=suite-%)
$(suites:%=suite-%): suite-%: # `make lint` vets them
	@go tool ginkgo run --procs=$(or $(procs-$*),1) --no-color --succinct --vet=off --ldflags="-s -w" --timeout=40m \
	  $(if $(LABELS),--label-filter='$(LABELS)') $(GINKGOFLAGS) ./test/integration/$*

.PHONY: test-alerts
test-alerts: ## Play series of metrics against the alerts of deploy/alerts with promtool (the first build takes minutes).
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; mkdir "$$folder/rules"; cp test/alerts/*.yaml "$$folder"; \
	  for file in deploy/alerts/*.yaml; do sed -e '1,/^spec:/d' -e 's/^  //' "$$file" >"$$folder/rules/$${file##*/}"; done; \
	  promtool="go tool -modfile=hack/promtool/go.mod promtool"; \
	  $$promtool check rules "$$folder"/rules/*.yaml && $$promtool test rules "$$folder"/*.yaml

.PHONY: test-changed
test-changed: ## Run the unit and integration tests that depend on changes since BASE.
	@changed=$$(go run ./hack/changed -base=$(BASE) | grep -v -e '^./test/e2e' -e '^./test/browser' -e '^./test/faults/plans' || true); \
	  [ -n "$$changed" ] || { echo "no test depends on the changes since $(BASE)"; exit 0; }; \
	  suites=$$(sed -n 's,^./test/integration/\(.*\),\1,p' <<<"$$changed" | grep -xF "$$(printf '%s\n' $(suites))" || true); \
	  units=$$(grep -vxF "$$(printf './test/integration/%s\n' $(suites))" <<<"$$changed" || true); \
	  [ -z "$$units" ] || go test $$units $(TESTFLAGS); \
	  [ -z "$$suites" ] || $(MAKE) --no-print-directory test-integration suites="$$(tr '\n' ' ' <<<"$$suites")"

.PHONY: test-e2e
test-e2e: build ## Run the end-to-end tests on sandboxes, or on the clusters of HUB=FILE CLUSTERS=FILE,FILE.
ifdef HUB
	TANDEM_HUB=$(HUB) TANDEM_CLUSTERS=$(CLUSTERS) go test -count=1 -p=1 -timeout=30m ./test/e2e/... $(TESTFLAGS)
else
	@assets=$(assets); ocm=$(ocmassets); addons=$(addonassets); \
	  export TANDEM_ASSETS=$$assets TANDEM_OCM_ASSETS=$$ocm TANDEM_ADDON_ASSETS=$$addons; set -x; \
	  go test -count=1 -p=1 -timeout=30m ./test/e2e/... $(TESTFLAGS)
endif

.PHONY: test-e2e-quick
test-e2e-quick: build ## Run the end-to-end tests that take about a minute each and require no OCM.
	@assets=$(assets); export TANDEM_ASSETS=$$assets; \
	  go tool ginkgo run --procs=2 --no-color --succinct --vet=off --timeout=20m \
	  --label-filter='quick$(if $(LABELS), && $(LABELS))' $(GINKGOFLAGS) ./test/e2e

.PHONY: test-versions
test-versions: ## Run SUITES of integration tests, and e2e-quick, on control planes of VERSIONS of Kubernetes (the first build of each takes minutes).
	@hack/versions.sh '$(VERSIONS)' '$(SUITES)'

.PHONY: test-kind
test-kind: ## Run the end-to-end tests on kind clusters that it creates with Docker or podman, and deletes (KEEP=1 keeps them).
	@hack/kind.sh test

.PHONY: rest-ocm
rest-ocm: build ## Count all writes on a fleet at rest for MINUTES, with OCM alone and with Tandem added.
	@assets=$(assets); ocm=$(ocmassets); export TANDEM_ASSETS=$$assets TANDEM_OCM_ASSETS=$$ocm; set -x; \
	  TANDEM_REST=$(MINUTES)m go test -count=1 -v -timeout=$$((30 + 3 * $(MINUTES)))m ./test/e2e -ginkgo.label-filter=rest $(TESTFLAGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME.
	hack/fuzz.sh $(FUZZTIME)

faults = assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets FAULTS_BUDGET='$(FAULTS_BUDGET)' FAULTS_SEED='$(FAULTS_SEED)' \
  FAULTS_PLAN='$(FAULTS_PLAN)' FAULTS_PART='$(FAULTS_PART)' FAULTS_LOGS='$(FAULTS_LOGS)' FAULTS_WORLDS='$(FAULTS_WORLDS)' \
  FAULTS_RECONNECTS='$(FAULTS_RECONNECTS)'; go test -count=1 -timeout=0 -v ./test/faults/plans

.PHONY: test-histories
test-histories: $(if $(PROGRAMS),build) ## Play HISTORIES random histories of desired states and faults in a model, or with the programs (PROGRAMS=1).
	@$(if $(PROGRAMS),$(faults) -run='^TestHistories$$',set -x; go test -count=1 -timeout=0 -v ./test/faults/model) -rapid.checks=$(HISTORIES) $(TESTFLAGS)

.PHONY: test-faults
test-faults: build ## Run the programs with a fault at every distinct write (FAULTS_BUDGET=4m limits the time).
	@$(faults) -skip='^TestHistories$$' $(TESTFLAGS)

.PHONY: mutants
mutants: ## Apply known mistakes to a copy, one by one, and check that the tests catch each (MUTANTS=REGEXP selects some).
	@assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; go run ./hack/mutants $(if $(MUTANTS),-run='$(MUTANTS)')

.PHONY: bench-dependencies
bench-dependencies: build ## Measure the evaluation of dependencies on CLUSTERS × ADDONS (OUT=FILE.json writes a report).
	go build -o bin/bench-dependencies ./test/bench/dependencies
	@assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; set -x; \
	  bin/bench-dependencies -clusters=$(CLUSTERS) -addons=$(ADDONS) -qps=$(QPS) -burst=$(BURST) -concurrency=$(CONCURRENCY) \
	  -pairs=$(PAIRS) -scenarios=$(SCENARIOS) $(if $(SELECTIVE),-selective) $(if $(FIRST),-first-installations) $(if $(HEAP),-heap=$(HEAP)) $(if $(OUT),-out=$(OUT))

.PHONY: bench-commands
bench-commands: build ## Measure the time and memory of kubectl addon on CLUSTERS × ADDONS.
	go build -o bin/bench-dependencies ./test/bench/dependencies
	@assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; set -x; \
	  bin/bench-dependencies -kubectl-addon=bin/kubectl-addon -clusters=$(CLUSTERS) -addons=$(ADDONS)

.PHONY: bench-ui
bench-ui: build ## Measure the dashboard on CLUSTERS × ADDONS, with VIEWERS (requires chromium).
	go build -o bin/bench-dependencies ./test/bench/dependencies
	@$(browser); assets=$(envtest); export KUBEBUILDER_ASSETS=$$assets; set -x; \
	  bin/bench-dependencies -viewers=$(VIEWERS) -clusters=$(CLUSTERS) -addons=$(ADDONS) $(if $(OUT),-out=$(OUT))

.PHONY: bench-plans
bench-plans: build ## Measure the deployment of INSTANCES by plans, compared with a bare client (OUT=FILE.json writes a report).
	go build -o bin/bench-plans ./test/bench/plans
	@assets=$(assets); export TANDEM_ASSETS=$$assets; set -x; \
	  bin/bench-plans -instances=$(INSTANCES) -rest=$(REST) -qps=$(QPS) -burst=$(BURST) $(if $(OUT),-out=$(OUT))

.PHONY: bench-charts
bench-charts: build ## Measure Helm tasks of RELEASES Instances beside Helm's SDK, and the memory with CHARTS charts (OUT=FILE.json writes a report).
	go -C hack/helm build -o ../../bin/bench-helm ./releases
	go build -o bin/bench-charts ./test/bench/charts
	@assets=$(assets); export TANDEM_ASSETS=$$assets; set -x; \
	  bin/bench-charts -instances=$(RELEASES) -packages=$(CHARTS) -qps=$(QPS) -burst=$(BURST) $(if $(OUT),-out=$(OUT))

.PHONY: bench-children
bench-children: build ## Measure the creation of CHILDREN of PARENTS (OUT=FILE.json writes a report).
	go build -o bin/bench-children ./test/bench/children
	@assets=$(assets); export TANDEM_ASSETS=$$assets; set -x; \
	  bin/bench-children -parents=$(PARENTS) -children=$(CHILDREN) -qps=$(QPS) -burst=$(BURST) $(if $(OUT),-out=$(OUT))

.PHONY: bench-agents
bench-agents: build ## Measure what AGENTS agents cost the hub, also when it was lost (OCM=1 rolls out by a Placement, OUT=FILE.json writes a report).
	go build -o bin/bench-agents ./test/bench/agents
	@assets=$(assets); $(if $(OCM),ocm=$(ocmassets); )export TANDEM_ASSETS=$$assets; set -x; \
	  bin/bench-agents -agents=$(AGENTS) -addons=$(CHAIN) '-skip=$(SKIP)' $(if $(OCM),-ocm=$$ocm) $(if $(OUT),-out=$(OUT))

##@ Maintain

.PHONY: generate
generate: ## Generate deep copies, resource definitions, the command reference and the chart.
	$(tool) controller-gen object paths=./pkg/api/...
	$(tool) controller-gen crd paths=./pkg/api/kudo/... output:crd:dir=manifests/crds
	$(tool) controller-gen crd paths=./pkg/api/addon/... output:crd:stdout | \
	  go run ./hack/crds -upstream "$$(go list -m -f '{{.Dir}}' open-cluster-management.io/api)" -output manifests/crds
	go run ./hack/reference -output docs/reference
	go run ./hack/chart -deploy deploy -output deploy/chart/templates

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum.
	go mod tidy
	go -C hack/images mod tidy
	go -C hack/tools mod tidy
	go -C hack/golangci mod tidy
	go -C hack/helm mod tidy

.PHONY: lint
lint: ## Check format, correctness, imports, complexity, structure and style.
	hack/lint.sh

# A page starts without a sandbox, as its reader does, and stops the sandbox at the end.
.PHONY: tutorial
tutorial: demo-down ## Run the commands of the tutorials (PAGES) and update their output there (CHECK=1 compares only).
	@trap '$(MAKE) -s demo-down' EXIT; unset MAKEFLAGS MAKELEVEL; go run ./hack/tutorial $(if $(CHECK),-check) $(PAGES)

.PHONY: tutorial-kind
tutorial-kind: ## Run the commands of docs/kind.md on kind clusters and update their output there (CHECK=1 compares only).
	@hack/kind.sh page $(if $(CHECK),--check)

.PHONY: docs
docs: ## Build the documentation as a site in bin/docs (requires Node.js and npm).
	npm --prefix hack/site ci --ignore-scripts --no-audit --no-fund
	rm -rf hack/site/pages && mkdir hack/site/pages && cp -R README.md docs hack/site/pages
	npm --prefix hack/site run build

.PHONY: verify
verify: generate tidy lint ## Generate, tidy and lint; fail if the working tree is dirty afterwards.
	@changes=$$(git status --porcelain); [ -z "$$changes" ] || { \
	  echo "verify: these files differ from the committed ones:"; echo "$$changes"; git --no-pager diff; exit 1; }

.PHONY: clean
clean: demo-down ## Stop the sandbox and remove build results (but not the cache of control plane programs).
	rm -rf bin dist .sandbox
