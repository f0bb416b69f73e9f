/** Pods of a real cluster whose life is disturbed: deleted while they start, made anew under their old name, edited at the wrong moment, waiting for what is not there. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { IMAGE, OTHER_IMAGE, sh, steady } from '../../e2e/manifests.ts';
import { containers, sandboxes } from '../../e2e/runtime.ts';
import { type Cluster, isReady, LONG, lifeOf, STAY, startKubectl } from '../cluster.ts';
import { onCluster } from '../hooks.ts';
import { Witness } from '../witness.ts';

let cluster: Cluster;
let witness: Witness;
/** Does not hear TERM, so that it ends with its grace. */
const DEAF = 'trap "" TERM; while :; do sleep 1; done';

onCluster((made) => (cluster = made));
beforeEach(() => {
  witness = new Witness(cluster.lab).start();
});
afterEach(async () => {
  await witness.stop();
  expect([...witness.duplicates]).toEqual([]);
});

/** The pods that this test saw are gone from the machine too. */
async function nothingLeft(): Promise<void> {
  await witness.look();
  await witness.nothingLeft(cluster.daemon, LONG.timeoutMs);
}
const waitingReason = (p: Pod) => p.status.containerStatuses?.[0]?.state.waiting?.reason;
const eventsOf = async (pod: string) => {
  const text = await cluster.kubectl('get', 'events', '--field-selector', `involvedObject.name=${pod}`, '-o', 'json');
  return (JSON.parse(text) as { items: { reason: string; message: string }[] }).items;
};

describe('a pod that is deleted while it starts', () => {
  it('is gone soon, whether the node had heard of it or not', async () => {
    const names = Array.from({ length: 6 }, (_, i) => `hasty-${i}`);
    for (const [i, name] of names.entries()) {
      await cluster.create(name, { containers: [steady()] });
      // From before it was scheduled to well into its start.
      const step = [0, 0, 1, 1, 2, 2][i] ?? 0;
      if (step === 1) await cluster.podWhere(name, 'is scheduled', (p) => p.spec.nodeName !== undefined);
      if (step === 2) {
        await cluster.daemon.wait('its sandbox', async () => (await sandboxes(cluster.lab)).some((s) => s.metadata?.name === name), LONG);
      }
      await cluster.kubectl('delete', 'pod', name, '--wait=false', ...(i % 2 === 0 ? [] : ['--grace-period=0', '--force']));
    }
    for (const name of names) await cluster.gone(name);
    await nothingLeft();
  });

  it('is gone while an init container runs, which hears it', async () => {
    await cluster.create('early', { initContainers: [sh('first', STAY)], containers: [steady()] });
    await cluster.podWhere('early', 'is in its init container', (p) => p.status.initContainerStatuses?.[0]?.state.running !== undefined);
    await cluster.kubectl('delete', 'pod', 'early');
    await cluster.gone('early');
    await nothingLeft();
    // The main container was never made.
    expect([...witness.containers.values()].map((c) => c.container)).not.toContain('main');
  });

  it('is gone while it waits for a secret, and for an image that nobody has', async () => {
    const volumes = [{ name: 'v', secret: { secretName: 'never' } }];
    await cluster.create('stuck', { containers: [sh('main', STAY, { volumeMounts: [{ name: 'v', mountPath: '/v' }] })], volumes });
    await cluster.create('imageless', { containers: [sh('main', STAY, { image: 'actorlet.invalid/none:1' })] });
    await cluster.podWhere('stuck', 'waits', (p) => waitingReason(p) === 'ContainerCreating');
    await cluster.podWhere('imageless', 'waits', (p) => /ErrImagePull|ImagePullBackOff/.test(waitingReason(p) ?? ''));
    await cluster.kubectl('delete', 'pod', 'stuck', 'imageless');
    for (const name of ['stuck', 'imageless']) await cluster.gone(name);
    await nothingLeft();
  });
});

