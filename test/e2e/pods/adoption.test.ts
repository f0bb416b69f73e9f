/**
 * A node taken over from another agent: pods that were made by hand through CRI, as the reference labels and annotates
 * them, and things in the runtime and on disk that nobody wants.
 */
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashNameAndImage, hashWholeSpec } from '../../../src/machines/pod/runtime/containerHash.ts';
import { decodeManifest } from '../../../src/machines/pods/sources/decode.ts';
import { CRI_ANNOTATIONS } from '../../../src/machines/wire/cri.ts';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { call, containerConfig, sandboxConfig } from '../lab/pods.ts';
import { type Manifest, manifest, steady } from '../manifests.ts';
import { containers, running, sandboxes, statusOf } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;
const RESTARTS = 3;

interface Made {
  sandboxId: string;
  ids: Record<string, string>;
}

/** The containers of a manifest with their defaults, which is what the older hash is taken over. */
function defaulted(m: Manifest) {
  const decoded = decodeManifest(JSON.parse(JSON.stringify(m)), {
    source: 'file',
    where: '/elsewhere/manifest.yaml',
    nodeName: NODE_NAME,
    md5Hex: () => 'not-used',
    preventApiReferences: true,
  });
  const pod = decoded.ok ? decoded.pods[0] : undefined;
  if (pod === undefined) throw new Error(decoded.ok ? 'no pod' : decoded.errors.join('; '));
  return pod;
}

/** Runs a pod as another agent would have left it: names, labels, annotations, log folder, restart count 3. */
async function leftByAnother(m: Manifest, hashOf: (container: Parameters<typeof hashWholeSpec>[0]) => string): Promise<Made> {
  const pod = defaulted(m);
  const { uid, name } = pod.metadata;
  const logDirectory = join(daemon.podLogs, `default_${name}_${uid}`);
  const config = sandboxConfig({ name, uid, cgroupParent: lab.cgroupParent, logDirectory });
  const { podSandboxId } = await call(lab.cri, 'RunPodSandbox', { config });
  const ids: Record<string, string> = {};
  for (const c of pod.spec.containers) {
    mkdirSync(join(logDirectory, c.name), { recursive: true });
    const made = containerConfig({ name: c.name, pod: name, uid, command: [...(c.command ?? [])] });
    const { containerId } = await call(lab.cri, 'CreateContainer', {
      podSandboxId,
      sandboxConfig: config,
      config: {
        ...made,
        metadata: { name: c.name, attempt: RESTARTS },
        logPath: `${c.name}/${RESTARTS}.log`,
        annotations: {
          [CRI_ANNOTATIONS.hash]: hashOf(c),
          [CRI_ANNOTATIONS.restartCount]: String(RESTARTS),
          [CRI_ANNOTATIONS.terminationMessagePath]: '/dev/termination-log',
          [CRI_ANNOTATIONS.terminationMessagePolicy]: 'File',
          [CRI_ANNOTATIONS.podTerminationGracePeriod]: String(pod.spec.terminationGracePeriodSeconds),
        },
      },
    });
    await call(lab.cri, 'StartContainer', { containerId });
    ids[c.name] = containerId;
  }
  return { sandboxId: podSandboxId, ids };
}

const pods = {
  whole: manifest(
    'whole',
    [steady('one', { env: [{ name: 'A', value: 'x' }], resources: { limits: { memory: '64Mi' } } }), steady('two')],
    {
      uid: 'e2e-adopt-whole',
    },
  ),
  image: manifest('image', [steady('one')], { uid: 'e2e-adopt-image' }),
  other: manifest('other', [steady('one'), steady('two')], { uid: 'e2e-adopt-other' }),
  orphan: manifest('orphan', [steady('one')], { uid: 'e2e-orphan' }),
};
let made: Record<keyof typeof pods, Made>;
/** Left by nobody who still wants them. */
const STRAY = 'e2e-stray-uid';

