#!/bin/sh
# Builds the reference from a source tree of Kubernetes with its vendor folder: kubelet, kube-apiserver,
# kube-controller-manager, kube-scheduler and kubectl; beside them goes etcd from a newer Debian suite. The cluster tests and
# bench/cluster.ts then run against that release:
#   git clone --depth 1 --branch v1.36.2 https://github.com/kubernetes/kubernetes.git
#   KUBEBUILDER_ASSETS=$(sh scripts/reference-setup.sh kubernetes v1.36.2) npm run e2e:cluster
# The folder with the programs is what it prints; what it does, it says on stderr. Debian, amd64, as root; it starts nothing and
# changes neither the tree nor the machine. Run again with the same version, it does nothing. About 6 minutes on 2 cores; 3 GB
# for the build, of which 0.5 GB stay.
# ACTORLET_REFERENCE_CACHE   default ${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/reference
# REFERENCE_GO   a go program that is new enough for the tree; default: that of golang-N.M-go of the suite, as the tree's go.mod says
# NEWER_SUITE    Debian suite (default sid)
# NEWER_MIRROR   default: the mirror of Debian's main archive that this machine's apt uses
set -eu

say() { printf 'reference-setup: %s\n' "$*" >&2; }
fail() { printf 'reference-setup: %s\n' "$*" >&2; exit 1; }
[ $# = 2 ] || fail 'usage: reference-setup.sh SOURCE VERSION, such as: reference-setup.sh ./kubernetes v1.36.2'
[ "$(uname -m)" = x86_64 ] || fail 'amd64 only'
tree=$(cd "$1" 2>/dev/null && pwd) || fail "no folder $1"
version=$2
case $version in v1.[0-9]*.[0-9]*) ;; *) fail "VERSION is of the form v1.MINOR.PATCH, not: $version" ;; esac
[ -d "$tree/cmd/kubelet" ] || fail "$tree is no source of Kubernetes: it has no cmd/kubelet"
[ -d "$tree/vendor" ] || fail "$tree has no vendor folder, and nothing is fetched for the build"
if [ -n "${ACTORLET_REFERENCE_CACHE:-}" ]; then
  cache=$ACTORLET_REFERENCE_CACHE/$version
elif [ -n "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/reference/$version
else
  fail 'neither HOME nor XDG_CACHE_HOME is set: say where to keep the programs with ACTORLET_REFERENCE_CACHE'
fi
if [ -x "$cache/bin/kubelet" ] && [ -x "$cache/bin/etcd" ]; then
  echo "$cache/bin"
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
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root" "$work/bin" "$work/home"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] $mirror $suite main" >"$work/sources.list"
newer() {
  apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
    -o Dir::Cache="$work/cache" -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=root "$@" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; fail "apt-get $* failed, see above"; }
}
cd "$work"
newer update
release=$(awk '$1 == "go" { split($2, part, "."); print part[1] "." part[2]; exit }' "$tree/go.mod")
[ -n "$release" ] || fail "$tree/go.mod names no release of Go"
packages="etcd-server/$suite"
[ -n "${REFERENCE_GO:-}" ] || packages="$packages golang-$release-go/$suite golang-$release-src/$suite"
# shellcheck disable=SC2086  # a list of package names
newer download $packages
for package in ./*.deb; do dpkg-deb -x "$package" root; done
go=${REFERENCE_GO:-$work/root/usr/lib/go-$release/bin/go}
# The sources of Go's own library are in a package of their own, and the link to them is no part of either.
[ -n "${REFERENCE_GO:-}" ] || [ -e "root/usr/lib/go-$release/src" ] || ln -s "../../share/go-$release/src" "root/usr/lib/go-$release/src"

say "building $version with $("$go" version | cut -d ' ' -f 3)"
minor=${version#v1.}
names=k8s.io/component-base/version
(
  cd "$tree"
  export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=vendor CGO_ENABLED=0 GOPATH="$work/home" GOCACHE="$work/gocache" HOME="$work/home"
  exec nice -n 15 "$go" build -trimpath -o "$work/bin/" \
    -ldflags "-s -w -X $names.gitVersion=$version -X $names.gitMajor=1 -X $names.gitMinor=${minor%%.*} -X $names.gitTreeState=clean" \
    ./cmd/kubelet ./cmd/kube-apiserver ./cmd/kube-controller-manager ./cmd/kube-scheduler ./cmd/kubectl
) >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail 'the build failed, see above'; }
cp root/usr/bin/etcd bin/etcd
bin/etcd --version >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "etcd of $suite does not run on this machine, see above"; }
mkdir -p "$cache"
rm -rf "$cache/bin"
mv bin "$cache/bin"
say "ready: $("$cache/bin/kubelet" --version), programs in $cache/bin"
echo "$cache/bin"
