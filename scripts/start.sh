#!/bin/sh
# npm start: installs and builds what is missing, then becomes the daemon, in the foreground, on the embedded runtime
# with examples/quickstart as static pods. All state is in ./.actorlet; no root needed. Arguments go to the daemon:
# npm start -- --v=4 --read-only-port=10355
set -eu
program='npm start'
. "$(dirname -- "$0")/env.sh"

running=$(daemon_pid)
if [ -n "$running" ]; then
  echo "$program: already running from this checkout (process $running). 'npm stop' ends it and its pods." >&2
  exit 1
fi
install_packages
use_node
build_programs

umask 022
mkdir -p "$state/logs"
chmod 700 "$state"
# A path as a double-quoted YAML scalar.
quoted() { printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"; }
{
  cat examples/quickstart.yaml
  echo '# Added by scripts/start.sh: absolute paths of this checkout.'
  echo "staticPodPath: $(quoted "$root/examples/quickstart")"
  echo "podLogsDir: $(quoted "$state/logs/pods")"
} >"$state/config.yaml"

cat <<EOF

actorlet on the embedded runtime; pods from examples/quickstart/*.yaml (edit, add or remove one while this runs)
  look      bin/actorctl tree | pods | why crasher | logs -f graceful        (in a second terminal, from this folder)
  ask       curl -s http://127.0.0.1:10255/pods   also: /metrics   health: http://127.0.0.1:10248/healthz   (unless a flag says otherwise)
  logs      .actorlet/logs/pods/
  stop      Ctrl-C ends the daemon, the pods go on; npm start adopts them again; npm stop ends and removes everything

EOF
# The process keeps its id through both execs, so this is the daemon's.
echo $$ >"$state/actorlet.pid"
exec bin/actorlet --root-dir="$state" --config="$state/config.yaml" "$@"