beforeAll(async () => {
  await buildDaemon();
  lab = await startContainerd();
  daemon = await createDaemon(lab);
  // The hash of another image for one container only.
  const changed = (c: Parameters<typeof hashWholeSpec>[0]) =>
    c.name === 'one' ? hashNameAndImage({ ...c, image: 'busybox:0' }) : hashWholeSpec(c);
  made = {
    whole: await leftByAnother(pods.whole, hashWholeSpec),
    image: await leftByAnother(pods.image, hashNameAndImage),
    other: await leftByAnother(pods.other, changed),
    orphan: await leftByAnother(pods.orphan, hashWholeSpec),
  };
  for (const name of ['whole', 'image', 'other'] as const) daemon.put(`${name}.yaml`, pods[name]);
  mkdirSync(join(daemon.rootDir, 'pods', STRAY, 'containers', 'main'), { recursive: true });
  writeFileSync(join(daemon.rootDir, 'pods', STRAY, 'etc-hosts'), '127.0.0.1 localhost\n');
  mkdirSync(join(daemon.podLogs, `default_stray_${STRAY}`, 'main'), { recursive: true });
  writeFileSync(join(daemon.podLogs, `default_stray_${STRAY}`, 'main', '0.log'), '');
  mkdirSync(daemon.containerLogs, { recursive: true });
  symlinkSync(
    join(daemon.podLogs, 'default_gone_x', 'main', '0.log'),
    join(daemon.containerLogs, `gone_default_main-${'0'.repeat(64)}.log`),
  );
  writeFileSync(join(daemon.containerLogs, 'notes.txt'), 'not ours');
  await daemon.start();
});
afterAll(async () => {
  await daemon?.dispose();
  expect(await lab?.stop()).toEqual([]);
});

/** The daemon has looked at the pod and settled. */
async function settled(name: string, restartCounts: Record<string, number>): Promise<void> {
  await daemon.podWhere(
    name,
    `${name} ready with its restart counts`,
    (p) =>
      p.status.containerStatuses?.length === Object.keys(restartCounts).length &&
      p.status.containerStatuses.every((c) => c.ready && c.restartCount === restartCounts[c.name]),
  );
}

describe('pods that another agent left', () => {
  it.each([
    ['the hash of the whole definition', 'whole'],
    ['the hash of name and image', 'image'],
  ] as const)('are taken over by %s: same containers, same sandbox, restart count unchanged', async (_, name) => {
    const { ids, sandboxId } = made[name];
    await settled(name, Object.fromEntries(Object.keys(ids).map((c) => [c, RESTARTS])));
    const now = (await containers(lab, name)).map((c) => [c.container, c.id, c.sandboxId, c.running, c.restartCount]).sort();
    expect(now).toEqual(
      Object.entries(ids)
        .map(([c, id]) => [c, id, sandboxId, true, RESTARTS])
        .sort(),
    );
    expect((await sandboxes(lab, name)).map((s) => [s.id, s.ready])).toEqual([[sandboxId, true]]);
    expect((await daemon.events(name)).filter((e) => ['Killing', 'Created', 'Started'].includes(e.reason))).toEqual([]);
  });

  it('restart once the container whose definition is another one, and only that', async () => {
    const { ids, sandboxId } = made.other;
    await settled('other', { one: RESTARTS + 1, two: RESTARTS });
    const up = (await containers(lab, 'other')).filter((c) => c.running);
    expect(up.map((c) => [c.container, c.restartCount, c.sandboxId]).sort()).toEqual([
      ['one', RESTARTS + 1, sandboxId],
      ['two', RESTARTS, sandboxId],
    ]);
    expect(up.find((c) => c.container === 'two')?.id).toBe(ids.two);
    expect((await statusOf(lab, ids.one ?? '')).state).toBe('CONTAINER_EXITED');
    const why = (await daemon.events('other')).filter((e) => e.reason === 'Killing').map((e) => e.message);
    expect(why).toEqual([expect.stringContaining('definition changed')]);
  });

  it('are still the same after the daemon was killed and came back', async () => {
    const before = await running(lab);
    await daemon.end('SIGKILL');
    await daemon.start();
    for (const name of ['whole', 'image', 'other'] as const) await daemon.phase(name, 'Running');
    const { 'orphan/one': _, ...wanted } = before;
    expect(await running(lab)).toMatchObject(wanted);
  });
});

