#!/usr/bin/env bash
# Runs suites of integration tests, and the quick end-to-end tests, on control planes of other versions of Kubernetes, one after the other, and prints the
# time and the result of each.
#
#   hack/versions.sh "VERSION..." "SUITE..."      such as "1.34 1.36" "hub agent e2e-quick"
#
# The control plane of a version is built once, which takes minutes. Specs about mutating admission policies are left out before Kubernetes 1.36.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
versions=$1 suites=$2
unset KUBEBUILDER_ASSETS TANDEM_ASSETS

for version in $versions; do
  [ -d "hack/controlplane/versions/$version" ] || { echo "versions: $version is not a folder of hack/controlplane/versions" >&2; exit 1; }
done

results=() status=0
for version in $versions; do
  export TANDEM_KUBERNETES=$version
  make --no-print-directory controlplane || { results+=("$version control plane failed"); status=1; continue; }
  labels=
  [ "${version#1.}" -ge 36 ] || labels='!mutating-policies'
  for suite in $suites; do
    echo "versions: $suite on Kubernetes $version"
    started=$SECONDS result=passed
    case $suite in
      e2e-quick) make --no-print-directory test-e2e-quick LABELS="$labels" || result=failed ;;
      *) make --no-print-directory test-integration suites="$suite" LABELS="$labels" || result=failed ;;
    esac
    [ "$result" = passed ] || status=1
    results+=("$(printf '%-6s %-10s %-7s %5ss' "$version" "$suite" "$result" $((SECONDS - started)))")
  done
done
printf 'versions: %s\n' "${results[@]}"
exit "$status"
