#!/usr/bin/env bash
# Packs images of OCM's own programs into archives, for machines that cannot pull the published ones, under the published names. The
# programs are those of hack/ocm/build.sh, and the operator that installs them, from the same Go module. For tests only.
#
#   hack/kind/ocm.sh FOLDER     writes one archive for each image into the folder
set -euo pipefail
[ $# = 1 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../ocm"

module=open-cluster-management.io/ocm
programs=$(./build.sh)
version=$(GOWORK=off go list -m -f '{{.Version}}' "$module")
work=$out/.work
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT

# pack IMAGE FILE: packs a program in the root folder, where the published images have it, for their user.
pack() {
  local name=$1 program=$2 layer
  tar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=755 -C "$(dirname "$program")" -cf "$work/layer.tar" "$(basename "$program")"
  layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"%s","os":"linux","config":{"User":"10001"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(go env GOARCH)" "$layer" >"$work/config.json"
  printf '[{"Config":"config.json","RepoTags":["quay.io/open-cluster-management/%s:%s"],"Layers":["layer.tar"]}]' \
    "$name" "$version" >"$work/manifest.json"
  tar -C "$work" -cf "$out/$name.tar" manifest.json config.json layer.tar
}

echo "kind: packing images of OCM $version" >&2
GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -ldflags "-s -w -X $module/pkg/version.versionFromGit=$version" \
  -o "$work/" "$module/cmd/registration-operator"
pack registration-operator "$work/registration-operator"
for program in registration work placement; do pack "$program" "$programs/$program"; done
pack addon-manager "$programs/addon"
