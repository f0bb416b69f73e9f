#!/bin/sh
# Installs what the real-runtime tests need: containerd, runc, the CNI plugins, iproute2, iptables, a static busybox and
# a C compiler. Debian or a derivative, as root. What is there already stays as it is; running it twice changes nothing.
# And the machine of test/e2e/vm, once for each state of its kit: two minutes, 450 MiB in the cache of this user. The argument
# without-machine leaves it out: the tests of it run nightly.
# It starts nothing: every test starts its own containerd with its own folders, socket and bridge.
set -eu

say() { printf 'e2e-setup: %s\n' "$*"; }
fail() { printf 'e2e-setup: %s\n' "$*" >&2; exit 1; }
have() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1; }

[ "$(uname -s)" = Linux ] || fail "the real-runtime tests need Linux; this is $(uname -s)"

missing=''
want() { missing="$missing $1"; }
have containerd && have ctr || want containerd
have runc || want runc
# What runs OCI images without containerd, with and without root.
for tool in crun skopeo umoci slirp4netns; do have "$tool" || want "$tool"; done
have pasta || want passt
have newuidmap || want uidmap
[ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || want containernetworking-plugins
have ip || want iproute2
have iptables || want iptables
# A dynamic busybox cannot run alone in an image; the static package replaces it.
have busybox && ! ldd "$(PATH="$PATH:/usr/sbin:/sbin" command -v busybox)" >/dev/null 2>&1 || want busybox-static
# The pause image is ten lines of C. Without a compiler the tests fall back to busybox in its place and say so.
have gcc && [ -n "$(gcc -print-file-name=libc.a | grep / || true)" ] || want 'gcc libc6-dev'
# The browser that the inspection page is tested in.
have chromium || want chromium
# The alert rules and the dashboard are loaded in it.
have prometheus && have promtool || want prometheus

if [ -n "$missing" ]; then
  [ "$(id -u)" = 0 ] || fail "must be root to install:$missing"
  have apt-get || fail "no apt-get here; install by hand:$missing"
  say "installing:$missing"
  export DEBIAN_FRONTEND=noninteractive
  # The packages must not start their own daemon: the tests run their own instances only.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  # shellcheck disable=SC2086  # a list of package names
  if ! apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1; then
    apt-get update -q >/dev/null || fail 'apt-get update failed: is the package mirror reachable?'
    # shellcheck disable=SC2086
    apt-get install -y -q --no-install-recommends $missing >/dev/null || fail "apt-get could not install:$missing"
  fi
fi

for tool in containerd ctr runc ip iptables busybox; do
  have "$tool" || fail "$tool is still missing after the installation"
done
vm=test/e2e/vm
vm_cache=${ACTORLET_VM:-${XDG_CACHE_HOME:-$HOME/.cache}/actorlet/vm}
kit=$(cat "$vm"/*.sh "$vm"/guest/* | sha256sum | cut -d' ' -f1)
# What needs several NUMA nodes is emulated, and runs nightly.
with=${ACTORLET_NIGHTLY_TESTS:+qemu}
if [ "${1-}" != without-machine ] && [ "$(id -u)" = 0 ] && [ "$(uname -m)" = x86_64 ]; then
  case $(cat "$vm_cache/kit" 2>/dev/null) in
    "$kit qemu") ;;
    "$kit") made=$with ;;
    *) made=no ;;
  esac
  if [ -n "${made-}" ]; then
    # shellcheck disable=SC2086  # a word or none
    "$vm/vm-setup.sh" $with || fail "the machine of $vm could not be made"
    printf '%s\n' "$kit${with:+ $with}" >"$vm_cache/kit"
  fi
fi

[ "$(id -u)" = 0 ] || say 'note: the tests themselves need root'
say "ready: $(containerd --version | cut -d' ' -f1,3), $(PATH="$PATH:/usr/sbin:/sbin" runc --version | head -n 1)"
