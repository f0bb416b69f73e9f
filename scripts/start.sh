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
install_packages for-start
use_node
build_programs

# The ports that the lines below name. As flags the first two would win over the file, and the lines would be wrong.
read_only=10255 healthz=10248 page=127.0.0.1:10260
# '' : what this machine can run.
runtime=''
left=$#
while [ "$left" -gt 0 ]; do
  arg=$1
  shift
  left=$((left - 1))
  case $arg in
    --read-only-port | --healthz-port | --container-runtime-endpoint)
      if [ "$left" -gt 0 ]; then
        arg=$arg=$1
        shift
        left=$((left - 1))
      fi
      ;;
  esac
  case $arg in
    --root-dir | --root-dir=*)
      echo "$program: keeps its node in .actorlet, where 'npm stop' and bin/actorctl look for it. For another directory: bin/actorlet --root-dir=DIR --config=FILE" >&2
      exit 2
      ;;
    --read-only-port=*[!0-9]* | --healthz-port=*[!0-9]* | --*-port=) set -- "$@" "$arg" ;;
    --read-only-port=*) read_only=${arg#*=} ;;
    --healthz-port=*) healthz=${arg#*=} ;;
    --container-runtime-endpoint=*)
      runtime=${arg#*=}
      set -- "$@" "$arg"
      ;;
    --actorlet-inspect=*)
      page=${arg#*=}
      case $page in *[!0-9]*) ;; *) page=127.0.0.1:$page ;; esac
      set -- "$@" "$arg"
      ;;
    *) set -- "$@" "$arg" ;;
  esac
done

# Images of registries need programs of the system; the examples run without. Pods that run already keep their runtime.
can=$("${node:-node}" dist/sandboxd.mjs --probe 2>/dev/null) && able=yes || able=no
pods=$(ls "$state/sandbox/sandboxes" 2>/dev/null) || :
if [ -z "$runtime" ] && [ -n "$pods" ]; then
  runtime=embedded://$(cat "$state/sandbox/kind" 2>/dev/null || echo process)
elif [ -z "$runtime" ]; then
  if [ $able = yes ]; then runtime=embedded://oci; else runtime=embedded://process; fi
fi
case $runtime-$able in
  embedded://oci-yes) kind="OCI images and the built-in ones, with $can" ;;
  embedded://process-yes) kind='the built-in images alone; OCI images with --container-runtime-endpoint=embedded://oci' ;;
  embedded://process-no) kind="the built-in images alone. For OCI images: ${can:-the runtime cannot be asked}" ;;
  *) kind=$runtime ;;
esac

# A port that some program of this machine listens on already.
taken() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -Eq "^ *[0-9]+: [0-9A-F]+:$(printf '%04X' "$1") [0-9A-F]+:0000 0A "
}
look="http://$page/ in a browser (bin/actorctl ui says where)"
if taken "${page##*:}" 2>/dev/null; then
  look="NO PAGE: another program listens on port ${page##*:}. For another: npm start -- --actorlet-inspect=$((${page##*:} + 1))"
fi

umask 022
mkdir -p "$state/logs"
chmod 700 "$state"
# A path as a double-quoted YAML scalar.
quoted() { printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"; }
{
  sed -e '/^# yaml-language-server:/d' -e "s/^readOnlyPort: .*/readOnlyPort: $read_only/" -e "s|^containerRuntimeEndpoint: .*|containerRuntimeEndpoint: $runtime|" -e "s/^healthzPort: .*/healthzPort: $healthz/" examples/quickstart.yaml
  echo '# Added by scripts/start.sh: absolute paths of this checkout.'
  echo "staticPodPath: $(quoted "$root/examples/quickstart")"
  echo "podLogsDir: $(quoted "$state/logs/pods")"
} >"$state/config.yaml"

cat <<EOF

actorlet on the embedded runtime; pods from examples/quickstart/*.yaml (edit, add or remove one while this runs)
  runs      $runtime: $kind
  look      $look
            bin/actorctl tree | pods | why crasher | logs -f graceful        (in a second terminal, from this folder)
  ask       curl -s http://127.0.0.1:$read_only/pods   also: /metrics   health: http://127.0.0.1:$healthz/healthz
  logs      .actorlet/logs/pods/
  stop      Ctrl-C ends the daemon, the pods go on; npm start adopts them again; npm stop ends and removes everything

EOF
# The process keeps its id through both execs, so this is the daemon's.
echo $$ >"$state/actorlet.pid"
exec bin/actorlet --root-dir="$state" --config="$state/config.yaml" --actorlet-inspect "$@"
