#!/bin/sh
# npm stop: ends this checkout's quick-start daemon, then its pods and the embedded runtime that holds them.
set -eu
program='npm stop'
. "$(dirname -- "$0")/env.sh"

running=$(daemon_pid)
if [ -n "$running" ]; then
  kill -TERM "$running" || :
  tries=0
  while [ -n "$(daemon_pid)" ] && [ $tries -lt 150 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  if [ -n "$(daemon_pid)" ]; then
    echo "$program: the daemon (process $running) did not end within 15 s of TERM; killing it"
    kill -KILL "$running" || :
  fi
  echo "$program: daemon ended"
else
  echo "$program: no daemon of this checkout is running"
fi
rm -f "$state/actorlet.pid"

if [ ! -d "$state" ] || [ ! -d node_modules ]; then
  echo "$program: nothing was ever started here"
  exit 0
fi
choose_node "$root"
sandboxd=$root/dist/sandboxd.mjs
[ -f "$sandboxd" ] || sandboxd=$root/packages/runtimes/src/process/main.ts
"$node" --disable-warning=ExperimentalWarning "$sandboxd" --root-dir "$state" --stop
# The pods are gone, and their logs with them: the next start would count restarts on from the names of their files.
rm -rf "$state/logs"