describe('a pod made anew under its old name', () => {
  it('by force, while the old one is still ending, has a life of its own', async () => {
    await cluster.create('twin', { containers: [sh('main', DEAF)], terminationGracePeriodSeconds: 30 });
    const old = await cluster.ready('twin');
    await cluster.kubectl('delete', 'pod', 'twin', '--grace-period=0', '--force');
    await cluster.create('twin', { containers: [steady()] });
    const fresh = await cluster.podWhere('twin', 'is Ready', (p) => isReady(p) && p.metadata.uid !== old.metadata.uid);
    const oldId = old.status.containerStatuses?.[0]?.containerID;
    expect(fresh.status.containerStatuses?.[0]).toMatchObject({
      restartCount: 0,
      lastState: {},
      containerID: expect.not.stringMatching(oldId ?? ''),
    });
    await cluster.daemon.wait(
      'the old one leaves the machine',
      async () => (await containers(cluster.lab)).every((c) => c.uid !== old.metadata.uid),
      LONG,
    );
    expect(lifeOf((await cluster.pod('twin')) ?? fresh)).toEqual(lifeOf(fresh));
    await cluster.kubectl('delete', 'pod', 'twin');
    await cluster.gone('twin');
    await nothingLeft();
  });

  it('by `kubectl replace --force`, five times in a row, is the newest in the end', async () => {
    const body = (n: number) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'again', labels: { n: String(n) } },
      spec: { terminationGracePeriodSeconds: 1, containers: [sh('main', `echo life ${n}; ${STAY}`)] },
    });
    await cluster.apply(body(0));
    for (const n of [1, 2, 3, 4, 5]) {
      const ran = await startKubectl(cluster.plane, ['replace', '--force', '-f', '-'], JSON.stringify(body(n))).result;
      expect(ran).toMatchObject({ code: 0, out: expect.stringContaining('pod/again replaced') });
    }
    const last = await cluster.podWhere('again', 'is Ready', (p) => isReady(p) && p.metadata.labels?.n === '5');
    await cluster.daemon.wait('its log', async () => (await cluster.kubectl('logs', 'again')) === 'life 5\n', LONG);
    await cluster.daemon.wait(
      'the earlier ones leave',
      async () => (await containers(cluster.lab)).every((c) => c.uid === last.metadata.uid),
      LONG,
    );
    await cluster.kubectl('delete', 'pod', 'again');
    await cluster.gone('again');
  });
});

describe('a pod that is edited', () => {
  it('has the container whose image changed started anew, and no other', async () => {
    await cluster.create('edited', { containers: [steady('main'), steady('side')] });
    const before = await cluster.ready('edited');
    await cluster.kubectl('set', 'image', 'pod/edited', `main=${OTHER_IMAGE}`);
    const after = await cluster.podWhere(
      'edited',
      'runs the other image',
      (p) => isReady(p) && p.status.containerStatuses?.find((c) => c.name === 'main')?.restartCount === 1,
    );
    const side = (p: Pod) => p.status.containerStatuses?.find((c) => c.name === 'side');
    expect(side(after)).toMatchObject({ restartCount: 0, containerID: side(before)?.containerID });
    expect(after.spec.containers[0]?.image).toBe(OTHER_IMAGE);
    expect((await eventsOf('edited')).filter((e) => e.reason === 'Killing').map((e) => e.message)).toEqual([
      expect.stringMatching(/^Container main definition changed, will be restarted/),
    ]);
    await cluster.kubectl('delete', 'pod', 'edited');
    await cluster.gone('edited');
  });

  it('while it ends, ends all the same: nothing is started for a new image, and a shorter grace counts', async () => {
    await cluster.create('ending', { containers: [sh('main', DEAF)], terminationGracePeriodSeconds: 600 });
    const { uid } = (await cluster.ready('ending')).metadata;
    await cluster.kubectl('delete', 'pod', 'ending', '--wait=false');
    await cluster.podWhere(
      'ending',
      'is ending',
      (p) => p.metadata.deletionTimestamp !== undefined && p.metadata.deletionTimestamp !== null,
    );
    await cluster.daemon.wait('it is told to end', async () => (await eventsOf('ending')).some((e) => e.reason === 'Killing'), LONG);
    await cluster.kubectl('set', 'image', 'pod/ending', `main=${OTHER_IMAGE}`);
    await cluster.kubectl('label', 'pod', 'ending', 'mood=bad');
    expect((await cluster.pod('ending'))?.metadata.labels).toEqual({ mood: 'bad' });
    await cluster.kubectl('delete', 'pod', 'ending', '--grace-period=1');
    await cluster.gone('ending');
    await nothingLeft();
    expect([...witness.containers.values()].filter((c) => c.uid === uid)).toHaveLength(1);
  });

  it('by a deadline that has passed meanwhile fails, and says why', async () => {
    await cluster.create('late', { containers: [steady()] });
    await cluster.ready('late');
    await cluster.merge('pods/late', { spec: { activeDeadlineSeconds: 1 } });
    const failed = await cluster.podWhere('late', 'failed', (p) => p.status.phase === 'Failed');
    expect(failed.status).toMatchObject({
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    });
    await cluster.kubectl('delete', 'pod', 'late');
    await cluster.gone('late');
  });
});

