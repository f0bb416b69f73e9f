#!/bin/sh
# npm test: installs, builds, lints, checks types, runs the tests; the last line is `N passed, N failed`.
# The real-runtime tests (test/e2e) run as root when CI=true (which also installs what they need; then a skipped test
# is a failure) or after `npm run e2e:setup`. The tests on a real control plane (test/cluster) run after them with
# ACTORLET_CLUSTER_TESTS=1, which builds Kubernetes where it is not in the cache yet. The first answer is about lint, types and the
# tests of what changed; all other tests follow. Arguments go to vitest: npm test -- test/supervision
# npm test -- --cost also writes what each folder of tests cost into test/cost.json and CONTRIBUTING.md.
set -u
program='npm test'
. "$(dirname -- "$0")/env.sh"

install_packages
use_node
reports=$(mktemp -d "${TMPDIR:-/tmp}/actorlet-test.XXXXXX") || exit 1
trap 'rm -rf "$reports"' EXIT
broken=''
cost=''
if [ "${1-}" = --cost ]; then
  cost=write
  shift
fi
began=$(date +%s)

# step NAME COMMAND...: one that is not a vitest project; a failure is counted, the rest still runs.
step() {
  name=$1
  shift
  echo "--- $name"
  "$@" || broken="$broken $name"
}
# side NAME COMMAND...: a step beside others; `sides` prints what they said and counts those that failed.
side() {
  name=$1
  shift
  { "$@"; echo $? >"$reports/$name.side"; } >"$reports/$name.log" 2>&1 &
}
sides() {
  wait
  for name; do
    echo "--- $name"
    cat "$reports/$name.log"
    [ "$(cat "$reports/$name.side")" = 0 ] || broken="$broken $name"
  done
}
# project NAME ARGS...: one vitest project, its outcome in $reports/NAME.json, its exit code in NAME.code, what its files cost in NAME.cost.
# The project `first` is files of `unit`.
project() {
  name=$1
  shift
  echo "--- tests: $name"
  of=$name
  [ "$name" = first ] && of=unit
  ACTORLET_COST=$reports/$name.cost vitest run --project "$of" --passWithNoTests --reporter=default --reporter=./scripts/tests/reporter.ts \
    --reporter=json --outputFile.json="$reports/$name.json" "$@"
  echo $? >"$reports/$name.code"
}
# again NAME: runs the files of a project that failed once more, alone. The summary names those that pass now as flaky.
again() {
  name=$1
  files=$("$node" scripts/tests/summary.mjs --failed-files "$reports" "$name") || return 0
  [ -n "$files" ] || return 0
  echo "--- tests: $name, once more: $(echo "$files" | tr '\n' ' ')"
  of=$name
  [ "$name" = first ] && of=unit
  # shellcheck disable=SC2086 # a list of paths without spaces
  vitest run --project "$of" --maxWorkers=1 --reporter=default --reporter=json --outputFile.json="$reports/$name.again" $files
  echo $? >"$reports/$name.again-code"
}

step build build_programs
side types npm run --silent typecheck
side lint npm run --silent lint
side unused npm run --silent unused
sides lint unused types

# The first answer.
if [ $# = 0 ]; then
  "$node" scripts/tests/related.ts >"$reports/related" || broken="$broken related"
  ACTORLET_TESTS_DONE=$(sed 1d "$reports/related")
  # shellcheck disable=SC2086 # a list of paths without spaces
  [ -z "$ACTORLET_TESTS_DONE" ] || project first $ACTORLET_TESTS_DONE
  failed=${broken:+FAILED:$broken}
  [ "$(cat "$reports/first.code" 2>/dev/null || echo 0)" = 0 ] || failed="${failed:-FAILED:} tests"
  echo
  echo "=== After $(($(date +%s) - began)) s: build, lint, types and $(head -n 1 "$reports/related"): ${failed:-passed}. All others follow. ==="
  export ACTORLET_TESTS_DONE
fi

ci=${CI:-}
case $ci in true | 1) ci=true ;; *) ci='' ;; esac
e2e=''
if [ "$(id -u)" != 0 ]; then
  why='they need root'
elif [ -n "$ci" ]; then
  machine=without-machine
  [ "${ACTORLET_NIGHTLY_TESTS:-}" = 1 ] && machine=''
  # shellcheck disable=SC2086 # a word or none
  if sh scripts/setup/e2e-setup.sh $machine; then e2e=yes; else
    broken="$broken e2e-setup"
    why='their setup failed'
  fi
elif [ -f .cache/e2e-ready ]; then
  e2e=yes
else
  why="run 'npm run e2e:setup' once (installs containerd), or set CI=true"
fi
# These mostly wait, so they run beside the others. What they print comes when those have ended.
if [ -n "$e2e" ]; then
  project e2e "$@" >"$reports/e2e.log" 2>&1 &
  beside=$!
fi
project unit "$@"
if [ -n "$e2e" ]; then
  wait "$beside"
  cat "$reports/e2e.log"
else
  echo
  echo "!!! THE REAL-RUNTIME TESTS (test/e2e) DID NOT RUN: $why !!!"
fi

ACTORLET_TESTS_DONE=''
[ -z "$e2e" ] || again e2e
[ ! -e "$reports/first.code" ] || again first
again unit

if [ -n "$e2e" ] && [ "${ACTORLET_CLUSTER_TESTS:-}" = 1 ]; then
  sh scripts/setup/api-machinery-setup.sh || broken="$broken api-machinery-setup"
  if sh scripts/setup/control-plane-setup.sh --with-kubelet; then project cluster "$@"; else broken="$broken control-plane-setup"; fi
elif [ -n "$e2e" ]; then
  echo
  echo "The tests on a real control plane (test/cluster) did not run: ACTORLET_CLUSTER_TESTS=1 or npm run nightly (about 20 minutes)"
fi

# What needs the machine for itself for minutes; npm run nightly alone sets this.
if [ -n "$e2e" ] && [ "${ACTORLET_NIGHTLY_TESTS:-}" = 1 ]; then project nightly "$@"; fi

# Parts of the tests, and all of the long lists, have other costs.
if [ $# = 0 ] && [ "${ACTORLET_ROTATION:-}" != all ]; then
  [ -n "$e2e" ] || cost=''
  step cost "$node" scripts/tests/cost.ts "${cost:-check}" "$reports"
fi

# shellcheck disable=SC2086 # a list of step names
"$node" scripts/tests/summary.mjs "$reports" "${ci:-no}" $broken
