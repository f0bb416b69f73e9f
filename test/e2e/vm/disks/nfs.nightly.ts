/** NFS with a real server: mounted, shared, and a server that stops answering under pods, the daemon's start and its end. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../../daemon.ts';
import { hasMachine, Machine, staticPod } from '../machine.ts';
import { NFS_SERVER, nfsServer } from './nfsServer.ts';

const vm = new Machine(`nfs-${randomBytes(4).toString('hex')}`);
const server = nfsServer(vm);
/** A deadline hangs 25 s, and looks are slow. */
const WAIT_MS = 60_000;
const ROOT = '/root/actorlet/root';

interface NfsOptions {
  readOnly?: boolean;
  subPath?: string;
  /** Default `/`, which versions before 4 do not have. */
  path?: string;
  command?: string;
}
const withNfs = (name: string, o: NfsOptions = {}): object =>
  staticPod(name, {
    spec: {
      containers: [
        {
          ...{ name: 'main', image: 'localhost/busybox:1', command: ['sh', '-c', o.command ?? 'sleep 3600'] },
          volumeMounts: [{ name: 'files', mountPath: '/files', ...(o.subPath === undefined ? {} : { subPath: o.subPath }) }],
        },
      ],
      volumes: [{ name: 'files', nfs: { server: NFS_SERVER, path: o.path ?? '/', ...(o.readOnly === true ? { readOnly: true } : {}) } }],
    },
  });
/** Opens nothing once it runs: what then waits for a dead server are writes, which no signal ends. */
const WRITES = 'exec 3>/files/big; while :; do dd if=/dev/zero bs=64k count=1 conv=fsync >&3; sleep 0.1; done';
const mounts = () => vm.run(`grep ${ROOT}/pods /proc/mounts | grep -E ' nfs4? ' || true`);
/** Pods leave the list before their volumes are down. */
const allGone = () => vm.wait('all mounts to be gone', async () => (await mounts()) === '', WAIT_MS);
const why = (name: string) => vm.run(`curl -s --unix-socket ${ROOT}/actorlet.sock 'http://x/why?pod=${name}' | sed 's/\\\\n/\\n/g'`);
/** Threads of the daemon that wait in the kernel for something that cannot be interrupted. */
const stuckThreads = () =>
  vm.run(`grep -l '^State:.D' /proc/$(systemctl show actorlet -p MainPID --value)/task/*/status 2>/dev/null | wc -l`);

/** Helpers that hang keep the unit of a daemon that has ended. */
const forgotten = async () => {
  await vm.run('systemctl kill --kill-whom=all -s KILL actorlet || true');
  await vm.wait('the unit to be forgotten', () => vm.holds('! systemctl cat actorlet'), WAIT_MS);
};

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await server.start();
  await vm.start();
}, 300_000);
afterEach(async () => {
  await server.answer();
  await vm.run('rm -f /etc/nfsmount.conf; [ ! -e /usr/sbin/mount.nfs.away ] || mv /usr/sbin/mount.nfs.away /usr/sbin/mount.nfs');
  await vm.clear();
});
afterAll(() => vm.dispose());

it('is mounted for containers, read-only where asked for, a part of it where asked for, and nothing of it stays', async () => {
  await vm.put('w', withNfs('w', { command: 'echo hello >/files/from-w; sleep 3600' }));
  await vm.put('r', withNfs('r', { readOnly: true, command: 'echo no >/files/from-r || touch /tmp/refused; sleep 3600' }));
  await vm.put('p', withNfs('p', { subPath: 'part/of', command: 'echo deep >/files/inside; sleep 3600' }));
  for (const name of ['w', 'r', 'p']) await vm.running(name, WAIT_MS);
  await vm.wait('the files to be on the server', () => vm.holds('grep -q hello /export/from-w && grep -q deep /export/part/of/inside'));
  expect(await vm.holds('test -e /export/from-r')).toBe(false);
  expect((await mounts()).split('\n').filter((line) => line.includes('vers=4.2'))).toHaveLength(4);
  for (const name of ['w', 'r', 'p']) await vm.remove(name);
  await allGone();
  expect(await vm.holds('test -e /export/from-w')).toBe(true);
}, 150_000);

it('of version 3 is mounted too, and a node without mount.nfs says what it lacks', async () => {
  await vm.run(`printf '[ NFSMount_Global_Options ]\\nDefaultvers=3\\nLock=False\\n' >/etc/nfsmount.conf`);
  await vm.put('three', withNfs('three', { path: '/export' }));
  await vm.running('three', WAIT_MS);
  expect(await mounts()).toContain('vers=3');
  await vm.remove('three');
  await allGone();
  await vm.run('rm /etc/nfsmount.conf; mv /usr/sbin/mount.nfs /usr/sbin/mount.nfs.away');
  await vm.put('without', withNfs('without'));
  await vm.wait('the reason to be told', async () => (await why('without')).includes('it has no mount.nfs (package nfs-common'), WAIT_MS);
  await vm.run('mv /usr/sbin/mount.nfs.away /usr/sbin/mount.nfs');
  await vm.running('without', WAIT_MS);
}, 150_000);

it('whose server is dead holds up neither other pods, nor statistics, nor a start or an end; its pods go all the same', async () => {
  await vm.put('held', withNfs('held', { subPath: 'part', command: 'while :; do ls /files >/dev/null; sleep 1; done' }));
  await vm.put('writer', withNfs('writer', { command: WRITES }));
  for (const name of ['held', 'writer']) await vm.running(name, WAIT_MS);
  await vm.wait('the writer to write', () => vm.holds('test -s /export/big'));
  await server.silence();
  // A look at what the volume uses hangs from now on.
  expect(await vm.run('curl -s -m 10 http://127.0.0.1:10255/stats/summary | grep -c podRef')).not.toBe('0');
  await vm.put('late', withNfs('late'));
  await vm.put('other', staticPod('other'));
  await vm.running('other', WAIT_MS);
  await vm.wait(
    'the dead server to be named',
    async () => (await why('late')).includes(`the NFS server of ${NFS_SERVER}:/ does not answer`),
    WAIT_MS,
  );
  expect([await vm.run('curl -s http://127.0.0.1:10248/healthz'), await stuckThreads()]).toEqual(['ok', '0']);
  const unkillable = 'pid=$(pidof dd) && kill -9 $pid && ! timeout 3 tail --pid=$pid -f /dev/null';
  await vm.wait('a writer that SIGKILL does not end', () => vm.holds(unkillable), WAIT_MS);

  await vm.end('SIGKILL');
  await forgotten();
  await vm.start();
  await vm.running('other', WAIT_MS);
  expect(await stuckThreads()).toBe('0');
  const removed = Date.now();
  for (const name of ['held', 'late', 'writer']) await vm.remove(name);
  await allGone();
  // A grace period of 1 s, and what a slow machine takes to look.
  expect(Date.now() - removed).toBeLessThan(45_000);
  // The server is still dead: the kernel has given it up for them.
  expect(await vm.log()).toContain('containers wait for a server that does not answer; it was given up');
  expect(await vm.holds('pidof dd')).toBe(false);
  await vm.wait('their directories to be gone', () => vm.holds(`! ls ${ROOT}/pods/*/volumes/kubernetes.io~nfs/files`), WAIT_MS);
  await vm.end();
  await forgotten();
  await vm.start();
}, 200_000);
