#!/bin/sh
# Brings the control plane that the cluster tests run against: etcd from Debian's package; kube-apiserver,
# kube-controller-manager, kube-scheduler and kubectl built once from Debian's source package `kubernetes`. Debian or a
# derivative, as root while something has to be installed. It starts nothing and, run again, changes nothing.
#
# `--with-kubelet` builds the reference kubelet too, for the test that takes a node over from it (left out without it).
#
# Binaries are taken from $KUBEBUILDER_ASSETS where that has them (then nothing is built for those), else from
# <cache>/bin, where <cache> is $ACTORLET_CONTROL_PLANE_CACHE, by default ${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/control-plane.
# The build takes 5 to 20 minutes on 2 cores, as busy as they are, and 3 to 4 GB in <cache>, of which 0.4 GB stay. What is fetched
# is tried three times.
set -eu

say() { printf 'control-plane-setup: %s\n' "$*"; }
fail() { printf 'control-plane-setup: %s\n' "$*" >&2; exit 1; }
have() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1; }

[ "$(uname -s)" = Linux ] || fail "the cluster tests need Linux; this is $(uname -s)"
if [ -n "${ACTORLET_CONTROL_PLANE_CACHE:-}" ]; then
  cache=$ACTORLET_CONTROL_PLANE_CACHE
elif [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/control-plane
else
  fail 'neither HOME nor XDG_CACHE_HOME is set: say where to keep the binaries with ACTORLET_CONTROL_PLANE_CACHE'
fi
assets=${KUBEBUILDER_ASSETS:-}
[ -z "$assets" ] || [ -d "$assets" ] || fail "KUBEBUILDER_ASSETS names no folder: $assets"
mkdir -p "$cache/bin" || fail "cannot create $cache/bin"

programs='kube-apiserver kube-controller-manager kube-scheduler kubectl'
for argument in "$@"; do
  case $argument in
    --with-kubelet) programs="$programs kubelet" ;;
    *) fail "unknown argument: $argument (there is --with-kubelet)" ;;
  esac
done

BUILD_KB=3000000
FETCH_TRIES=3
FETCH_PAUSE_S=${ACTORLET_FETCH_PAUSE_S:-15}
# fetch WHAT COMMAND...: mirrors and networks have bad moments. What it printed the last time is shown when it was in vain.
fetch() {
  what=$1
  shift
  tries=1
  until "$@" >"$log" 2>&1; do
    [ "$tries" -lt "$FETCH_TRIES" ] || { tail -n 20 "$log" >&2; fail "$what, $FETCH_TRIES times, see above"; }
    say "$what; tried again in $FETCH_PAUSE_S s ($tries of $FETCH_TRIES)"
    sleep "$FETCH_PAUSE_S"
    tries=$((tries + 1))
  done
}
# Another run of apt may hold its lock; a transfer that breaks off is gone on with.
apt_get() { apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }
install_packages() { apt_get install -y --no-install-recommends "$@" || { apt_get update && apt_get install -y --no-install-recommends "$@"; }; }

# Whether binary NAME is there for the tests already.
there() { { [ -n "$assets" ] && [ -x "$assets/$1" ]; } || [ -x "$cache/bin/$1" ]; }
to_build() {
  for name in $programs; do there "$name" || printf ' %s' "$name"; done
}

# One run at a time builds; a second one waits and then finds everything there.
if have flock && [ -z "${ACTORLET_CONTROL_PLANE_LOCKED:-}" ]; then
  ACTORLET_CONTROL_PLANE_LOCKED=1 exec flock "$cache/lock" sh "$0" "$@"
fi

build=$(to_build)
packages=''
want() { packages="$packages $1"; }
there etcd || have etcd || want etcd-server
if [ -n "$build" ]; then
  have go || want golang-go
  for tool in jq rsync make; do have "$tool" || want "$tool"; done
  have dpkg-source || want dpkg-dev
fi

work=''
policy=''
log=$(mktemp "$cache/setup.XXXXXX") || fail "cannot write in $cache"
clean() {
  rm -f "$log"
  [ -z "$policy" ] || rm -f "$policy"
  # Go makes its module cache read-only.
  [ -z "$work" ] || { chmod -R u+w "$work" 2>/dev/null || true; rm -rf "$work"; }
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -n "$packages" ]; then
  [ "$(id -u)" = 0 ] || fail "must be root to install:$packages"
  have apt-get || fail "no apt-get here; install by hand:$packages"
  say "installing:$packages"
  export DEBIAN_FRONTEND=noninteractive
  # The etcd package must not start its own server: the tests run their own instances only.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  # shellcheck disable=SC2086  # a list of package names
  fetch "apt-get could not install:$packages" install_packages $packages
fi

