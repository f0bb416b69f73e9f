# Shared by bin/actorlet and bin/actorctl, which source it: finds a Node that can run us, then becomes it.
# Plain POSIX sh. `exec` matters: signals and the exit code go straight to and from node.

# Flags for V8. A hundred pods of a cluster started and then deleted at once on containerd, Linux x64, Node 24.21.0, 2 cores:
# CPU seconds of the daemon for the start and for the deletion, its resident MiB right after the start and once it is at rest.
#   --v8-pool-size=1 --max-semi-space-size=2 --optimize-for-size                11.0   5.5   115    99
#   --v8-pool-size=1 --max-semi-space-size=4 --heap-growing-percent=30           8.4   4.3   133   130
#   --v8-pool-size=1 --max-semi-space-size=4 --expose-gc                         7.5   3.4   180    92
#   --v8-pool-size=1 --max-semi-space-size=16 --expose-gc                        7.1   3.2   220   105
# Bursts end before the last compiler pays: without it, and with the one before it for code that runs 4,000 times (by default 400), the
# second thread takes half, and code takes 15 MiB less. A heap of less than 128 MiB is not marked by V8 in the background, as
# process/memory.ts collects it. 30 to 100 pods started and deleted at once, as shares of the list without these four flags, in the same
# minutes (bench/paired.ts): processor time of the start 0.86 to 0.90 and of the end 0.89 to 0.91, by a daemon that did it before 0.99
# to 1.04 and 0.84 to 0.92; peak of resident memory 0.88 to 0.94. Without --invocation-count-for-maglev: 0.94 to 1.02 and 0.97 to 1.11.
# With no compiler but the first (--no-maglev too): 0.92 to 1.10 and 0.85 to 0.89.
# --expose-gc is for process/memory.ts, which collects the heap once a burst is over; nothing else would release what it
# needed. ACTORLET_V8_FLAGS replaces the list.
burst_v8_flags='--no-turbofan --invocation-count-for-maglev=4000 --initial-old-space-size=128 --heap-growing-percent=200'
v8_flags=${ACTORLET_V8_FLAGS---v8-pool-size=1 --max-semi-space-size=4 $burst_v8_flags --expose-gc}
# A fleet: most of what its nodes make while they join stays. 100 nodes with 1,000 pods on a real control plane, CPU seconds of the
# fleet until all pods were Ready, and resident MiB: in one run 31 and 549 with 32 MiB, 24 and 741 with 128 (64 at the beginning); in
# another 32 and 774 with the latter, 32 and 642 with 64 MiB. Without --expose-gc: a heap of 1 GiB that is collected at once stops all
# nodes for 4 to 12 s.
# Most of the heap stays, so marking it each time that it has grown by half finds little. Fleets of 100 nodes beside each other
# (bench/fleetPaired.ts), processor time of the nodes, of 500 pods that start, and of their end: with a heap that is first marked at
# 256 MiB and may double from then on 0.89, 0.92 and 0.87; at 512 MiB 0.84, 0.92 and 0.90, and 0.85, 0.86 and 0.85 where only one
# thread collects what is young. What is allowed to double alone: 0.99, 1.04 and 1.00. These flags and 1,000 nodes: 0.79. A fleet of 20
# nodes holds 300 MiB at rest in place of 150.
fleet_v8_flags='--v8-pool-size=2 --max-semi-space-size=64 --initial-old-space-size=256 --heap-growing-percent=100 --no-parallel-scavenge'

# An observer stands back in a burst (packages/observe/src/priority.ts), and shall be small. Beside 100 pods at rest it has 79 MiB
# resident. With the daemon's flags and 2 MiB of young objects: 88.
observer_v8_flags='--v8-pool-size=1 --max-semi-space-size=1 --optimize-for-size --no-turbofan --no-maglev --expose-gc'

