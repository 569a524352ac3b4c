#!/usr/bin/env bash
# Runs Tandem in containers on kind clusters: a hub and two managed clusters, with Docker or podman. The hub and cluster1 have two nodes.
# kind is built, and kubectl too if it is missing. --ocm installs OCM by its own operators; their images are built where none can be pulled.
#
#   hack/kind.sh up [--ocm | --release FOLDER] [--dry-run]    create the clusters and install Tandem, optionally with OCM
#   hack/kind.sh down [--dry-run]                             delete them
#   hack/kind.sh test [--release FOLDER]    create them, run the end-to-end tests on them, and delete them (KEEP=1 keeps them)
#   hack/kind.sh page [--check]             run the commands of docs/kind.md, which create other clusters, and record or check their output
#
# --release installs the release in FOLDER, which `make release` writes: its images, manifests and plugin. --dry-run prints the commands without running
# them. The clusters' kubeconfigs are bin/kind/*.kubeconfig. KIND_EXPERIMENTAL_PROVIDER is docker or podman, and KIND_IMAGE a node image: by default
# kind's own, or if it cannot be pulled, one that hack/kind/build.sh builds.
set -euo pipefail
user_folder=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/kind/limits.sh

fail() { echo "kind: $*" >&2; exit 1; }

usage() { sed -n '5,8s/^# *//p' "$0" >&2; exit 2; }

