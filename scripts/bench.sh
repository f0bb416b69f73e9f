#!/bin/sh
# npm run bench: runs the benchmarks and writes bench/results/NAME.json. Names as arguments choose: supervision workers nodes sim inspect
# page viewers tracing initialState restart containerd cluster oci flood firstPod calls burst paired where (default: all but oci, flood, recording,
# replay, firstPod, calls, burst, paired and where; the last ten only as root, cluster, calls, burst, paired and where only where
# scripts/setup/control-plane-setup.sh was run, calls and burst with the reference kubelet in KUBEBUILDER_ASSETS, page only with the page built and Chromium). Takes about
# 40 minutes; run it on an otherwise idle machine.
set -eu
program='npm run bench'
. "$(dirname -- "$0")/env.sh"
install_packages
use_node
build_programs
# Where the benchmark looks for the programs of the control plane.
have_control_plane() {
  [ -x "${KUBEBUILDER_ASSETS:-/nonexistent}/kube-apiserver" ] ||
    [ -x "${ACTORLET_CONTROL_PLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/control-plane}/bin/kube-apiserver" ] ||
    command -v kube-apiserver >/dev/null 2>&1
}
mkdir -p bench/results
failed=0
for name in ${*:-supervision workers nodes sim inspect page viewers tracing initialState restart containerd cluster}; do
  if [ ! -f "bench/$name.ts" ]; then
    echo "$program: no bench/$name.ts" >&2
    failed=1
    continue
  fi
  case $name in containerd | cluster | oci | flood | recording | replay | calls | burst | paired | where)
    if [ "$(id -u)" != 0 ]; then
      echo "!!! $program: $name left out, it needs root !!!" >&2
      continue
    fi
  esac
  case $name in cluster | replay | calls | burst | paired | where) control_plane=wanted ;; *) control_plane= ;; esac
  if [ -n "$control_plane" ] && ! have_control_plane; then
    echo "!!! $program: $name left out, there is no kube-apiserver: run scripts/setup/control-plane-setup.sh first !!!" >&2
    continue
  fi
  echo "$program: $name" >&2
  # --expose-gc is for the memory benchmarks that say so; no figure of a running daemon uses it.
  if "$node" --expose-gc --disable-warning=ExperimentalWarning "bench/$name.ts" >"bench/results/$name.json.new"; then
    mv "bench/results/$name.json.new" "bench/results/$name.json"
    echo "$program: bench/results/$name.json written" >&2
  else
    rm -f "bench/results/$name.json.new"
    failed=1
  fi
done
exit $failed
