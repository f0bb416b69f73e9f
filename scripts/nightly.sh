#!/bin/sh
# npm run nightly: every test that there is, as root on Debian. `npm test` of a commit runs one part of the mutants and of
# the fixed seeds; this runs all of them, the tests on a real control plane, 2,000 fresh seeds, the coverage of edges and a
# soak of eight hours (ACTORLET_SOAK_MINUTES).
set -u
program='npm run nightly'
. "$(dirname -- "$0")/env.sh"
failed=0
CI=true ACTORLET_ROTATION=all ACTORLET_CLUSTER_TESTS=1 ACTORLET_NIGHTLY_TESTS=1 sh scripts/test.sh || failed=1
use_node
npm run --silent sim || failed=1
"$node" packages/sim/test/edges/run.ts || failed=1
npm run --silent soak -- --minutes "${ACTORLET_SOAK_MINUTES:-480}" || failed=1
exit "$failed"
