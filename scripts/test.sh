#!/bin/sh
# npm test: installs, builds, lints, checks types, runs the tests; the last line is `N passed, N failed`.
# The real-runtime tests (test/e2e) run as root when CI=true (which also installs what they need; then a skipped test
# is a failure) or after `npm run e2e:setup`. The tests on a real control plane (test/cluster) run after them with
# ACTORLET_CLUSTER_TESTS=1, which builds Kubernetes where it is not in the cache yet. Arguments go to vitest: npm test -- test/supervision
set -u
program='npm test'
. "$(dirname -- "$0")/env.sh"

install_packages
use_node
reports=$(mktemp -d "${TMPDIR:-/tmp}/actorlet-test.XXXXXX") || exit 1
trap 'rm -rf "$reports"' EXIT
broken=''

# step NAME COMMAND...: one that is not a vitest project; a failure is counted, the rest still runs.
step() {
  name=$1
  shift
  echo "--- $name"
  "$@" || broken="$broken $name"
}
# project NAME ARGS...: one vitest project, its outcome in $reports/NAME.json, its exit code in NAME.code.
project() {
  name=$1
  shift
  echo "--- tests: $name"
  vitest run --project "$name" --passWithNoTests --reporter=default --reporter=json --outputFile.json="$reports/$name.json" "$@"
  echo $? >"$reports/$name.code"
}
# again NAME: runs the files of a project that failed once more, alone. The summary names those that pass now as flaky.
again() {
  name=$1
  files=$("$node" scripts/test-summary.mjs --failed-files "$reports" "$name") || return 0
  [ -n "$files" ] || return 0
  echo "--- tests: $name, once more: $(echo "$files" | tr '\n' ' ')"
  # shellcheck disable=SC2086 # a list of paths without spaces
  vitest run --project "$name" --maxWorkers=1 --reporter=default --reporter=json --outputFile.json="$reports/$name.again" $files
  echo $? >"$reports/$name.again-code"
}

step build build_programs
step lint npm run --silent lint
step unused npm run --silent unused
step types npm run --silent typecheck

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

[ -z "$e2e" ] || again e2e
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

# shellcheck disable=SC2086 # a list of step names
"$node" scripts/test-summary.mjs "$reports" "${ci:-no}" $broken
