#!/usr/bin/env bash
# Checks all Go code that git does not ignore, committed or not: format, vet, staticcheck, cyclomatic complexity, and in test/structure the
# imports between packages and the length of functions. All checks run; the script fails if one of them fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool() { go tool -modfile=hack/tools/go.mod "$@"; }

# The code without generated files, and the tests.
mapfile -t tests < <(git ls-files -co --exclude-standard '*_test.go')
mapfile -t code < <(git ls-files -co --exclude-standard '*.go' ':!*_test.go' ':!*zz_generated*')

formatted() {
  local files
  files=$(gofmt -l "${code[@]}" "${tests[@]}") || return
  [ -z "$files" ] || { printf '%s: not formatted, run gofmt -w\n' $files; return 1; }
}

# Checks the structure and prints the median length of the methods Reconcile.
structured() {
  go test -count=1 ./test/structure || return
  go test -count=1 -v -run=TestReconcileIsShort ./test/structure | sed -n 's/.*: \([0-9]* methods Reconcile\)/\1/p'
}

failed=()
check() {
  local name=$1
  shift
  echo "lint: $name"
  "$@" || failed+=("$name")
}

check "format" formatted
check "vet" go vet ./...
check "vet of hack/images" go -C hack/images vet ./...
check "staticcheck" tool staticcheck ./...
check "staticcheck of hack/images" go -C hack/images tool -modfile=../tools/go.mod staticcheck ./...
check "complexity of code, at most 11" tool gocyclo -over 11 "${code[@]}"
check "complexity of tests, at most 20" tool gocyclo -over 20 "${tests[@]}"
check "structure" structured

[ ${#failed[@]} -eq 0 ] || { printf 'lint: %s failed\n' "${failed[@]}"; exit 1; }
