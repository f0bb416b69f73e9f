/** A daemon that starts over 1,000 mounts of a dead NFS server, which nobody wants: it starts other pods meanwhile, and takes all down. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../../daemon.ts';
import { hasMachine, Machine, staticPod } from '../machine.ts';
import { leaveStaleMounts, nfsServer } from './nfsServer.ts';

const vm = new Machine(`stale-${randomBytes(4).toString('hex')}`);
const server = nfsServer(vm);
const ROOT = '/root/actorlet/root';
const COUNT = 1_000;
/** Ten times what it takes without them: the machine has one processor. */
const OTHER_POD_MS = 30_000;

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await server.start();
}, 300_000);
afterAll(() => vm.dispose());

it('1,000 stale mounts at the start hold up neither the daemon nor another pod, and are gone in the end', async () => {
  await leaveStaleMounts(vm, server, { rootDir: ROOT, count: COUNT });
  await vm.start();
  const pid = await vm.run('systemctl show actorlet -p MainPID --value');
  for (const name of ['first', 'second', 'third']) {
    await vm.put(name, staticPod(name));
    await vm.running(name, OTHER_POD_MS);
    await vm.remove(name);
  }
  await vm.wait(
    'all to be gone',
    () => vm.holds(`! grep -q '${ROOT}/pods/stale-' /proc/mounts && ! ls ${ROOT}/pods | grep -q stale-`),
    240_000,
  );
  expect(await vm.run('systemctl show actorlet -p MainPID --value')).toBe(pid);
  expect(await vm.run(`grep -l '^State:.D' /proc/${pid}/task/*/status 2>/dev/null | wc -l`)).toBe('0');
}, 600_000);
