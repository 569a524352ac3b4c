#!/usr/bin/env bash
# Runs suites of integration tests, and the quick end-to-end tests, on control planes of other versions of Kubernetes, one after the other, and prints the
# time and the result of each.
#
#   hack/versions.sh "VERSION..." "SUITE..."      such as "1.34 1.36" "hub agent e2e-quick"
#
# A version is a folder of hack/controlplane/versions, or the default one of hack/controlplane/programs. Its control plane is built once, which takes minutes.
# Specs about mutating admission policies are left out before Kubernetes 1.36.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
versions=$1 suites=$2
unset KUBEBUILDER_ASSETS TANDEM_ASSETS

default=$(sed -n 's/^[[:space:]]*k8s\.io\/kubernetes v\(1\.[0-9]*\)\..*/\1/p' hack/controlplane/programs/go.mod)
for version in $versions; do
  [ "$version" = "$default" ] || { [[ $version =~ ^1\.[0-9.]+$ ]] && [ -d "hack/controlplane/versions/$version" ]; } || {
    echo "versions: no version \"$version\": use $(ls hack/controlplane/versions | tr '\n' ' ')or $default" >&2
    exit 2
  }
done

results=() status=0
for version in $versions; do
  export TANDEM_KUBERNETES=$version
  [ "$version" != "$default" ] || TANDEM_KUBERNETES= # it has no folder
  started=$SECONDS
  make --no-print-directory controlplane || {
    results+=("$(printf '%-6s %-12s %-7s %5ss' "$version" controlplane failed $((SECONDS - started)))") status=1
    continue
  }
  labels= minor=${version#1.}
  [ "${minor%%.*}" -ge 36 ] || labels='!mutating-policies'
  for suite in $suites; do
    echo "versions: $suite on Kubernetes $version"
    started=$SECONDS result=passed
    case $suite in
      e2e-quick) make --no-print-directory test-e2e-quick LABELS="$labels" || result=failed ;;
      *) make --no-print-directory test-integration suites="$suite" LABELS="$labels" || result=failed ;;
    esac
    [ "$result" = passed ] || status=1
    results+=("$(printf '%-6s %-12s %-7s %5ss' "$version" "$suite" "$result" $((SECONDS - started)))")
  done
done
printf 'versions: %s\n' "${results[@]}"
exit "$status"
