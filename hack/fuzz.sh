#!/usr/bin/env bash
# Runs every fuzz target for some time, one after the other.
#
#   hack/fuzz.sh [TIME]      TIME per target, 10s by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${1:-10s}

packages=$(git ls-files -co --exclude-standard '*_test.go' | xargs -r grep -l '^func Fuzz' | xargs -r -n1 dirname | sort -u)
for package in $packages; do
  for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$package"/*_test.go | cut -c6-); do
    echo "fuzz: $package $target ($time)"
    # Minimization of inputs is limited to a second, because it would take most of the time by default.
    go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" -fuzzminimizetime=1s "./$package"
  done
done
