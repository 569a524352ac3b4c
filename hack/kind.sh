#!/usr/bin/env bash
# Runs Tandem in containers on kind clusters: a hub and two managed clusters, with Docker or podman. The hub and cluster1 have two nodes.
# kind is built, and kubectl too if it is missing; --ocm requires clusteradm.
#
#   hack/kind.sh up [--ocm] [--dry-run]     create the clusters and install Tandem, optionally with OCM
#   hack/kind.sh down [--dry-run]           delete them
#   hack/kind.sh test                       create them, run the end-to-end tests on them, and delete them (KEEP=1 keeps them)
#
# --dry-run prints the commands without running them. The clusters' kubeconfigs are bin/kind/*.kubeconfig. KIND_EXPERIMENTAL_PROVIDER is
# docker or podman, and KIND_IMAGE a node image: by default kind's own, or if it cannot be pulled, one that hack/kind/build.sh builds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { sed -n '5,7s/^# *//p' "$0" >&2; exit 2; }

action='' ocm='' dry_run=''
for argument in "$@"; do
  case $argument in
    up | down | test) [ -z "$action" ] || usage; action=$argument ;;
    --ocm) ocm=yes ;;
    --dry-run) dry_run=yes ;;
    *) usage ;;
  esac
done
[ -n "$action" ] || usage

folder=bin/kind
managed=(cluster1 cluster2)
repository=localhost/tandem-addons
version=kind
next=$repository/addon-agent:next
network=tandem-kind
# The name of node images that are built.
built=localhost/tandem-kind-node
# The address of the hub's API server for the other clusters' containers.
hub_server=https://tandem-hub-control-plane:6443

# Prints a command and runs it.
run() {
  printf '+'; printf ' %q' "$@"; echo
  [ -n "$dry_run" ] || "$@"
}

fail() { echo "kind: $*" >&2; exit 1; }

need() {
  [ -n "$dry_run" ] && return
  for program in "$@"; do
    command -v "$program" >/dev/null || fail "$program is not installed, or not in PATH"
  done
}

file() { echo "$folder/$1.kubeconfig"; }

# Sets the variable engine to the program that runs containers, for kind too, and the network of the nodes, which only these clusters use.
find_engine() {
  engine=${KIND_EXPERIMENTAL_PROVIDER:-}
  if [ -z "$engine" ]; then
    if [ -n "$dry_run" ] || docker info >/dev/null 2>&1; then engine=docker
    elif command -v podman >/dev/null; then engine=podman
    else fail "neither Docker nor podman is installed; on Debian: apt-get install podman runc netavark aardvark-dns iptables debootstrap"
    fi
  fi
  need "$engine"
  export KIND_EXPERIMENTAL_PROVIDER=$engine KIND_EXPERIMENTAL_DOCKER_NETWORK=$network KIND_EXPERIMENTAL_PODMAN_NETWORK=$network
  [ "$engine" = docker ] || configure_podman
}

# A machine whose root lacks CAP_SYS_RESOURCE cannot raise limits, or lower the score of processes that are killed if memory is short.
limited() {
  [ "$(id -u)" = 0 ] && [ -r /proc/self/status ] && [ $((0x$(sed -n 's/^CapEff:\t//p' /proc/self/status) >> 24 & 1)) = 0 ]
}

cgroup_v1() { [ -d /sys/fs/cgroup/memory ] && [ ! -f /sys/fs/cgroup/cgroup.controllers ]; }

