#!/bin/sh
# npm run bench: runs the benchmarks and writes bench/results/NAME.json. Names as arguments choose: kernel workers nodes sim containerd
# (default: all; containerd only as root). Takes about 20 minutes; run it on an otherwise idle machine.
set -eu
program='npm run bench'
. "$(dirname -- "$0")/env.sh"
install_packages
use_node
build_programs
mkdir -p bench/results
failed=0
for name in ${*:-kernel workers nodes sim containerd}; do
  if [ ! -f "bench/$name.ts" ]; then
    echo "$program: no bench/$name.ts" >&2
    failed=1
    continue
  fi
  if [ "$name" = containerd ] && [ "$(id -u)" != 0 ]; then
    echo "!!! $program: containerd left out, it needs root !!!" >&2
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
