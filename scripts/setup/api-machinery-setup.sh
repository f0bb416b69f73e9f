#!/bin/sh
# Brings the API server that test/cluster/api/watchList.test.ts runs against: Debian's apiextensions-apiserver of a newer suite
# (Kubernetes 1.36 in sid), built once from its -dev packages, and etcd. The machine is not upgraded: packages are fetched with
# lists of their own and taken apart. Debian, amd64, as root; it starts nothing and, run again, changes nothing.
# No package of Debian holds a kube-apiserver of 1.3x: its source package kubernetes has kubectl alone.
#
# Fetches 370 MB, needs 3 GB for the build, of which 140 MB stay, and takes about 4 minutes on 2 cores.
# ACTORLET_API_MACHINERY_CACHE   default ${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/api-machinery
# NEWER_SUITE    Debian suite (default sid)
# NEWER_MIRROR   default: the mirror of Debian's main archive that this machine's apt uses
set -eu

say() { printf 'api-machinery-setup: %s\n' "$*"; }
fail() { printf 'api-machinery-setup: %s\n' "$*" >&2; exit 1; }
[ "$(uname -m)" = x86_64 ] || fail 'amd64 only'
if [ -n "${ACTORLET_API_MACHINERY_CACHE:-}" ]; then
  cache=$ACTORLET_API_MACHINERY_CACHE
elif [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/api-machinery
else
  fail 'neither HOME nor XDG_CACHE_HOME is set: say where to keep the programs with ACTORLET_API_MACHINERY_CACHE'
fi
if [ -x "$cache/bin/apiextensions-apiserver" ] && [ -x "$cache/bin/etcd" ]; then
  say "ready: programs in $cache/bin"
  exit
fi
suite=${NEWER_SUITE:-sid}
mirror=${NEWER_MIRROR:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | head -n 1)}
[ -n "$mirror" ] || fail 'this machine names no mirror: say NEWER_MIRROR'

work=$cache.$$
clean() {
  chmod -R u+w "$work" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/root" "$work/bin"
# Nothing counts as installed: whatever the build needs is fetched too.
: >"$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] $mirror $suite main" >"$work/sources.list"
newer() {
  tool=$1
  shift
  "$tool" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State="$work/state" \
    -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o Acquire::Languages=none -o Acquire::Retries=3 \
    -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any "$@"
}
newer apt-get -q update >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "the package lists of $suite cannot be fetched from $mirror"; }
for package in golang-k8s-apiextensions-apiserver-dev golang-go etcd-server; do
  version=$(newer apt-cache policy "$package" | awk '$1 == "Candidate:" { print $2 }')
  case $version in
    '' | '(none)') fail "$suite has no package $package any more. Take an older state of it: NEWER_MIRROR=http://snapshot.debian.org/archive/debian/DATE" ;;
  esac
  say "$package $version"
done
newer apt-get -q install -y --download-only --no-install-recommends golang-k8s-apiextensions-apiserver-dev golang-go etcd-server >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log" >&2; fail "the packages of $suite cannot be fetched: a package that they need is gone, or the mirror has moved on meanwhile, see above"; }
for package in "$work"/cache/archives/golang*.deb "$work"/cache/archives/etcd*.deb; do dpkg-deb -x "$package" "$work/root"; done
rm -rf "$work/cache"

source=$work/root/usr/share/gocode/src/k8s.io/apiextensions-apiserver
[ -f "$source/main.go" ] || fail 'golang-k8s-apiextensions-apiserver-dev is not laid out as expected: it has no main.go'
go=$(find "$work/root/usr/lib" -path '*/go-*/bin/go' | head -n 1)
[ -n "$go" ] || fail 'golang-go brought no go program'
say 'building apiextensions-apiserver'
(
  cd "$source"
  export GO111MODULE=off GOTOOLCHAIN=local GOFLAGS= CGO_ENABLED=0 GOPATH="$work/root/usr/share/gocode" GOCACHE="$work/gocache" HOME="$work"
  exec nice -n 15 "$go" build -trimpath -ldflags '-s -w' -o "$work/bin/apiextensions-apiserver" .
) >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail 'the build of apiextensions-apiserver failed, see above'; }
cp "$work/root/usr/bin/etcd" "$work/bin/etcd"
"$work/bin/etcd" --version >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "etcd of $suite does not run on this machine, see above"; }
mkdir -p "$cache"
rm -rf "$cache/bin"
mv "$work/bin" "$cache/bin"
say "ready: programs in $cache/bin"
