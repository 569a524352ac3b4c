#!/usr/bin/env bash
# Builds the control plane's programs from Go modules into a cache folder, once, and prints that folder on standard output.
#
#   hack/controlplane/build.sh [PROGRAM...]      all of them, or the named ones
#
# Programs that KUBEBUILDER_ASSETS (setup-envtest) holds are not built: the folder then has links to them. The cache is
# ${TANDEM_CACHE:-${XDG_CACHE_HOME:-~/.cache}/tandem}; a change of versions, or of this file, makes a new folder in it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

kubernetes_version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3}' "$here/kubernetes/go.mod")
[ -n "$kubernetes_version" ] || kubernetes_version=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2; exit}' "$here/kubernetes/go.mod")

# program, tool module, main package
programs="\
etcd etcd go.etcd.io/etcd/server/v3
kwok kwok sigs.k8s.io/kwok/cmd/kwok
kubectl kubernetes k8s.io/kubernetes/cmd/kubectl
kube-scheduler kubernetes k8s.io/kubernetes/cmd/kube-scheduler
kube-apiserver kubernetes k8s.io/kubernetes/cmd/kube-apiserver
kube-controller-manager kubernetes k8s.io/kubernetes/cmd/kube-controller-manager"

cache=${TANDEM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tandem}
key=$(cat "$here"/*/go.mod "$here/build.sh" | git hash-object --stdin | cut -c1-12)
given=${KUBEBUILDER_ASSETS:-}
# Links go to a folder of their own, so that they do not outlive the variable.
[ -z "$given" ] || key+=-$(git hash-object --stdin <<<"$given" | cut -c1-12)
out=$cache/controlplane-$kubernetes_version-$key
mkdir -p "$out"

say() { printf '%s\n' "$*" >&2; }

# One build at a time: a second caller waits and then finds everything there.
exec 9>"$out/.lock"
if command -v flock >/dev/null && ! flock -n 9; then
  say "control plane: another build is running in $out, waiting for it"
  flock 9
fi

ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes_version"
ldflags+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$kubernetes_version")"
ldflags+=" -X k8s.io/component-base/version.gitTreeState=clean"

wanted=${*:-$(cut -d' ' -f1 <<<"$programs")}
missing=""
for program in $wanted; do
  if ! grep -q "^$program " <<<"$programs"; then
    say "control plane: no program is called $program; there are:" $(cut -d' ' -f1 <<<"$programs")
    exit 1
  elif [ -n "$given" ] && [ -x "$given/$program" ]; then
    ln -sf "$(cd "$given" && pwd)/$program" "$out/$program"
  elif [ ! -x "$out/$program" ]; then
    missing+=" $program"
  fi
done

if [ -n "$missing" ]; then
  say "control plane: building$missing (Kubernetes $kubernetes_version, from Go modules; about ten minutes on two cores, once)"
fi
for program in $missing; do
  read -r _ module package < <(grep "^$program " <<<"$programs")
  started=$SECONDS
  (
    cd "$here/$module"
    # exec: the process to be killed below is go itself.
    exec env GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly \
      go build -trimpath -ldflags "$ldflags" -o "$out/.$program.tmp" "$package"
  ) &
  building=$!
  trap 'kill "$building" 2>/dev/null || true' EXIT
  while kill -0 "$building" 2>/dev/null; do
    sleep 1
    waited=$((SECONDS - started))
    [ $((waited % 30)) -ne 0 ] || say "control plane: still building $program (${waited}s)"
  done
  wait "$building" || { say "control plane: building $program failed"; exit 1; }
  trap - EXIT
  mv "$out/.$program.tmp" "$out/$program"
  say "control plane: built $program in $((SECONDS - started))s"
done

printf '%s\n' "$out"
