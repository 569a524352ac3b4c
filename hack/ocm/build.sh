#!/usr/bin/env bash
# Builds OCM's own programs from Go modules into a cache folder, once, and prints that folder on standard output.
#
#   hack/ocm/build.sh
#
# The folder also gets the manifests that OCM's operators apply, out of the same module. It lies in the cache of
# hack/controlplane; a change of versions, or of anything here, makes a new one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

module=open-cluster-management.io/ocm
version=$(awk -v module="$module" '$1 == module {print $2} $1 == "require" && $2 == module {print $3}' "$here/go.mod")

cache=${TANDEM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem}
key=$(cat "$here/go.mod" "$here/build.sh" "$here"/webhooks/*.go | git hash-object --stdin | cut -c1-12)
out=$cache/ocm-$version-$key
mkdir -p "$out"

say() { printf '%s\n' "$*" >&2; }

# One build at a time: a second caller waits and then finds everything there.
exec 9>"$out/.lock"
if command -v flock >/dev/null && ! flock -n 9; then
  say "OCM: another build is running in $out, waiting for it"
  flock 9
fi

programs="registration work placement addon webhooks"
missing=""
for program in $programs; do
  [ -x "$out/$program" ] || missing+=" $program"
done

if [ -n "$missing" ]; then
  say "OCM: building$missing ($version, from Go modules; about ten minutes on two cores, once)"
  cd "$here"
  export GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly
  rm -rf "$out/manifests" "$out/.new"
  go mod download "$module"
  cp -R "$(go list -m -f '{{.Dir}}' "$module")/manifests" "$out/manifests"
  chmod -R u+w "$out/manifests" # the module cache is read-only
  go build -trimpath -ldflags "-s -w -X $module/pkg/version.versionFromGit=$version" -o "$out/.new/" \
    "$module"/cmd/{registration,work,placement,addon} ./webhooks &
  building=$!
  trap 'kill "$building" 2>/dev/null || true' EXIT
  started=$SECONDS
  while kill -0 "$building" 2>/dev/null; do
    sleep 1
    waited=$((SECONDS - started))
    [ $((waited % 30)) -ne 0 ] || say "OCM: still building (${waited}s)"
  done
  wait "$building" || { say "OCM: building failed"; exit 1; }
  trap - EXIT
  mv "$out/.new"/* "$out/"
  rmdir "$out/.new"
  say "OCM: built$missing in $((SECONDS - started))s"
fi

printf '%s\n' "$out"