describe('a pod whose volumes are not there', () => {
  it('waits, says what is missing, and starts once they are made; optional ones it does without', async () => {
    const mounts = ['absent', 'map', 'maybe'].map((name) => ({ name, mountPath: `/${name}` }));
    await cluster.create('patient', {
      containers: [sh('main', `cat /absent/word /map/word; ls /maybe | wc -l; ${STAY}`, { volumeMounts: mounts })],
      volumes: [
        { name: 'absent', secret: { secretName: 'absent' } },
        { name: 'map', configMap: { name: 'map' } },
        { name: 'maybe', configMap: { name: 'maybe', optional: true } },
      ],
    });
    await cluster.daemon.wait(
      'both are named in its events',
      async () => {
        const told = (await eventsOf('patient')).filter((e) => e.reason === 'FailedMount').map((e) => e.message);
        return told.some((m) => m.includes('secret "absent" not found')) && told.some((m) => m.includes('configmap "map" not found'));
      },
      LONG,
    );
    expect(waitingReason((await cluster.pod('patient')) as Pod)).toBe('ContainerCreating');
    await cluster.post('secrets', { metadata: { name: 'absent' }, stringData: { word: 'one\n' } });
    await cluster.post('configmaps', { metadata: { name: 'map' }, data: { word: 'two\n' } });
    const pod = await cluster.ready('patient');
    expect(pod.status.containerStatuses?.[0]?.restartCount).toBe(0);
    await cluster.daemon.wait('what it found', () => /one\n.*two\n.* 0\n/s.test(cluster.said(pod)), LONG);
    await cluster.kubectl('delete', 'pod/patient', 'secret/absent', 'configmap/map');
    await cluster.gone('patient');
  });
});

describe('a namespace', () => {
  it('that is deleted takes its pods with it, and the machine forgets them', async () => {
    await cluster.kubectl('create', 'namespace', 'short');
    await cluster.daemon.wait('its account', () => cluster.plane.hasAccount('short'), LONG);
    const pod = (name: string) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'short' } },
      spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: IMAGE, command: ['sh', '-c', STAY] }] },
    });
    await cluster.apply(pod('one'), pod('two'));
    await cluster.kubectl('-n', 'short', 'wait', 'pod', '--all', '--for=condition=Ready', '--timeout=120s');
    await cluster.kubectl('delete', 'namespace', 'short', '--timeout=120s');
    await nothingLeft();
  });
});

describe('a pod that is being deleted', () => {
  it('has each change of its readiness in the API within moments', async () => {
    const down = join(mkdtempSync(join(tmpdir(), 'actorlet-ready-')), 'down');
    const readinessProbe = { exec: { command: ['test', '!', '-e', '/ctl/down'] }, periodSeconds: 1, failureThreshold: 1 };
    const volumeMounts = [{ name: 'ctl', mountPath: '/ctl' }];
    await cluster.create('leaving', {
      terminationGracePeriodSeconds: 60,
      containers: [sh('main', DEAF, { readinessProbe, volumeMounts })],
      volumes: [{ name: 'ctl', hostPath: { path: dirname(down) } }],
    });
    await cluster.ready('leaving');
    await cluster.kubectl('delete', 'pod', 'leaving', '--wait=false');
    for (const ready of [false, true, false]) {
      if (ready) rmSync(down);
      else writeFileSync(down, '');
      // A period of the probe, and the way there; the last word about a pod may wait longer than that.
      await cluster.podWhere('leaving', ready ? 'is Ready' : 'is not Ready', (p) => isReady(p) === ready, {
        timeoutMs: 4_000,
        everyMs: 50,
      });
    }
    await cluster.kubectl('delete', 'pod', 'leaving', '--grace-period=0', '--force');
    await cluster.gone('leaving');
    rmSync(dirname(down), { recursive: true });
    await nothingLeft();
  });
});

describe('an extended resource that an administrator counts', () => {
  it('is allocatable, stays, and is counted when pods are admitted', async () => {
    const foo = 'example.com/foo';
    const path = `/api/v1/nodes/${NODE_NAME}`;
    const shown = async () => (await cluster.plane.request('GET', path)).body as { status: Record<string, Record<string, string>> };
    const patch = (amount: string | null) =>
      cluster.plane.request('PATCH', `${path}/status`, {
        body: { status: { capacity: { [foo]: amount } } },
        contentType: 'application/merge-patch+json',
      });
    // Past the scheduler, which would count too.
    const ask = (name: string, count: string) => {
      const resources = { requests: { [foo]: count }, limits: { [foo]: count } };
      return cluster.create(name, { nodeName: NODE_NAME, containers: [sh('main', STAY, { resources })] });
    };
    await patch('5');
    await cluster.daemon.wait('it is allocatable', async () => (await shown()).status.allocatable?.[foo] === '5', LONG);
    await ask('three', '3');
    await cluster.ready('three');
    await ask('more', '3');
    const refused = await cluster.podWhere('more', 'is refused', (p) => p.status.phase === 'Failed');
    expect(refused.status).toMatchObject({ reason: `OutOf${foo}` });
    await patch(null);
    await cluster.daemon.wait('it is gone', async () => (await shown()).status.allocatable?.[foo] === undefined, LONG);
    expect(isReady((await cluster.pod('three')) as Pod)).toBe(true);
    await cluster.kubectl('delete', 'pod', 'three', 'more');
    await nothingLeft();
  });
});
