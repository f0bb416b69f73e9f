#!/bin/sh
# npm run build:observe [-- FOLDER [--as-built]]: builds what `actorlet observe` is shipped as into FOLDER (default dist/observe):
#   actorlet/    one folder that runs on a node as it is: programs, Node.js, and the libraries of Node.js for nodes that lack them
#   rootfs/      the root of the container image: that folder, the libraries in their places
#   image.tar    the image as an archive: ctr -n k8s.io images import, docker load, skopeo copy docker-archive:
# --as-built takes dist/ as it is, for tests. IMAGE names the image. Needs no root, no registry, no network. See docs/observe.md.
set -eu
program='npm run build:observe'
script_up=../..
. "$(dirname -- "$0")/../env.sh"
out=${1:-dist/observe}
install_packages
use_node
if [ "${2:-}" = --as-built ]; then build_programs; else "$node" scripts/build.mjs --force; fi
version=$("$node" -p "require('./package.json').version")
image=${IMAGE:-localhost/actorlet-observe:$version}
case $(uname -m) in x86_64) cpu=x64 arch=amd64 ;; aarch64) cpu=arm64 arch=arm64 ;; *) echo "$program: no Node.js for $(uname -m) here; known are x86_64 and aarch64" >&2; exit 1 ;; esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1704067200)}
umask 022
mkdir -p "$out"
rm -rf "$out/actorlet" "$out/rootfs" "$out/image.tar"
home=$out/actorlet
mkdir -p "$home/scripts" "$home/dist" "$home/node_modules/@koromix" "$home/node_modules/node-linux-$cpu/bin" "$home/runtime/lib"

# The programs, without those that an observer never starts.
cp -r bin proto package.json LICENSE "$home/"
cp scripts/launch.sh "$home/scripts/"
for name in actorlet actorctl documents watchdog debugger hostfigures subpath; do cp "dist/$name.mjs" "$home/dist/"; done
cp -r dist/chunks dist/inspect "$home/dist/"
find "$home/dist" -name '*.map' -delete
cp -r packaging/observe "$home/manifests"
mkdir "$home/node_modules/systeminformation"
cp -r node_modules/systeminformation/lib node_modules/systeminformation/package.json "$home/node_modules/systeminformation/"
cp -r node_modules/koffi "$home/node_modules/"
cp -r "node_modules/@koromix/koffi-linux-$cpu" "$home/node_modules/@koromix/"

# Node.js, and what it is linked with.
cp "node_modules/node-linux-$cpu/bin/node" "$home/node_modules/node-linux-$cpu/bin/"
cp "node_modules/node-linux-$cpu/LICENSE" "$home/node_modules/node-linux-$cpu/"
native=$(find "$home/node_modules/@koromix" -name '*.node')
# shellcheck disable=SC2086 # a list of files
libraries=$(ldd "$home/node_modules/node-linux-$cpu/bin/node" $native | awk '/=> \// { print $3 } /^[[:space:]]*\/.*ld-linux/ { print $1 }' | sort -u)
for file in $libraries; do cp -L "$file" "$home/runtime/lib/"; done
loader=$(basename "$(echo "$libraries" | grep ld-linux)")
cat >"$home/runtime/node" <<END
#!/bin/sh
# Node.js with its own libraries, for a machine without glibc 2.28 or libstdc++.
here=\$(CDPATH='' cd -P -- "\$(dirname -- "\$0")" && pwd)
ACTORLET_EXEC_PATH=\$here/node
export ACTORLET_EXEC_PATH
exec "\$here/lib/$loader" --library-path "\$here/lib" "\$here/../node_modules/node-linux-$cpu/bin/node" "\$@"
END
chmod 755 "$home/runtime/node"

# The image has no shell: its programs are scripts of Node.js, which becomes what they start.
root=$out/rootfs
mkdir -p "$root/usr/bin" "$root/tmp" "$root/proc" "$root/sys" "$root/dev" "$root/etc" "$root/host" "$root/var/lib/actorlet-observe" "$root/var/log" "$root/run"
cp -rl "$home" "$root/actorlet"
rm -r "$root/actorlet/bin"
for file in $libraries; do
  mkdir -p "$root$(dirname "$file")"
  cp -L "$file" "$root$file"
done
chmod 1777 "$root/tmp"
for name in actorlet actorctl; do
  cat >"$root/usr/bin/$name" <<END
