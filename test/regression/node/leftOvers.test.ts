/** What is left of pods on the disk, and who removes it. */
import { describe, expect } from 'vitest';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { containerGcAddr } from '../../../src/machines/reclaim/messages.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod, ROOT, type VirtualNode, virtualNode } from '../../integration/virtualNode.ts';

describe('what a killed daemon left of a pod that is gone', () => {
  /** What a killed daemon left of a pod that is gone: its containers, and so its folder, stayed until the next collection, a minute later. */
  it('goes within seconds of the next start', async ({ h }) => {
    await h.run('web', pod('web'));
    const [uid = ''] = await h.fs.readdir(`${ROOT}/pods`);
    h.remove('web');
    await h.until('it has ended', () => h.running('web').length === 0);
    await h.restart();
    expect(h.fs.has(`${ROOT}/pods/${uid}`)).toBe(true);
    expect(h.containers('web')).toHaveLength(1);
    await h.until('its folder is gone', () => !h.fs.has(`${ROOT}/pods/${uid}`), 15_000);
    expect(h.containers('web')).toEqual([]);
  });
});

describe('the log of a container that runs stays, also while the ledger of pods, begun anew, does not know its pod (found by the simulation, seed 1500368)', () => {
  const LOGS = '/var/log/actorlet/pods';

  it('keeps the log of a container that still runs while nobody knows its pod', async ({ h }) => {
    h.write('web', pod('web', { life: 'run=forever,term=60s', spec: { terminationGracePeriodSeconds: 90 } }));
    await h.until('it runs', () => h.running('web').length === 1);
    const uid = h.uid('web');
    const log = `${LOGS}/default_web-n1_${uid}/main/0.log`;
    h.fs.put(log, 'a line\n');
    h.remove('web');
    await h.until('it is being stopped', () => h.state(`node/pods/workers/${uid}`).startsWith('terminating'));
    // Nobody tells the new ledger of what the runtime holds besides what its sources name.
    const untold = h.tree.tap((_path, _lane, { type }) => (type === 'pods.orphan' ? 'drop' : 'pass'));
    h.kill('node/pods/podManager');
    const ledger = () => h.tree.registry.read(podsView)?.value;
    await h.until('there is a ledger that does not know it', () => ledger()?.sourcesReady === true && ledger()?.records.has(uid) === false);
    h.tree.registry.send(containerGcAddr, { type: 'gc.run', why: 'a test' });
    const sweeps = () =>
      h.events.filter((e) => e.kind === 'transition' && e.path === 'node/reclaim/containerGc' && e.from === 'sweeping').length;
    const before = sweeps();
    await h.until('the collector has swept', () => sweeps() > before);
    const running = () => h.runtime.dump().containers.filter((c) => c.podUid === uid && c.state === 'CONTAINER_RUNNING');
    expect(running()).toHaveLength(1);
    expect(h.fs.has(log)).toBe(true);
    untold[Symbol.dispose]();
    await h.until('its logs are gone with it', () => running().length === 0 && !h.fs.has(log), 300_000);
  });
});

it('the log of a container that runs stays where an old instance that goes counts the same restarts', async ({ h }) => {
  h.write('web', pod('web', { life: 'run=40s,exit=1' }));
  const COUNT = 'io.kubernetes.container.restartCount';
  const counts = () => h.containers('web').map((c) => c.annotations[COUNT]);
  await h.until('the third instance runs', () => counts().length === 3 && h.running('web').length === 1, 120_000);
  const [{ id = '' } = {}] = h.containers('web').filter((c) => c.annotations[COUNT] === '0');
  const log = `/var/log/actorlet/pods/default_web-n1_${h.uid('web')}/main/2.log`;
  h.fs.put(log, 'a line\n');
  h.faults.answer = (method, value) => {
    if (method === 'ListContainers')
      for (const c of (value as { containers: { annotations: object }[] }).containers) c.annotations = { ...c.annotations, [COUNT]: '2' };
    return value;
  };
  h.tree.registry.send(containerGcAddr, { type: 'gc.run', why: 'a test' });
  await h.until('the first instance has gone', () => h.containers('web').every((c) => c.id !== id), 60_000);
  expect([h.running('web').length, h.fs.has(log)]).toEqual([1, true]);
});