describe('what nobody wants', () => {
  let uid: string | undefined;
  let first: string[] = [];
  // Before the rest is waited for: one minute of the daemon's collects all of it.
  beforeAll(async () => {
    daemon.put('lives.yaml', manifest('lives', [steady('one')]));
    await settled('lives', { one: 0 });
    uid = (await daemon.pod('lives'))?.metadata.uid;
    first = (await sandboxes(lab, 'lives')).map((s) => s.id);
    // A start in a sandbox that is just being stopped may fail and count: so lives are told apart by sandbox.
    for (const life of [1, 2]) {
      const old = (await sandboxes(lab, 'lives')).find((s) => s.ready)?.id ?? '';
      await call(lab.cri, 'StopPodSandbox', { podSandboxId: old });
      await daemon.wait(
        `life ${life} in a new sandbox`,
        async () => {
          const ready = (await sandboxes(lab, 'lives')).filter((s) => s.ready);
          const up = (await containers(lab, 'lives')).filter((c) => c.running);
          return ready.length === 1 && ready[0]?.id !== old && up.length === 1 && up[0]?.sandboxId === ready[0]?.id;
        },
        { timeoutMs: 60_000 },
      );
    }
  });

  it('is stopped and collected: pods in the runtime, their sandboxes and logs', async () => {
    await daemon.wait('the orphan to leave the runtime', async () => (await containers(lab, 'orphan')).length === 0, { timeoutMs: 90_000 });
    await daemon.wait('its sandbox to go', async () => (await sandboxes(lab, 'orphan')).length === 0, { timeoutMs: 90_000 });
    await daemon.wait('its logs to go', () => !readdirSync(daemon.podLogs).some((d) => d.includes('e2e-orphan')), { timeoutMs: 90_000 });
    expect(Object.keys(await running(lab)).sort()).toEqual(['image/one', 'lives/one', 'other/one', 'other/two', 'whole/one', 'whole/two']);
  });

  it('is removed from disk: folders of unknown pods, their logs, links to nothing; what is not ours stays', async () => {
    await daemon.wait('the stray folder to go', () => !existsSync(join(daemon.rootDir, 'pods', STRAY)), { timeoutMs: 90_000 });
    await daemon.wait('its logs to go', () => !readdirSync(daemon.podLogs).some((d) => d.includes(STRAY)), { timeoutMs: 90_000 });
    await daemon.wait('the dead link to go', () => !readdirSync(daemon.containerLogs).some((l) => l.startsWith('gone_')), {
      timeoutMs: 90_000,
    });
    expect(readdirSync(daemon.containerLogs)).toContain('notes.txt');
    expect(existsSync(join(daemon.podLogs, 'default_whole-e2e_e2e-adopt-whole'))).toBe(true);
  });

  it('includes old sandboxes and all but the newest dead container of a pod that lives on', async () => {
    const newest = (await containers(lab, 'lives')).find((c) => c.running)?.restartCount ?? Number.NaN;
    expect(newest).toBeGreaterThanOrEqual(2);
    await daemon.wait(
      'all but one dead instance to be collected',
      async () => {
        const held = (await containers(lab, 'lives')).map((c) => c.restartCount);
        return held.join() === `${newest},${newest - 1}` && (await sandboxes(lab, 'lives')).every((s) => !first.includes(s.id));
      },
      { timeoutMs: 90_000, everyMs: 500 },
    );
    const logs = readdirSync(join(daemon.podLogs, `default_lives-e2e_${uid}`, 'one'));
    expect(logs).toContain(`${newest}.log`);
    expect([`${newest}.log`, `${newest - 1}.log`]).toEqual(expect.arrayContaining(logs));
    const links = readdirSync(daemon.containerLogs).filter((l) => l.startsWith('lives-'));
    const held = (await containers(lab, 'lives')).map((c) => `lives-e2e_default_one-${c.id}.log`);
    expect(links).toContain(held[0]);
    expect(held).toEqual(expect.arrayContaining(links));
  });
});