#!/actorlet/node_modules/node-linux-$cpu/bin/node --disable-warning=ExperimentalWarning
const flags = '--disable-sigusr1 $v8_flags --disable-warning=ExperimentalWarning'.split(' ');
process.execve(process.execPath, [process.execPath, ...flags, '/actorlet/dist/$name.mjs', ...process.argv.slice(2)], process.env);
END
  chmod 755 "$root/usr/bin/$name"
done
# In a pod the program sees the node as a process of it does: below its root.
cat >"$root/usr/bin/actorlet-on-node" <<END
#!/actorlet/node_modules/node-linux-$cpu/bin/node --disable-warning=ExperimentalWarning
// actorlet-on-node copy FOLDER: the programs, for a later run.
// actorlet-on-node run ROOT FOLDER WORDS...: actorlet with another root; FOLDER is below it.
// actorlet-on-node debug ROOT WORDS...: the same without a copy, in a privileged container (kubectl debug node --profile=sysadmin).
const { cpSync, rmSync } = require('node:fs');
const [how, place, ...rest] = process.argv.slice(2);
const end = (what) => {
  console.error('actorlet-on-node: ' + what);
  process.exit(1);
};
const libc = () => require('/actorlet/node_modules/koffi').load('libc.so.6');
function run(root, folder, words) {
  if (libc().func('int chroot(const char *path)')(root) !== 0) end(root + ' cannot become the root: it is no folder, or the capability SYS_CHROOT is missing');
  process.chdir('/');
  const program = [folder + '/runtime/lib/$loader', '--library-path', folder + '/runtime/lib', folder + '/node_modules/node-linux-$cpu/bin/node'];
  const flags = '--disable-sigusr1 $v8_flags --disable-warning=ExperimentalWarning'.split(' ');
  const env = { ...process.env, PATH: '/usr/sbin:/usr/bin:/sbin:/bin', ACTORLET_EXEC_PATH: folder + '/runtime/node' };
  process.execve(program[0], [...program, ...flags, folder + '/dist/actorlet.mjs', ...words], env);
}
/** The root of this container over a folder of the node, in the mounts of this container alone: nothing goes back to the node. */
function debug(root, words) {
  const mount = libc().func('int mount(const char *from, const char *to, const char *type, ulong flags, const void *data)');
  const [BIND, REC, SLAVE] = [4096, 16384, 1 << 19];
  if (mount('', root, '', REC | SLAVE, null) !== 0 || mount('/', root + '/var/tmp', '', BIND, null) !== 0)
    end(root + ' cannot be changed for this container alone: it needs --profile=sysadmin');
  run(root, '/var/tmp/actorlet', [...words, '--observe-dir=/var/tmp/var/lib/actorlet-observe']);
}
if (how === 'copy') {
  rmSync(place, { recursive: true, force: true });
  cpSync('/actorlet', place, { recursive: true, verbatimSymlinks: true });
} else if (how === 'run' && rest.length > 1) run(place, rest[0], rest.slice(1));
else if (how === 'debug' && rest.length > 0) debug(place, rest);
else end('copy FOLDER, run ROOT FOLDER WORDS..., or debug ROOT WORDS...');
END
chmod 755 "$root/usr/bin/actorlet-on-node"
echo 'root:x:0:0:root:/:/' >"$root/etc/passwd"
# An archive of one layer, the same for the same sources.
work=$(mktemp -d "${TMPDIR:-/tmp}/actorlet-observe.XXXXXX")
trap 'rm -rf "$work"' EXIT
archive() { tar --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$@"; }
archive -cf "$work/layer.tar" -C "$root" .
layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
created=$("$node" -p "new Date($SOURCE_DATE_EPOCH * 1000).toISOString()")
printf '{"architecture":"%s","os":"linux","created":"%s","config":{"Env":["PATH=/usr/bin"],"Entrypoint":["/usr/bin/actorlet"],"Cmd":["observe"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s","created_by":"%s"}]}' \
  "$arch" "$created" "$layer" "$created" "$program" >"$work/config.json"
config=$(sha256sum "$work/config.json" | cut -d' ' -f1)
mv "$work/config.json" "$work/$config.json"
printf '[{"Config":"%s.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$config" "$image" >"$work/manifest.json"
archive -cf "$out/image.tar" -C "$work" manifest.json "$config.json" layer.tar
echo "$program: $out/actorlet (folder), $out/image.tar ($image)"