# Three quarters of the machine's memory, or of the container's, for the heap of a fleet: 10,000 pods do not fit into the quarter that
# Node takes by itself. Nothing where the system does not say how much there is.
fleet_heap() {
  cat /proc/meminfo /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null |
    awk '/^MemTotal:/ { kib = $2 }
      NF == 1 && $1 ~ /^[0-9]+$/ && $1 / 1024 < kib { kib = $1 / 1024 }
      END { if (kib > 0) printf "--max-old-space-size=%d", kib * 3 / 4096 }'
}

# Succeeds when $1 runs and is Node 22.19 or newer.
new_enough() {
  version=$("$1" --version 2>/dev/null) || return 1
  version=${version#v}
  major=${version%%.*}
  minor=${version#*.}
  minor=${minor%%.*}
  case $major$minor in '' | *[!0-9]*) return 1 ;; esac
  [ "$major" -gt 22 ] || { [ "$major" -eq 22 ] && [ "$minor" -ge 19 ]; }
}

# choose_node ROOT: sets $node. Order: ACTORLET_NODE, the pinned one of a checkout or of the Debian package actorlet-node, the
# one on PATH.
choose_node() {
  if [ -n "${ACTORLET_NODE-}" ]; then
    if ! new_enough "$ACTORLET_NODE"; then
      echo "$program: ACTORLET_NODE=$ACTORLET_NODE does not run or is older than Node 22.19; unset it or name another" >&2
      exit 1
    fi
    node=$ACTORLET_NODE
    return
  fi
  # The pinned one is checked by running it: a node_modules copied from another machine has a file that does not.
  # The one of runtime/ brings its libraries (scripts/build/observe.sh).
  for node in "$1"/node_modules/node-linux-*/bin/node "$1/runtime/node" "$(command -v node 2>/dev/null || :)"; do
    if [ -n "$node" ] && [ -x "$node" ] && new_enough "$node"; then return; fi
  done
  found=$(node --version 2>/dev/null) || found=none
  # Only a checkout has the pinned one.
  if [ -f "$1/package-lock.json" ]; then hint="Run 'npm ci' in $1, which installs one"; else hint='Install one'; fi
  echo "$program: needs Node 22.19 or newer (on PATH: $found). $hint, or set ACTORLET_NODE" >&2
  exit 1
}

# launch BUNDLE SOURCE ARGS...: both relative to the package root. The bundle is preferred; a checkout that was never
# built runs from its sources.
launch() {
  bundle=$1
  source=$2
  shift 2
  choose_node "$root"
  if [ -f "$root/$bundle" ]; then
    entry=$root/$bundle
  elif [ -d "$root/node_modules" ] && [ -f "$root/$source" ]; then
    entry=$root/$source
    # They have declarations with `using`, which the build rewrites.
    case $("$node" --version) in v22.* | v23.*)
      echo "$program: $node is older than Node 24, which running from sources needs. Run 'npm run build' in $root first" >&2
      exit 1
      ;;
    esac
  else
    echo "$program: neither $root/$bundle nor installed sources are there. Run 'npm ci && npm run build' in $root" >&2
    exit 1
  fi
  # A replay makes much, as a fleet does. Options may stand before its name.
  case " $* " in
    " fleet "* | *" replay "*) v8_flags=${ACTORLET_V8_FLAGS-$fleet_v8_flags $(fleet_heap)} ;;
    " observe "*) v8_flags=${ACTORLET_V8_FLAGS-$observer_v8_flags} ;;
  esac
  # A divergence names places in the sources.
  case " $* " in *" replay "*) v8_flags="$v8_flags --enable-source-maps" ;; esac
  # Without the first, SIGUSR1 opens Node's debugger to every user of the machine.
  # shellcheck disable=SC2086 # the flags are a list
  set -- "$node" --disable-sigusr1 $v8_flags --disable-warning=ExperimentalWarning "$entry" "$@"
  # What stands in for the kubelet is found by `pidof kubelet` of people's scripts. Of shells, bash can give another name.
  if [ -n "${ACTORLET_PROCESS_NAME-}" ] && command -v bash >/dev/null; then
    exec bash -c 'exec -a "$0" "$@"' "$ACTORLET_PROCESS_NAME" "$@"
  fi
  exec "$@"
}
