#!/bin/sh
# Puts the containerd and runc of a newer Debian suite into a folder, for benchmarks and tests against them. The machine is not
# upgraded: packages are fetched with lists of their own and taken apart. Debian, amd64, as root. Prints the folder to put on PATH:
#   PATH=$(sh scripts/setup/newer-containerd.sh):$PATH node_modules/.bin/node bench/containerd.ts --only=burst
# NEWER_SUITE   Debian suite (default sid: containerd 2.1, runc 1.3)
# NEWER_MIRROR  default: the mirror of Debian's main archive that this machine's apt uses
set -eu

fail() { printf 'newer-containerd: %s\n' "$*" >&2; exit 1; }
[ "$(uname -m)" = x86_64 ] || fail 'amd64 only'
suite=${NEWER_SUITE:-sid}
mirror=${NEWER_MIRROR:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | head -n 1)}
[ -n "$mirror" ] || fail 'this machine names no mirror: say NEWER_MIRROR'
[ -n "${XDG_CACHE_HOME:-}${HOME:-}" ] || fail 'neither HOME nor XDG_CACHE_HOME is set'
cache=${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/newer-containerd/$suite
if [ -x "$cache/bin/containerd" ] && [ -x "$cache/bin/runc" ]; then
  echo "$cache/bin"
  exit
fi

work=$cache.$$
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root" "$work/libs" "$work/tools" "$work/bin"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] $mirror $suite main" >"$work/sources.list"
newer() {
  apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
    -o Dir::Cache="$work/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root "$@" >&2
}
cd "$work"
newer update
newer download "containerd/$suite" "runc/$suite" "libc6/$suite" "libseccomp2/$suite"
for package in containerd_*.deb runc_*.deb; do dpkg-deb -x "$package" root; done
for package in libc6_*.deb libseccomp2_*.deb; do dpkg-deb -x "$package" libs; done
apt-get -q -o APT::Sandbox::User=root download patchelf >&2
dpkg-deb -x patchelf_*.deb tools

cp root/usr/bin/containerd root/usr/bin/ctr root/usr/bin/containerd-shim-runc-v2 bin/
# runc wants a newer C library than this machine has, and starts itself again through /proc: it has to find that library by itself.
runc=root/usr/sbin/runc
[ -e "$runc" ] || runc=root/usr/bin/runc
cp -L "$runc" bin/runc
libs=$cache/libs/usr/lib/x86_64-linux-gnu
tools/usr/bin/patchelf --set-interpreter "$libs/ld-linux-x86-64.so.2" --set-rpath "$libs" bin/runc
mkdir -p "$cache"
rm -rf "$cache/bin" "$cache/libs"
mv libs bin "$cache/"
"$cache/bin/runc" --version >&2
echo "$cache/bin"
