#!/bin/sh
# npm run deb [-- FOLDER [--as-built]]: builds Debian packages into FOLDER (default dist/deb): actorlet (the programs, the systemd unit, the
# drop-in for kubeadm's kubelet.service) and actorlet-node (the Node.js this checkout is tested with, for machines whose own is
# older than 22.19). --as-built takes dist/ as it is, for tests. Needs dpkg-deb, no root. See docs/system-service.md.
set -eu
program='npm run deb'
. "$(dirname -- "$0")/env.sh"
command -v dpkg-deb >/dev/null 2>&1 || { echo "$program: dpkg-deb is not on PATH; it comes with Debian's package dpkg" >&2; exit 1; }
out=${1:-dist/deb}
install_packages
use_node
if [ "${2:-}" = --as-built ]; then build_programs; else "$node" scripts/build.mjs --force; fi
"$node" scripts/man/main.ts
read_field() { "$node" -p "require('./package.json').$1"; }
version=$(read_field version)
arch=$(dpkg --print-architecture)
case $arch in amd64) cpu=x64 ;; arm64) cpu=arm64 ;; *) echo "$program: no Node.js for $arch here; known are amd64 and arm64" >&2; exit 1 ;; esac
# The same sources give the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1704067200)}
export SOURCE_DATE_EPOCH
umask 022
work=$(mktemp -d "${TMPDIR:-/tmp}/actorlet-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# control TREE PACKAGE DEPENDS SUMMARY TEXT
control() {
  mkdir -p "$1/DEBIAN"
  cat >"$1/DEBIAN/control" <<END
Package: $2
Version: $version
Architecture: $arch
Maintainer: actorlet maintainers <maintainers@users.noreply.github.com>
Section: admin
Priority: optional
Installed-Size: $(du -sk "$1" | cut -f1)
Depends: $3
Description: $4
 $5
END
}
# pack TREE PACKAGE
pack() {
  chmod -R u=rwX,go=rX "$1"
  dpkg-deb --root-owner-group -Zgzip -z6 --build "$1" "$out/$2_${version}_$arch.deb" >/dev/null
  echo "$program: $out/$2_${version}_$arch.deb"
}

tree=$work/actorlet
lib=$tree/usr/lib/actorlet
mkdir -p "$lib/scripts" "$lib/node_modules/@koromix" "$tree/usr/bin" "$tree/usr/share/doc/actorlet" "$tree/usr/share/actorlet" \
  "$tree/usr/lib/systemd/system" "$tree/etc/actorlet" "$tree/etc/default"
cp -r bin proto package.json "$lib/"
cp scripts/launch.sh "$lib/scripts/"
mkdir "$lib/dist"
cp -r dist/*.mjs dist/chunks dist/lib dist/inspect "$lib/dist/"
find "$lib/dist" -name '*.map' -delete
# What the bundles leave out (scripts/build.mjs): the client of `actorctl node`, here as one file, the host's figures, native code.
mkdir "$lib/node_modules/systeminformation"
cp -r node_modules/systeminformation/lib node_modules/systeminformation/package.json "$lib/node_modules/systeminformation/"
client=$lib/node_modules/@kubernetes/client-node
node_modules/.bin/esbuild node_modules/@kubernetes/client-node/dist/index.js --bundle --platform=node --format=esm --target=node22 \
  --minify --legal-comments=none --log-level=warning --outfile="$client/index.js" \
  --banner:js="import { createRequire as createRequireHere } from 'node:module'; const require = createRequireHere(import.meta.url);"
echo '{"name":"@kubernetes/client-node","type":"module","main":"index.js"}' >"$client/package.json"
cp -r node_modules/koffi "$lib/node_modules/"
cp -r "node_modules/@koromix/koffi-linux-$cpu" "$lib/node_modules/@koromix/"
ln -s ../lib/actorlet/bin/actorlet ../lib/actorlet/bin/actorctl "$tree/usr/bin/"
sed 's#/opt/actorlet/bin/actorlet#/usr/bin/actorlet#' packaging/systemd/actorlet.service >"$tree/usr/lib/systemd/system/actorlet.service"
cp packaging/kubeadm/20-actorlet.conf "$tree/usr/share/actorlet/"
cp -r schemas "$tree/usr/share/actorlet/"
cp -r packaging/monitoring "$tree/usr/share/actorlet/"
share=$tree/usr/share
mkdir -p "$share/man/man1" "$share/man/man8" "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
gzip -9nc dist/man/actorctl.1 >"$share/man/man1/actorctl.1.gz"
gzip -9nc dist/man/actorlet.8 >"$share/man/man8/actorlet.8.gz"
for name in actorctl actorlet; do
  cp "dist/completions/bash/$name" "$share/bash-completion/completions/$name"
  cp "dist/completions/zsh/$name" "$share/zsh/vendor-completions/_$name"
  cp "dist/completions/fish/$name" "$share/fish/vendor_completions.d/$name.fish"
done
# The documents with their folders, so that links among them lead somewhere.
doc=$share/doc/actorlet
cp -r README.md SECURITY.md CONTRIBUTING.md ARCHITECTURE.md CHANGELOG.md docs examples "$doc/"
rm -rf "$doc/docs/images" "$doc/docs/spec" "$doc/docs/decisions"
find "$doc/examples" \( -name node_modules -o -name package-lock.json \) -prune -exec rm -rf {} +
sed 's#\$schema=.*/#$schema=/usr/share/actorlet/schemas/#' examples/containerd/config.yaml >"$tree/etc/actorlet/config.yaml"
echo 'ACTORLET_ARGS=' >"$tree/etc/default/actorlet"
cp LICENSE "$tree/usr/share/doc/actorlet/copyright"
control "$tree" actorlet 'nodejs (>= 22.19) | actorlet-node' 'Kubernetes node agent (kubelet) built as a supervision tree' \
  'The daemon actorlet takes the place of the kubelet. actorctl shows what it does.'
printf '%s\n' /etc/actorlet/config.yaml /etc/default/actorlet >"$tree/DEBIAN/conffiles"
cat >"$tree/DEBIAN/postinst" <<'END'
#!/bin/sh
# The unit is neither enabled nor started: a node has one node agent, and another one may run.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
END
cat >"$tree/DEBIAN/prerm" <<'END'
#!/bin/sh
# Containers keep running (KillMode=process).
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now actorlet.service; fi
END
cp "$tree/DEBIAN/postinst" "$tree/DEBIAN/postrm"
sed -i '/^# The unit/d' "$tree/DEBIAN/postrm"
chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/prerm" "$tree/DEBIAN/postrm"
pack "$tree" actorlet

tree=$work/actorlet-node
mkdir -p "$tree/usr/lib/actorlet/node_modules/node-linux-$cpu/bin" "$tree/usr/share/doc/actorlet-node"
cp "node_modules/node-linux-$cpu/bin/node" "$tree/usr/lib/actorlet/node_modules/node-linux-$cpu/bin/"
cp "node_modules/node-linux-$cpu/LICENSE" "$tree/usr/share/doc/actorlet-node/copyright"
control "$tree" actorlet-node 'libc6 (>= 2.28), libstdc++6' "Node.js $("$node" --version) for actorlet" \
  'Installed where actorlet looks first. It does not appear on PATH.'
pack "$tree" actorlet-node
