# Sourced by the other scripts (plain POSIX sh, any Node >= 20.19 on PATH): where things are, and how to install and build. `script_up`: the root from there.
root=$(CDPATH='' cd -P -- "$(dirname -- "$0")/${script_up:-..}" && pwd)
cd "$root"
state=$root/.actorlet
. "$root/scripts/launch.sh"

# Succeeds when Node $1 (such as 20.19.0) installs all packages: npm leaves out the bundler's native part for older ones (its `engines`).
installs_all() {
  major=${1%%.*}
  minor=${1#*.}
  minor=${minor%%.*}
  case $major$minor in '' | *[!0-9]*) return 1 ;; esac
  case $major in
    20) [ "$minor" -ge 19 ] ;;
    22) [ "$minor" -ge 12 ] ;;
    *) [ "$major" -gt 22 ] ;;
  esac
}

# install_packages [for-start]: npm ci, when nothing is installed or the lock file is another one than at the last install.
# `for-start` leaves out scripts/checks, the tools that lint, type and test: a third of the time somebody new waits for.
install_packages() {
  command -v npm >/dev/null 2>&1 || { echo "$program: npm is not on PATH; install Node 20.19 or newer with npm" >&2; exit 1; }
  installs=$(node --version 2>/dev/null) || installs=none
  if ! installs_all "${installs#v}"; then
    echo "$program: needs Node 20.19 or newer (but not 21, nor 22 before 22.12); on PATH: $installs. Debian 12 has 18: https://nodejs.org has newer ones" >&2
    exit 1
  fi
  want=$(cksum <package-lock.json)
  has=$(cat node_modules/.actorlet-lock 2>/dev/null) || has=none
  # `npm ci` by hand leaves no mark, but a lock file of npm's own that is newer than ours.
  if [ "$has" = none ] && [ node_modules/.package-lock.json -nt package-lock.json ] && [ -x node_modules/.bin/vitest ]; then has=$want; fi
  case $has in "$want" | "$want ${1:-checks}") return 0 ;; esac
  # The build needs the development packages whatever the caller's NODE_ENV says. Engine warnings are about the Node
  # that runs npm, not about the pinned one we run under, hence the log level.
  # After a start the rest is added: `npm ci` would take away what a daemon of this checkout runs from.
  case $has in "$want "*) how='install --no-save' ;; *) how=ci ;; esac
  echo "$program: installing packages (npm $how)"
  # shellcheck disable=SC2086 # two words
  npm $how ${1:+--no-workspaces} --include=dev --no-audit --no-fund --loglevel=error || { echo "$program: npm $how failed, see above" >&2; exit 1; }
  printf '%s\n' "$want${1:+ $1}" >node_modules/.actorlet-lock
}

# From here on `node` is one that can run us, and the tools of node_modules are on PATH.
use_node() {
  choose_node "$root"
  PATH=$(dirname -- "$node"):$root/node_modules/.bin:$PATH
  export PATH
}

build_programs() { "$node" scripts/build.mjs || { echo "$program: the build failed, see above" >&2; return 1; }; }

# Prints the process id of this checkout's running quick-start daemon, or nothing. The number in the file is believed
# only if that process runs this checkout's daemon on this checkout's state: numbers are reused.
daemon_pid() {
  pid=$(cat "$state/actorlet.pid" 2>/dev/null) || return 0
  case $pid in '' | *[!0-9]*) return 0 ;; esac
  args=$(ps -ww -o args= -p "$pid" 2>/dev/null || tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || return 0
  case $args in
    *"$root/"*actorlet.mjs*"--root-dir=$state"* | *"$root/src/boot/main.ts"*"--root-dir=$state"*) printf '%s\n' "$pid" ;;
  esac
}