# Configures podman for machines on which its defaults do not start a node.
configure_podman() {
  local lines=()
  local files processes
  files=$(ulimit -Hn) processes=30000 # podman lowers its own limit of processes
  if limited; then lines+=('[containers]' "default_ulimits = [\"nofile=$files:$files\", \"nproc=$processes:$processes\"]"); fi
  if cgroup_v1; then need runc; lines+=('[engine]' 'runtime = "runc"'); fi # crun refuses the hybrid of both versions
  [ ${#lines[@]} -gt 0 ] && [ -z "${CONTAINERS_CONF:-}" ] && [ -z "$dry_run" ] || return 0
  mkdir -p "$folder"
  printf '%s\n' "${lines[@]}" >"$folder/containers.conf"
  export CONTAINERS_CONF=$PWD/$folder/containers.conf
}

# configuration ROLE...: prints kind's configuration of a cluster with nodes of these roles. Control planes run pods, as in clusters of one node.
configuration() {
  printf '%s\n' "kind: Cluster" "apiVersion: kind.x-k8s.io/v1alpha4" "nodes:"
  printf -- '- role: %s\n' "$@"
  echo "kubeadmConfigPatches:"
  if [ $# -gt 1 ]; then echo "- '{kind: InitConfiguration, nodeRegistration: {taints: []}}'"; fi
  if cgroup_v1; then echo "- '{kind: KubeletConfiguration, failCgroupV1: false}'"; fi
  if limited; then
    printf '%s\n' "containerdConfigPatches:" "- |" '  [plugins."io.containerd.grpc.v1.cri"]' "    restrict_oom_score_adj = true"
  fi
}

# Sets the variable image to the node image: the given one, kind's own if it can be pulled, else one that is built, from the variable archive.
# With a built node image, images of the software in the example packages are built, too.
find_image() {
  image=${KIND_IMAGE:-} archive='' software=''
  [ -z "$image" ] && [ -z "$dry_run" ] || return 0
  local own
  go -C hack/kind mod download sigs.k8s.io/kind
  own=$(go -C hack/kind list -m -f '{{.Dir}}' sigs.k8s.io/kind)/pkg/apis/config/defaults/image.go
  own=$(sed -n 's/^const Image = "\(.*\)"/\1/p' "$own")
  if "$engine" image inspect "docker.io/$own" >/dev/null 2>&1 || "$engine" pull --quiet "docker.io/$own" >/dev/null 2>&1; then
    image=$own
    return
  fi
  echo "kind: ${own%@*} cannot be pulled here"
  archive=$(hack/kind/build.sh node)
  image=$built:$(basename "$(dirname "$archive")")
  software=$(hack/kind/software.sh)
}

import_image() {
  "$engine" image inspect "$image" >/dev/null 2>&1 ||
    run "$engine" import --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' --change 'ENV container=docker' \
      --change 'STOPSIGNAL SIGRTMIN+3' "$archive" "$image"
}

# Sets the variable kind to the program, and puts kubectl into PATH.
find_programs() {
  kind=kind
  [ -z "$dry_run" ] || return 0
  kind=$(hack/kind/build.sh kind)
  command -v kubectl >/dev/null || PATH=$(go run ./hack/controlplane kubectl):$PATH
}

# cluster NAME NODES ARCHIVE...: creates a cluster and loads images.
cluster() {
  local name=tandem-$1 file
  file=$(file "$1")
  [ -n "$dry_run" ] || configuration control-plane $([ "$2" = 1 ] || echo worker) >"$folder/$name.yaml"
  run "$kind" create cluster --name "$name" --kubeconfig "$file" --config "$folder/$name.yaml" ${image:+--image "$image"} --wait 3m
  shift 2
  for file in "$@"; do run "$kind" load image-archive "$file" --name "$name"; done
}

# rename_agent CLUSTER: gives the image of addon-agent a second name on the nodes, which specs upgrade the agent to.
rename_agent() {
  local node
  for node in $([ -n "$dry_run" ] || "$kind" get nodes --name "tandem-$1"); do
    run "$engine" exec "$node" ctr --namespace k8s.io images tag "$repository/addon-agent:$version" "$next"
  done
}

# install CLUSTER FOLDER PROGRAM [LINE...]: installs a folder of deploy/ with the loaded image.
install() {
  local cluster=$1 from=$2 program=$3
  shift 3
  run mkdir -p "$folder/$from"
  [ -n "$dry_run" ] || {
    printf '%s\n' "resources: [../../../deploy/$from]" \
      "images: [{name: $program, newName: $repository/$program, newTag: $version}]" "$@" >"$folder/$from/kustomization.yaml"
  }
  run kubectl --kubeconfig "$(file "$cluster")" apply --server-side -k "$folder/$from"
}

ready() { run kubectl --kubeconfig "$(file "$1")" rollout status "deployment/$2" -n tandem-system --timeout 5m; }

# Prints a kustomization line for a hub with an API server that does not serve mutating admission policies.
component() {
  [ -n "$dry_run" ] && return
  kubectl --kubeconfig "$(file hub)" get --raw /apis/admissionregistration.k8s.io/v1 | grep -q '"mutatingadmissionpolicies"' ||
    echo "components: [../../../deploy/before-1.36]"
}

# Finds or builds all that the clusters need.
prepare() {
  need go make ${ocm:+clusteradm}
  find_engine
  find_programs
  find_image
  run make images build REPOSITORY="$repository" VERSION="$version" PLATFORMS="linux/$(go env GOARCH)"
  run mkdir -p "$folder"
}

create() {
  [ -z "$archive" ] || import_image
  # Nodes mount this folder, which podman does not create.
  if [ "$engine" = podman ] && [ ! -d /lib/modules ]; then run mkdir /lib/modules; run touch "$folder/modules"; fi
  cluster hub 2 bin/images/addon-manager.tar
  cluster cluster1 2 bin/images/addon-agent.tar ${software:+"$software"}
  cluster cluster2 1 bin/images/addon-agent.tar ${software:+"$software"}
  for name in "${managed[@]}"; do rename_agent "$name"; done
  [ -n "$dry_run" ] || "$engine" exec tandem-cluster1-control-plane getent hosts tandem-hub-control-plane >/dev/null ||
    fail "containers do not find each other by name; with podman, install netavark and aardvark-dns"
  if [ -n "$ocm" ]; then up_with_ocm; else up_without_ocm; fi
  echo "To run the end-to-end tests on these clusters:"
  echo "  TANDEM_NEXT_AGENT=$next make test-e2e HUB=$(file hub) CLUSTERS=$(file cluster1),$(file cluster2)"
}

up() { prepare; create; }

up_without_ocm() {
  install hub hub addon-manager "$(component)"
  ready hub addon-manager
  for name in "${managed[@]}"; do
    run bin/kubectl-addon join "$name" --kubeconfig "$(file hub)" --cluster-kubeconfig "$(file "$name")" --hub-server "$hub_server"
    install "$name" agent addon-agent
    ready "$name" addon-agent
  done
}

# OCM registers the clusters and delivers addon-agent; the hub's AddOnDeploymentConfig sets the image.
up_with_ocm() {
  local token=TOKEN server=https://127.0.0.1
  run clusteradm init --wait --kubeconfig "$(file hub)"
  if [ -z "$dry_run" ]; then
    token=$(clusteradm get token --kubeconfig "$(file hub)" | sed -n 's/^token=//p')
    server=$(kubectl --kubeconfig "$(file hub)" config view -o jsonpath='{.clusters[0].cluster.server}')
  fi
  for name in "${managed[@]}"; do
    run clusteradm join --hub-token "$token" --hub-apiserver "$server" --force-internal-endpoint-lookup \
      --cluster-name "$name" --wait --kubeconfig "$(file "$name")"
    run clusteradm accept --clusters "$name" --wait --kubeconfig "$(file hub)"
  done
  install hub hub-ocm addon-manager "$(component)" \
    "patches:" \
    "- target: {kind: AddOnDeploymentConfig, name: addon-agent}" \
    "  patch: '[{op: replace, path: /spec/customizedVariables/0/value, value: $repository/addon-agent:$version}]'"
  ready hub addon-manager
  for name in "${managed[@]}"; do
    run clusteradm addon enable --names tandem --clusters "$name" --kubeconfig "$(file hub)"
    run kubectl --kubeconfig "$(file hub)" wait managedclusteraddon/tandem -n "$name" --for=condition=Available --timeout=5m
  done
}

down() {
  need go
  find_engine
  find_programs
  for name in "${managed[@]}" hub; do
    # On a busy machine, the processes of a node may take longer to end than podman waits.
    run "$kind" delete cluster --name "tandem-$name" || run "$kind" delete cluster --name "tandem-$name"
  done
  [ -n "$dry_run" ] || ! "$engine" network inspect "$network" >/dev/null 2>&1 || run "$engine" network rm "$network"
  for image in $([ -n "$dry_run" ] || "$engine" images --quiet "$built"); do run "$engine" rmi "$image"; done # the cache has its archive
  [ ! -f "$folder/modules" ] || run rmdir /lib/modules
  run rm -rf "$folder"
}

# Keeps the exit code of the tests.
finish() {
  local code=$?
  trap - EXIT
  if [ -n "${KEEP:-}" ]; then echo "kind: the clusters are kept; delete them with hack/kind.sh down"; else down; fi
  exit "$code"
}

run_tests() {
  prepare
  trap finish EXIT
  create
  TANDEM_NEXT_AGENT=$next make test-e2e HUB="$(file hub)" CLUSTERS="$(file cluster1),$(file cluster2)"
}

if [ "$action" = test ]; then run_tests; else "$action"; fi
