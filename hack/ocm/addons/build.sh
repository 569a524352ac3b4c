#!/usr/bin/env bash
# Builds real add-ons of OCM's from Go modules into a cache folder, once, and prints that folder on standard output.
#
#   hack/ocm/addons/build.sh
#
# Below images/ lies for each of their images what its containers run, by the image's name; below manifests/ what their charts install
# into the namespace open-cluster-management-addon. The folder lies in the cache of hack/controlplane; a change of versions, or of
# anything here, makes a new one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The programs, by image and name there, as the add-ons' Dockerfiles have it.
programs="
managed-serviceaccount/msa  open-cluster-management.io/managed-serviceaccount/cmd
cluster-proxy/manager       open-cluster-management.io/cluster-proxy/cmd/addon-manager
cluster-proxy/agent         open-cluster-management.io/cluster-proxy/cmd/addon-agent
cluster-proxy/proxy-server  sigs.k8s.io/apiserver-network-proxy/cmd/server
cluster-proxy/proxy-agent   sigs.k8s.io/apiserver-network-proxy/cmd/agent
"
# The add-ons, and the values of their charts: the proxy's agents dial a server on this machine.
addons="
managed-serviceaccount  agentInstallAll=true
cluster-proxy           proxyServer.entrypointAddress=127.0.0.1
"

cache=${TANDEM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem}
key=$(cat go.mod build.sh template/*.go | git hash-object --stdin | cut -c1-12)
out=$cache/addons-$key
mkdir -p "$out/images" "$out/manifests"

say() { printf '%s\n' "$*" >&2; }

# One build at a time: a second caller waits and then finds everything there.
exec 9>"$out/.lock"
if command -v flock >/dev/null && ! flock -n 9; then
  say "add-ons: another build is running in $out, waiting for it"
  flock 9
fi

export GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly
started=$SECONDS

# The result is moved into place once it is complete.
while read -r program package; do
  [ -n "$program" ] && [ ! -x "$out/images/$program" ] || continue
  say "add-ons: building $program (from Go modules; about five minutes on two cores for all, once)"
  go build -trimpath -ldflags "-s -w" -o "$out/.program" "$package"
  mkdir -p "$(dirname "$out/images/$program")"
  mv "$out/.program" "$out/images/$program"
done <<<"$programs"

while read -r addon values; do
  [ -n "$addon" ] && [ ! -s "$out/manifests/$addon.yaml" ] || continue
  chart=$(go list -m -f '{{.Dir}}' "open-cluster-management.io/$addon")/charts/$addon
  go run ./template -namespace=open-cluster-management-addon -set="$values" "$chart" >"$out/.manifest"
  mv "$out/.manifest" "$out/manifests/$addon.yaml"
done <<<"$addons"

[ $((SECONDS - started)) -lt 5 ] || say "add-ons: built in $((SECONDS - started))s"
printf '%s\n' "$out"