describe('parts of volumes that stayed mounted for ever', () => {
  const HOST = { name: 'host', hostPath: { path: '/srv/data', type: 'DirectoryOrCreate' } };
  const CACHE = { name: 'cache', emptyDir: {} };
  const up = (h: VirtualNode) => h.phase('web') === 'Running' && h.running('web').length === 1;

  it('of a volume that lies elsewhere, when a power failure left of its pod nothing but them', async () => {
    const container = { volumeMounts: [{ name: 'host', mountPath: '/data', subPath: 'x' }] };
    await using h = await virtualNode({ manifests: { web: pod('web', { container, spec: { volumes: [HOST] } }) } });
    await h.until('web runs', () => up(h));
    const dir = `${ROOT}/pods/${h.uid('web')}`;
    await h.crash();
    for (const path of [...h.fs.below(dir)].reverse()) {
      if (path.includes('volume-subpaths')) continue;
      if ((await h.fs.lstat(path)).kind === 'dir') await h.fs.rmdir(path);
      else await h.fs.unlink(path);
    }
    h.remove('web');
    await h.boot();
    await h.until('its directory goes', () => !h.fs.has(dir), 300_000);
    expect(h.mounts.table).toEqual([]);
  });

  it('when the worker and then the pod went while they were bound one after the other', async () => {
    const volumeMounts = [
      { name: 'cache', mountPath: '/cache', subPath: 'x' },
      { name: 'host', mountPath: '/data', subPath: 'x' },
    ];
    await using h = await virtualNode();
    let slow = 0;
    h.mounts.trouble.delayMs = (op, path) => {
      if (op !== 'mount' || !path.includes('volume-subpaths/cache')) return 0;
      slow += 1;
      return 10_000;
    };
    h.write('web', pod('web', { container: { volumeMounts }, spec: { volumes: [CACHE, HOST] } }));
    await h.until('the first of them is being bound', () => slow === 1, 60_000);
    const uid = h.uid('web');
    // Whoever asked for them is gone; its successor gives the volumes back.
    expect(h.tree.kill(`node/pods/workers/${uid}`, 'the test')).toBe(true);
    h.remove('web');
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${uid}`), 300_000);
    await h.advance(120_000);
    expect(h.mounts.table).toEqual([]);
    expect(slow).toBe(1);
  });
});

describe('one directory that cannot be removed is said once and keeps no other from being removed', () => {
  async function put(h: VirtualNode, path: string): Promise<void> {
    await h.fs.mkdirp(path.slice(0, path.lastIndexOf('/')), 0o755);
    h.fs.put(path, 'x');
  }

  it('under the pods of the root directory', async ({ h }) => {
    for (const uid of ['a', 'b', 'c']) await put(h, `${ROOT}/pods/${uid}/etc-hosts`);
    await put(h, `${ROOT}/pods/a/volumes/v/data`);
    h.fs.failing = (op, path) => (op === 'unlink' && path.startsWith(`${ROOT}/pods/b/`) ? 'EBUSY' : undefined);
    await h.advance(180_000);
    expect(h.fs.has(`${ROOT}/pods/c`)).toBe(false);
    expect(h.fs.has(`${ROOT}/pods/a/volumes/v/data`)).toBe(true);
    const said = h.lines.filter((l) => JSON.stringify(l).includes(`${ROOT}/pods/`)).map((l) => JSON.stringify(l));
    expect(said.filter((l) => l.includes('/pods/a"'))).toHaveLength(1);
    expect(said.filter((l) => l.includes('/pods/b"'))).toHaveLength(1);
  });

  it('under the log directory of pods', async ({ h }) => {
    const logs = '/var/log/actorlet/pods';
    for (const uid of ['a', 'b']) await put(h, `${logs}/default_p_${uid}/main/0.log`);
    h.fs.failing = (op, path) => (op === 'unlink' && path.startsWith(`${logs}/default_p_a/`) ? 'EBUSY' : undefined);
    await h.advance(240_000);
    expect(h.fs.has(`${logs}/default_p_b`)).toBe(false);
    expect(h.fs.has(`${logs}/default_p_a/main/0.log`)).toBe(true);
  });
});

describe('garbage collection decides on what is wanted when it removes, not on what was wanted when it began', () => {
  it('leaves the containers of a pod that came back during the sweep', async ({ h }) => {
    const names = ['a', 'b', 'c'];
    const write = () => {
      for (const n of names) h.write(n, pod(n, { uid: `pinned-${n}`, life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } }));
    };
    write();
    await h.until('all succeeded', () => names.every((n) => h.phase(n) === 'Succeeded'));
    await h.advance(70_000);
    h.faults.latencyMs.RemoveContainer = 5_000;
    let asked = 0;
    h.faults.fault = (method) => {
      if (method === 'RemoveContainer') asked += 1;
      return undefined;
    };
    // It comes back a second later, and finds them all gone.
    h.kill('node/reclaim/containerGc');
    for (const n of names) h.remove(n);
    await h.until('the sweep has begun to remove', () => asked === 1, 120_000);
    write();
    await h.until('all are back', () => names.every((n) => h.phase(n) === 'Succeeded' || h.running(n).length > 0), 30_000);
    await h.advance(60_000);
    expect(asked).toBe(1);
    expect(h.runtime.dump().containers).toHaveLength(3);
  });
});
