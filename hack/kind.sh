#!/usr/bin/env bash
# Runs Tandem in containers on kind clusters: a hub and two managed clusters. It requires Docker, kind and kubectl, and clusteradm for OCM.
#
#   hack/kind.sh up [--ocm] [--dry-run]     create the clusters and install Tandem, optionally with OCM
#   hack/kind.sh down [--dry-run]           delete them
#
# --dry-run prints the commands without running them. The clusters' kubeconfigs are bin/kind/*.kubeconfig.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { sed -n '4,5s/^# *//p' "$0" >&2; exit 2; }

action='' ocm='' dry_run=''
for argument in "$@"; do
  case $argument in
    up | down) [ -z "$action" ] || usage; action=$argument ;;
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
# The address of the hub's API server for the other clusters' containers.
hub_server=https://tandem-hub-control-plane:6443

# Prints a command and runs it.
run() {
  printf '+'; printf ' %q' "$@"; echo
  [ -n "$dry_run" ] || "$@"
}

need() {
  [ -n "$dry_run" ] && return
  for program in "$@"; do
    command -v "$program" >/dev/null || { echo "kind: $program is not installed, or not in PATH" >&2; exit 1; }
  done
}

file() { echo "$folder/$1.kubeconfig"; }

# cluster NAME ARCHIVE: creates a cluster and loads an image.
cluster() {
  run kind create cluster --name "tandem-$1" --kubeconfig "$(file "$1")" --wait 3m
  run kind load image-archive "bin/images/$2.tar" --name "tandem-$1"
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

up() {
  need docker kind kubectl go make ${ocm:+clusteradm}
  run make images build REPOSITORY="$repository" VERSION="$version" PLATFORMS="linux/$(go env GOARCH)"
  run mkdir -p "$folder"
  cluster hub addon-manager
  for name in "${managed[@]}"; do
    cluster "$name" addon-agent
  done
  if [ -n "$ocm" ]; then up_with_ocm; else up_without_ocm; fi
  echo "To run the end-to-end tests on these clusters:"
  echo "  make test-e2e HUB=$(file hub) CLUSTERS=$(file cluster1),$(file cluster2)"
}

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
  need kind
  for name in "${managed[@]}" hub; do
    run kind delete cluster --name "tandem-$name"
  done
  run rm -rf "$folder"
}

"$action"