# Writes to folder $1 the machine's own entries for its Debian release, as source entries: same host, same signing key.
# Entries of other publishers are left out, since most of them have no sources and would fail the update.
write_source_lists() {
  codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  [ -n "$codename" ] || fail '/etc/os-release has no VERSION_CODENAME: which release are the sources of?'
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$list" ] || continue
    sed -n 's/^deb\(-src\)\{0,1\}[[:space:]]/deb-src /p' "$list" |
      awk -v want="$codename" '{ line = $0; sub(/\[[^]]*\]/, ""); if ($3 == want) print line }'
  done >"$1/actorlet.list"
  for list in /etc/apt/sources.list.d/*.sources; do
    [ -f "$list" ] || continue
    awk -v want="$codename" 'BEGIN { RS = ""; ORS = "\n\n" }
      { found = 0; off = 0; n = split($0, line, "\n")
        for (i = 1; i <= n; i++) {
          if (line[i] ~ /^Suites:/) { m = split(line[i], word, /[[:space:]]+/); for (j = 2; j <= m; j++) if (word[j] == want) found = 1 }
          if (line[i] ~ /^Enabled:[[:space:]]*no/) off = 1
          if (line[i] ~ /^Types:/) line[i] = "Types: deb-src" }
        if (found && !off) { text = line[1]; for (i = 2; i <= n; i++) text = text "\n" line[i]; print text } }' "$list"
  done >"$1/actorlet.sources"
  [ -s "$1/actorlet.list" ] || [ -s "$1/actorlet.sources" ] ||
    fail "no package source of release $codename in /etc/apt: where do its source packages come from?"
}

if [ -n "$build" ]; then
  have apt-get || fail "no apt-get here to fetch the source of:$build; put the binaries into a folder and name it with KUBEBUILDER_ASSETS"
  # What a run that was killed left behind; there is no other one now, where there is a lock.
  if have flock; then
    for stale in "$cache"/build.?????? "$cache"/setup.??????; do
      [ "$stale" != "$log" ] || continue
      [ -e "$stale" ] || continue
      chmod -R u+w "$stale" 2>/dev/null || true
      rm -rf "$stale"
    done
  fi
  free_kb=$(df -Pk "$cache" | awk 'NR == 2 { print $4 }')
  [ "${free_kb:-0}" -ge "$BUILD_KB" ] || fail "$cache has ${free_kb:-0} KB free and the build wants $BUILD_KB: make room, or name another folder with ACTORLET_CONTROL_PLANE_CACHE"
  work=$(mktemp -d "$cache/build.XXXXXX") || fail "cannot create a folder in $cache"
  mkdir -p "$work/parts" "$work/lists/partial" "$work/source"
  write_source_lists "$work/parts"
  # Lists of our own: the machine's package configuration stays as it is. Trusted keys are the machine's.
  apt() {
    apt_get -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts" -o "Dir::State::lists=$work/lists" \
      -o APT::Sandbox::User=root "$@"
  }
  say 'fetching the source package kubernetes'
  # A list that is not there is a warning to apt, and an error here.
  source_lists() { apt update -o APT::Update::Error-Mode=any; }
  source_tree() {
    rm -rf "$work/source"
    mkdir "$work/source"
    (cd "$work/source" && apt source kubernetes)
  }
  fetch 'the list of source packages could not be fetched' source_lists
  fetch 'the source package kubernetes could not be fetched or unpacked' source_tree
  tree=$(find "$work/source" -mindepth 1 -maxdepth 1 -type d)
  [ -f "$tree/cmd/kube-apiserver/apiserver.go" ] || fail "the source package kubernetes is not laid out as expected: no cmd/kube-apiserver in $tree"

  targets=''
  for name in $build; do targets="$targets cmd/$name"; done
  say "building:$build (5 to 20 minutes on 2 cores; log: $cache/build.log)"
  mkdir -p "$tree/.go/src/k8s.io"
  ln -s "$tree" "$tree/.go/src/k8s.io/kubernetes"
  # At low priority: the person goes on working beside it. Everything Go writes stays in the folder that is removed.
  (
    cd "$tree/.go/src/k8s.io/kubernetes"
    export GOPATH="$tree/.go" GOCACHE="$work/gocache" GOFLAGS=-mod=vendor GOPROXY=off CGO_ENABLED=0 HOME="$work"
    exec nice -n 15 make WHAT="${targets# }"
  ) >"$cache/build.log" 2>&1 || { tail -n 30 "$cache/build.log" >&2; fail "the build of$build failed, see above and $cache/build.log"; }
  for name in $build; do
    made=$(find "$tree/_output" -type f -name "$name" -perm -u+x | head -n 1)
    [ -n "$made" ] || fail "the build ended well but made no $name, see $cache/build.log"
    mv "$made" "$cache/bin/$name.new" && mv "$cache/bin/$name.new" "$cache/bin/$name" || fail "cannot put $name into $cache/bin"
  done
fi

there etcd || have etcd || fail 'etcd is still missing after the installation'
[ -z "$(to_build)" ] || fail "still missing:$(to_build)"
say "ready: $(if [ -n "$assets" ] && [ -x "$assets/kube-apiserver" ]; then "$assets/kube-apiserver" --version; else "$cache/bin/kube-apiserver" --version; fi), binaries in ${assets:+$assets and }$cache/bin"
