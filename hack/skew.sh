#!/usr/bin/env bash
# Runs the quick end-to-end tests with one program of an earlier commit at a time, beside the others of the working tree, and prints the result of each.
#
#   hack/skew.sh COMMIT [PROGRAM...]      addon-agent and kubectl-addon by default: addon-manager is upgraded before them
#
# It requires the control plane programs, whose folder is in TANDEM_ASSETS. bin/ has the programs of the working tree again when it ends.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
commit=$1
shift
[ $# -gt 0 ] || set -- addon-agent kubectl-addon

before=$(mktemp -d)
trap 'git worktree remove --force "$before/source" || true; rm -rf "$before" || true; make --no-print-directory build || true' EXIT
git worktree add --quiet --detach "$before/source" "$commit"
make --no-print-directory -C "$before/source" build
make --no-print-directory build

results=() status=0
for program in "$@"; do
  echo "skew: $program of $commit"
  cp "bin/$program" "$before/$program"
  cp "$before/source/bin/$program" "bin/$program.next" && mv "bin/$program.next" "bin/$program"
  result=passed
  go tool ginkgo run --procs=2 --no-color --succinct --vet=off --timeout=20m --label-filter='quick && !same-version' ./test/e2e || result=failed
  mv "$before/$program" "bin/$program"
  [ "$result" = passed ] || status=1
  results+=("$(printf '%-14s %s' "$program" "$result")")
done
printf 'skew: %s\n' "${results[@]}"
exit "$status"
