/** What `npm run build:observe` makes runs where there is nothing else: in the image's own root, and beside a busybox alone. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../../..');
const out = mkdtempSync(join(tmpdir(), 'actorlet-observe-'));

beforeAll(() => run('sh', [join(project, 'scripts/build/observe.sh'), out, '--as-built'], { cwd: project, timeout: 240_000 }), 300_000);
afterAll(() => rmSync(out, { recursive: true, force: true }));

/** In a PID and mount namespace of its own, with /proc and /dev. The exit code and what was printed. */
async function inRoot(root: string, ...command: string[]): Promise<string> {
  for (const name of ['proc', 'dev']) mkdirSync(join(root, name), { recursive: true });
  const mounts = 'mount --make-rprivate / && mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev"';
  const script = `${mounts} && root=$1 && shift && exec chroot "$root" "$@"`;
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
  return run('unshare', ['-m', '-p', '-f', 'sh', '-c', script, 'sh', root, ...command], { env, timeout: 60_000 }).then(
    ({ stdout, stderr }) => `0 ${stdout}${stderr}`,
    (error: { code?: unknown; stdout?: string; stderr?: string }) => `${String(error.code)} ${error.stdout ?? ''}${error.stderr ?? ''}`,
  );
}

test('the image starts both programs without a shell', async () => {
  const root = join(out, 'rootfs');
  expect(await inRoot(root, '/usr/bin/actorlet', '--version')).toMatch(/^0 Kubernetes v1\./);
  expect(await inRoot(root, '/usr/bin/actorlet', 'observe', '--show-kubelet')).toMatch(/^1 .*In a container it needs hostPID: true/s);
  expect(await inRoot(root, '/usr/bin/actorctl', '--version')).toMatch(/^0 /);
  expect(statSync(join(out, 'image.tar')).size).toBeGreaterThan(statSync(process.execPath).size);
}, 120_000);

test('the folder brings the libraries of its Node to a machine that has none', async () => {
  const root = join(out, 'bare');
  mkdirSync(join(root, 'bin'), { recursive: true });
  cpSync('/bin/busybox', join(root, 'bin/busybox'), { dereference: true });
  for (const name of ['sh', 'ls', 'dirname', 'cat', 'awk']) symlinkSync('busybox', join(root, 'bin', name));
  cpSync(join(out, 'actorlet'), join(root, 'actorlet'), { recursive: true });
  expect(await inRoot(root, '/actorlet/bin/actorlet', '--version')).toMatch(/^0 Kubernetes v1\./);
  expect(await inRoot(root, '/actorlet/bin/actorctl', 'pods')).toMatch(/^3 .*no daemon/s);
}, 120_000);
