#!/usr/bin/env bash
# Checks all Go code: the format of every file that git does not ignore, both modules with golangci-lint (.golangci.yml says what), and in
# test/structure what no linter expresses. All checks run; the script fails if one of them fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The linter's results name files: a cache that several checkouts share names those of another checkout, which no exclusion covers.
export GOLANGCI_LINT_CACHE=$PWD/bin/golangci-lint

# Finds badly formatted files also in modules that are not linted, which contain little code.
formatted() {
  local files
  files=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l) || return
  [ -z "$files" ] || { printf '%s: not formatted, run gofmt -w\n' $files; return 1; }
}

# Lints the module in a folder. The linter is built once, into Go's build cache. It takes 3.9 GB of memory without a cache; with less, it takes half
# as long again, for the collection of garbage.
linted() {
  GOMEMLIMIT=${GOMEMLIMIT:-4GiB} go -C "$1" tool -modfile="$PWD/hack/golangci/go.mod" golangci-lint run --config="$PWD/.golangci.yml" ./...
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
check "golangci-lint" linted .
check "golangci-lint of hack/images" linted hack/images
check "structure" structured

[ ${#failed[@]} -eq 0 ] || { printf 'lint: %s failed\n' "${failed[@]}"; exit 1; }