action='' ocm='' dry_run='' check='' release=''
while [ $# -gt 0 ]; do
  case $1 in
    up | down | test | page) [ -z "$action" ] || usage; action=$1 ;;
    --ocm) ocm=yes ;;
    --release)
      [ $# -gt 1 ] && [ -n "$2" ] && [ -z "$release" ] || usage
      case $2 in /*) release=$2 ;; *) release=$user_folder/$2 ;; esac
      shift
      ;;
    --dry-run) dry_run=yes ;;
    --check) check=yes ;;
    *) usage ;;
  esac
  shift
done
[ -n "$action" ] || usage
[ -z "$check" ] || [ "$action" = page ] || usage
[ -z "$ocm$dry_run" ] || [ "$action" != page ] || usage
[ -z "$release" ] || [[ -z $ocm && ($action = up || $action = test) ]] || usage

folder=bin/kind
managed=(cluster1 cluster2)
repository=localhost/tandem-addons
version=kind
# The second name of addon-agent's image, for a spec that changes the image of the Deployment, which OCM would revert.
next=$repository/addon-agent:next
[ -z "$ocm" ] || next=''
network=tandem-kind
# The name of node images that are built.
built=localhost/tandem-kind-node
# The plugin that adds clusters.
plugin=bin/kubectl-addon
if [ -n "$release" ]; then
  read -r repository version < <(sed -n 's,^ *image: \(.*\)/addon-manager:\(.*\)$,\1 \2,p' "$release/install-hub.yaml") ||
    fail "$release/install-hub.yaml does not name the image of addon-manager; make release writes it"
  plugin=$folder/kubectl-addon next=$repository/addon-agent:next
fi
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
find_image() {
  image=${KIND_IMAGE:-} archive=''
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
}

# With a built node image, images of the software in the example packages are built, too: the archive in the variable software.
find_software() {
  software=''
  [ -z "$archive" ] || software=$(hack/kind/software.sh)
}

# Sets the variables ocm_version and ocm_module to the version and the folder of OCM's module, and ocm_images to a folder of its images,
# where the node image is built.
find_ocm() {
  ocm_version=VERSION ocm_module='' ocm_images=''
  [ -n "$ocm" ] && [ -z "$dry_run" ] || return 0
  go -C hack/ocm mod download open-cluster-management.io/ocm
  read -r ocm_version ocm_module < <(go -C hack/ocm list -m -f '{{.Version}} {{.Dir}}' open-cluster-management.io/ocm)
  [ -n "$archive" ] || return 0
  ocm_images=$folder/ocm/images
  hack/kind/ocm.sh "$ocm_images"
}

import_image() {
  local changes=(--change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' --change 'ENV container=docker')
  [ "$engine" = docker ] || changes+=(--change 'STOPSIGNAL SIGRTMIN+3') # Docker refuses it; nodes are removed without being stopped
  "$engine" image inspect "$image" >/dev/null 2>&1 || run "$engine" import "${changes[@]}" "$archive" "$image"
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

# install CLUSTER FOLDER [LINE]: installs a folder of deploy/ with the loaded images.
install() {
  if [ -n "$release" ]; then
    run kubectl --kubeconfig "$(file "$1")" apply --server-side -f "$release/install-$2${3:+-before-1.36}.yaml"
    return
  fi
  run mkdir -p "$folder/$2"
  [ -n "$dry_run" ] || {
    echo "resources: [../../../deploy/$2]"
    echo "images:"
    for program in addon-manager addon-agent; do echo "- {name: $program, newName: $repository/$program, newTag: $version}"; done
    echo "${3:-}"
  } >"$folder/$2/kustomization.yaml"
  run kubectl --kubeconfig "$(file "$1")" apply --server-side -k "$folder/$2"
}

ready() { run kubectl --kubeconfig "$(file "$1")" rollout status "deployment/$2" -n tandem-system --timeout 5m; }

# The programs of each node use inotify instances, of which Linux gives a user 128 by default. A node that gets none does not start; OCM's programs
# fail later, with "too many open files".
check_limits() {
  [ -z "$dry_run" ] || return 0
  local problem
  problem=$(check_inotify 100) || fail "$problem"
  [ -z "$ocm" ] || problem=$(check_inotify 400) || echo "kind: $problem" >&2
}

# Prints a kustomization line for a hub with an API server that does not serve mutating admission policies.
component() {
  [ -n "$dry_run" ] && return
  kubectl --kubeconfig "$(file hub)" get --raw /apis/admissionregistration.k8s.io/v1 | grep -q '"mutatingadmissionpolicies"' ||
    echo "components: [../../../deploy/before-1.36]"
}

# Finds or builds all that the clusters need.
prepare() {
  need go make
  check_limits
  find_engine
  find_programs
  find_image
  find_software
  find_ocm
  run mkdir -p "$folder"
  if [ -n "$release" ]; then
    run tar -xzf "$release/kubectl-addon_${version}_$(go env GOOS)_$(go env GOARCH).tar.gz" -C "$folder" kubectl-addon
  else
    run make images build REPOSITORY="$repository" VERSION="$version" PLATFORMS="linux/$(go env GOARCH)"
  fi
}

# packed PROGRAM: prints the archive of its image.
packed() { if [ -n "$release" ]; then echo "$release/$1_${version}_oci.tar"; else echo "bin/images/$1.tar"; fi; }

# Prepares this machine for nodes.
prepare_nodes() {
  [ -z "$archive" ] || import_image
  # Nodes mount this folder, which podman does not create.
  if [ "$engine" = podman ] && [ ! -d /lib/modules ]; then run mkdir /lib/modules; run touch "$folder/modules"; fi
}

create() {
  prepare_nodes
  local images=("$(packed addon-agent)" ${software:+"$software"})
  [ -z "$ocm_images" ] || images+=("$ocm_images"/{registration,registration-operator,work}.tar)
  cluster hub 2 "$(packed addon-manager)" ${ocm_images:+"$ocm_images"/*.tar}
  cluster cluster1 2 "${images[@]}"
  cluster cluster2 1 "${images[@]}"
  for name in "${managed[@]}"; do [ -z "$next" ] || rename_agent "$name"; done
  [ -n "$dry_run" ] || "$engine" exec tandem-cluster1-control-plane getent hosts tandem-hub-control-plane >/dev/null ||
    fail "containers do not find each other by name; with podman, install netavark and aardvark-dns"
  if [ -n "$ocm" ]; then up_with_ocm; else up_without_ocm; fi
  echo "To run the end-to-end tests on these clusters:"
  echo "  ${next:+TANDEM_NEXT_AGENT=$next }make test-e2e HUB=$(file hub) CLUSTERS=$(file cluster1),$(file cluster2)"
}

up() { prepare; create; }

up_without_ocm() {
  install hub hub "$(component)"
  ready hub addon-manager
  for name in "${managed[@]}"; do
    run "$plugin" join "$name" --kubeconfig "$(file hub)" --cluster-kubeconfig "$(file "$name")" --hub-server "$hub_server"
    install "$name" agent
    ready "$name" addon-agent
  done
}

# ocm_operator CLUSTER OPERATOR RESOURCE: installs an operator of OCM from the manifests in its module, and then the resource in the file
# bin/kind/ocm/CLUSTER.yaml, from which it installs all else.
ocm_operator() {
  local to=$folder/ocm/$2
  run rm -rf "$to"
  run mkdir -p "$to"
  [ -n "$dry_run" ] || {
    cp -R "$ocm_module/deploy/$2/config" "$to/config"
    chmod -R u+w "$to" # the module cache is read-only
    printf '%s\n' "resources: [config]" "images: [{name: quay.io/open-cluster-management/registration-operator, newTag: $ocm_version}]" \
      >"$to/kustomization.yaml"
  }
  run kubectl --kubeconfig "$(file "$1")" apply --server-side -k "$to"
  run kubectl --kubeconfig "$(file "$1")" wait "crd/$3.operator.open-cluster-management.io" --for=condition=Established --timeout=1m
  run kubectl --kubeconfig "$(file "$1")" apply --server-side -f "$folder/ocm/$1.yaml"
}

# ocm_resource CLUSTER KIND NAME LINE...: writes that resource, with lines of its spec.
ocm_resource() {
  local cluster=$1 kind=$2 name=$3
  shift 3
  [ -n "$dry_run" ] ||
    printf '%s\n' "apiVersion: operator.open-cluster-management.io/v1" "kind: $kind" "metadata: {name: $name}" "spec:" \
      "  registrationImagePullSpec: quay.io/open-cluster-management/registration:$ocm_version" \
      "  workImagePullSpec: quay.io/open-cluster-management/work:$ocm_version" "$@" >"$folder/ocm/$cluster.yaml"
}

# The hub accepts clusters that register with the token of this service account.
ocm_hub() {
  local account=agent-registration-bootstrap namespace=open-cluster-management bootstrap=$folder/ocm/bootstrap.kubeconfig hub
  hub=$(file hub)
  run mkdir -p "$folder/ocm"
  ocm_resource hub ClusterManager cluster-manager \
    "  placementImagePullSpec: quay.io/open-cluster-management/placement:$ocm_version" \
    "  addOnManagerImagePullSpec: quay.io/open-cluster-management/addon-manager:$ocm_version" \
    "  registrationConfiguration:" \
    "    featureGates: [{feature: ManagedClusterAutoApproval, mode: Enable}]" \
    "    autoApproveUsers: ['system:serviceaccount:$namespace:$account']"
  ocm_operator hub cluster-manager clustermanagers
  run kubectl --kubeconfig "$hub" apply --server-side -f pkg/sandbox/cluster/ocm-hub.yaml
  run kubectl --kubeconfig "$hub" wait clustermanager/cluster-manager --for=condition=Applied --timeout=5m
  run kubectl --kubeconfig "$hub" wait deployment --all -n open-cluster-management-hub --for=condition=Available --timeout=5m
  [ -z "$dry_run" ] || return 0
  (
    umask 077
    kubectl --kubeconfig "$hub" config view --raw --minify >"$bootstrap"
    kubectl --kubeconfig "$bootstrap" config set-cluster kind-tandem-hub --server="$hub_server"
    kubectl --kubeconfig "$bootstrap" config delete-user kind-tandem-hub
    kubectl --kubeconfig "$bootstrap" config set-credentials kind-tandem-hub \
      --token="$(kubectl --kubeconfig "$hub" create token "$account" -n "$namespace" --duration=1h)"
  ) >/dev/null
}

# ocm_cluster NAME: installs a klusterlet, which registers the cluster.
ocm_cluster() {
  local cluster namespace=open-cluster-management-agent
  cluster=$(file "$1")
  ocm_resource "$1" Klusterlet klusterlet "  clusterName: $1" "  namespace: $namespace"
  run kubectl --kubeconfig "$cluster" create namespace "$namespace"
  run kubectl --kubeconfig "$cluster" create secret generic bootstrap-hub-kubeconfig -n "$namespace" \
    --from-file=kubeconfig="$folder/ocm/bootstrap.kubeconfig"
  ocm_operator "$1" klusterlet klusterlets
}

up_with_ocm() {
  ocm_hub
  for name in "${managed[@]}"; do ocm_cluster "$name"; done
  for name in "${managed[@]}"; do
    run kubectl --kubeconfig "$(file hub)" wait "managedcluster/$name" --for=create --timeout=5m
    run kubectl --kubeconfig "$(file hub)" wait "managedcluster/$name" --for=condition=ManagedClusterConditionAvailable --timeout=5m
  done
  deliver_agents
}

# OCM delivers addon-agent, with the image in the hub's AddOnDeploymentConfig.
deliver_agents() {
  install hub hub-ocm "$(component)"
  ready hub addon-manager
  for name in "${managed[@]}"; do run bin/kubectl-addon enable tandem --cluster "$name" --kubeconfig "$(file hub)"; done
  for name in "${managed[@]}"; do
    run kubectl --kubeconfig "$(file hub)" wait managedclusteraddon/tandem -n "$name" --for=condition=Available --timeout=5m
    ready "$name" addon-agent
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

# The clusters of docs/kind.md, which are those of its reader: their names have no prefix.
page_clusters=(hub cluster1)

# page_programs FOLDER: writes the programs kind and kubectl that the page runs. Its `kind create cluster` has the node image and the settings that
# this machine needs.
page_programs() {
  mkdir -p "$1"
  configuration control-plane >"$folder/page.yaml"
  {
    echo '#!/bin/sh'
    printf 'if [ "$1 $2" = "create cluster" ]; then set -- "$@" --config %q%s; fi\n' "$PWD/$folder/page.yaml" "${image:+ --image $image}"
    printf 'exec %q "$@"\n' "$kind"
  } >"$1/kind"
  chmod 755 "$1/kind"
  ln -sf "$(command -v kubectl)" "$1/kubectl"
}

finish_page() {
  local code=$? name
  trap - EXIT
  for name in "${page_clusters[@]}"; do
    "$kind" delete cluster --name "$name" --quiet || "$kind" delete cluster --name "$name"
  done
  down
  exit "$code"
}

page() {
  need go make
  check_limits
  find_engine
  find_programs
  find_image
  mkdir -p "$folder"
  prepare_nodes
  local name
  for name in $("$kind" get clusters 2>/dev/null); do
    [[ " ${page_clusters[*]} " != *" $name "* ]] || fail "the cluster $name exists; the page creates it: kind delete cluster --name $name"
    [[ $name != tandem-* ]] || fail "the cluster $name exists, and would be deleted with those of the page: hack/kind.sh down"
  done
  page_programs "$folder/programs"
  trap finish_page EXIT
  KUBECONFIG=$PWD/$folder/page.kubeconfig PATH=$PWD/$folder/programs:$PATH go run ./hack/tutorial ${check:+-check} docs/kind.md
}

if [ "$action" = test ]; then run_tests; else "$action"; fi
