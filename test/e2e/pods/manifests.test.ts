/** Manifests that change, go, are renamed, cannot be read, ask for too much: on a real containerd, beside a pod that must not notice. */
import { closeSync, openSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../freePort.ts';
import { buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { call } from '../lab/pods.ts';
import { until } from '../lab/ports.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { containers, Instances, ms, running, sandboxes, statusOf } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;
let web: Server;
let answer: { status: number; body: string } = { status: 200, body: '' };
let bystander = '';
const LISTING_S = 6;

const podList = (...items: unknown[]) => JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items });

beforeAll(async () => {
  await buildDaemon();
  lab = await startContainerd();
  answer = { status: 200, body: podList(manifest('web-first', [steady()])) };
  const port = await freePort();
  web = createServer((_, res) => {
    res.writeHead(answer.status, { 'content-type': 'application/json' });
    res.end(answer.body);
  });
  await new Promise<void>((resolve) => web.listen(port, '127.0.0.1', resolve));
  daemon = await createDaemon(lab, {
    fileCheckFrequency: `${LISTING_S}s`,
    staticPodURL: `http://127.0.0.1:${port}/pods`,
    httpCheckFrequency: '1s',
  });
  await daemon.start();
  daemon.put('bystander.yaml', manifest('bystander', [steady()]));
  await daemon.phase('bystander', 'Running');
  bystander = (await running(lab))['bystander/main'] ?? '';
  expect(bystander).toMatch(/#0$/);
});
afterEach(async () => {
  // Nothing that these tests do may reach another pod, or end the daemon.
  expect(daemon.alive(), daemon.log().slice(-3000)).toBe(true);
  expect((await running(lab))['bystander/main']).toBe(bystander);
  expect(await daemon.healthz()).toBe('ok');
});
afterAll(async () => {
  await daemon?.dispose();
  web?.close();
  expect(await lab?.stop()).toEqual([]);
});

/** Holds a container's log open, since it is removed with its pod. */
function holdLog(uid: string, pod: string, container = 'main'): { text(): string; close(): void } {
  const fd = openSync(join(daemon.podLogs, `default_${pod}-e2e_${uid}`, container, '0.log'), 'r');
  let text = '';
  return {
    text: () => {
      text += readFileSync(fd, 'utf8');
      return text;
    },
    close: () => closeSync(fd),
  };
}
const noTrace = (name: string) => async () => (await containers(lab, name)).length === 0 && (await sandboxes(lab, name)).length === 0;

const graceful = (line: string) =>
  sh('main', `trap 'echo TERM received; sleep 1; echo finished; exit 0' TERM; echo ${line}; while :; do sleep 3600 & wait $!; done`);
const stubborn = sh('main', "trap 'echo TERM ignored' TERM; while :; do sleep 3600 & wait $!; done");

describe('a manifest that changes', () => {
  it('replaces the pod: the old one is asked to end, and the new one starts only when it is gone', async () => {
    daemon.put('edited.yaml', manifest('edited', [graceful('old')], { spec: { terminationGracePeriodSeconds: 20 } }));
    const before = await daemon.phase('edited', 'Running');
    const old = new Instances(lab, 'edited');
    const oldId = (await old.of(0, 'CONTAINER_RUNNING')).id;
    const [oldSandbox] = await sandboxes(lab, 'edited');
    const log = holdLog(before.metadata.uid, 'edited');
    await until('it to be up', () => log.text().includes('old'));

    daemon.put('edited.yaml', manifest('edited', [graceful('new')], { spec: { terminationGracePeriodSeconds: 20 } }));
    const ended = await until('the old container to end', async () => {
      const status = await statusOf(lab, oldId);
      return status.state === 'CONTAINER_EXITED' && status;
    });
    const after = await daemon.podWhere(
      'edited',
      'the new pod',
      (p) => p.metadata.uid !== before.metadata.uid && p.status.phase === 'Running',
    );
    expect(ended.exitCode).toBe(0);
    expect(log.text()).toMatch(/TERM received[\s\S]*finished/);
    log.close();
    const current = (await containers(lab, 'edited')).find((c) => c.uid === after.metadata.uid);
    const status = await statusOf(lab, current?.id ?? '');
    expect(ms(status.startedAt)).toBeGreaterThan(ms(ended.finishedAt));
    const sandbox = (await sandboxes(lab, 'edited')).find((s) => s.ready);
    expect(ms(sandbox?.createdAt ?? '0')).toBeGreaterThan(ms(ended.finishedAt));
    expect(sandbox?.id).not.toBe(oldSandbox?.id);
    expect((await running(lab))['edited/main']).toBe(`${current?.id}#0`);
  });

  it('starts the pod anew when the file is renamed, one after the other', async () => {
    const before = await daemon.pod('edited');
    renameSync(join(daemon.manifests, 'edited.yaml'), join(daemon.manifests, 'renamed.yaml'));
    const after = await daemon.podWhere(
      'edited',
      'the renamed pod',
      (p) => p.metadata.uid !== before?.metadata.uid && p.status.phase === 'Running',
    );
    await daemon.wait('the old pod to be collected', async () =>
      (await containers(lab, 'edited')).every((c) => c.uid === after.metadata.uid),
    );
    await running(lab);
    daemon.remove('renamed.yaml');
    await daemon.wait('it to be gone', noTrace('edited'));
  });
});

// Pods of their own: these wait side by side.
describe.concurrent('a manifest that goes', () => {
  it('ends the pod within its grace, and by force only one that does not listen', async () => {
    daemon.put('listens.yaml', manifest('listens', [graceful('up')], { spec: { terminationGracePeriodSeconds: 20 } }));
    daemon.put('deaf.yaml', manifest('deaf', [stubborn], { spec: { terminationGracePeriodSeconds: 3 } }));
    const pods = { listens: await daemon.phase('listens', 'Running'), deaf: await daemon.phase('deaf', 'Running') };
    const logs = { listens: holdLog(pods.listens.metadata.uid, 'listens'), deaf: holdLog(pods.deaf.metadata.uid, 'deaf') };
    const seen = { listens: new Instances(lab, 'listens'), deaf: new Instances(lab, 'deaf') };
    await Promise.all(Object.values(seen).map((i) => i.of(0, 'CONTAINER_RUNNING')));
    await until('it to be up', () => logs.listens.text().includes('up'));
    const askedAt = Date.now();
    daemon.remove('listens.yaml');
    daemon.remove('deaf.yaml');
    const [kind, killed] = await Promise.all([seen.listens.of(0, 'CONTAINER_EXITED'), seen.deaf.of(0, 'CONTAINER_EXITED')]);
    expect(kind.exitCode).toBe(0);
    expect(logs.listens.text()).toMatch(/TERM received[\s\S]*finished/);
    expect(ms(kind.finishedAt) - askedAt).toBeGreaterThanOrEqual(900);
    expect(ms(kind.finishedAt) - askedAt).toBeLessThan(20_000);
    expect(killed.exitCode).toBe(137);
    expect(logs.deaf.text()).toContain('TERM ignored');
    expect(ms(killed.finishedAt) - askedAt).toBeGreaterThanOrEqual(2_900);
    expect(ms(killed.finishedAt) - askedAt).toBeLessThan(25_000);
    for (const name of ['listens', 'deaf'] as const) {
      logs[name].close();
      await daemon.wait(`${name} to leave no trace`, noTrace(name));
      expect(await daemon.pod(name)).toBeUndefined();
      await daemon.wait('its folders to be removed', () => !readdirSync(join(daemon.rootDir, 'pods')).includes(pods[name].metadata.uid));
      expect(readdirSync(daemon.podLogs).filter((d) => d.startsWith(`default_${name}-`))).toEqual([]);
      expect(readdirSync(daemon.containerLogs).filter((d) => d.startsWith(`${name}-`))).toEqual([]);
    }
  });
});

describe.concurrent('a manifest that cannot be used', () => {
  it('keeps its pod until the next listing, then loses it, said by an event and by why; corrected, it is back', async () => {
    daemon.put('broken.yaml', manifest('broken', [steady()]));
    await daemon.phase('broken', 'Running');
    const id = (await running(lab))['broken/main'];
    writeFileSync(join(daemon.manifests, 'broken.yaml'), 'apiVersion: v1\nkind: Pod\nmetadata: {name: broken\nspec: [');
    const why = await daemon.wait('why to know', async () => {
      const text = await daemon.whyText('broken-e2e');
      return text.includes('cannot be used') && text;
    });
    expect(why).toContain('broken.yaml');
    if (!why.includes('it is being stopped')) expect((await running(lab))['broken/main']).toBe(id);
    await daemon.wait('the pod to be stopped', noTrace('broken'));
    const events = await daemon.events('broken');
    expect(events.map((e) => e.message).join('\n')).toContain('broken.yaml');
    const told = events.findIndex((e) => e.message.includes('broken.yaml'));
    const killing = events.findIndex((e) => e.reason === 'Killing');
    expect(told).toBeGreaterThanOrEqual(0);
    expect(killing).toBeGreaterThan(told);
    expect(await daemon.ctl('why', 'broken.yaml')).toMatch(/broken\.yaml[\s\S]*cannot be used/);
    daemon.put('broken.yaml', manifest('broken', [steady()]));
    await daemon.phase('broken', 'Running');
    daemon.remove('broken.yaml');
  });

  it('says for each kind of mistake which file and what, and runs nothing of it', async () => {
    daemon.put('syntax.yaml', 'kind: Pod\n  bad: [indent');
    daemon.put('service.yaml', { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' } });
    daemon.put('future.yaml', { ...manifest('future', [steady()]), apiVersion: 'v2' });
    daemon.put('invalid.yaml', manifest('Not_A_Name', [{ ...steady(), image: '' }]));
    daemon.put('two.yaml', `${JSON.stringify(manifest('two-a', [steady()]))}\n---\n${JSON.stringify(manifest('two-b', [steady()]))}\n`);
    daemon.put('big.yaml', `# ${'x'.repeat(11 << 20)}\n${JSON.stringify(manifest('big', [steady()]))}`);
    daemon.put('empty.yaml', '');
    const expected: Record<string, RegExp> = {
      'syntax.yaml': /syntax\.yaml/,
      'service.yaml': /kind Service: not accepted/,
      'future.yaml': /apiVersion v2.*not supported/,
      'invalid.yaml': /metadata\.name[\s\S]*spec\.containers\[0\]\.image/,
      'two.yaml': /document/,
      'big.yaml': /big\.yaml.*(bytes|MiB|large)/,
      'empty.yaml': /empty/,
    };
    for (const [file, text] of Object.entries(expected)) {
      const said = await daemon.wait(`why ${file}`, async () => {
        const why = await daemon.why(file);
        return why.found && why.lines.join('\n');
      });
      expect(said, file).toMatch(text);
      daemon.remove(file);
    }
    await daemon.wait('the mistakes to be forgotten', async () => !(await daemon.why('syntax.yaml')).found);
    expect(Object.keys(await running(lab)).filter((k) => /two|big|future/.test(k))).toEqual([]);
  });

  it('is told apart from the one that had the name first', async () => {
    daemon.put('twin-a.yaml', manifest('twin', [steady()]));
    const first = await daemon.phase('twin', 'Running');
    daemon.put('twin-b.yaml', manifest('twin', [steady('other')]));
    const said = await daemon.wait('why twin-b.yaml', async () => {
      const why = await daemon.why('twin-b.yaml');
      // Until the source has read the file, it says that the file is new.
      const text = why.lines.join('\n');
      return text.includes('already defined by') && text;
    });
    expect(said).toContain('twin-a.yaml');
    expect((await daemon.pod('twin'))?.metadata.uid).toBe(first.metadata.uid);
    expect(Object.keys(await running(lab)).filter((k) => k.startsWith('twin/'))).toEqual(['twin/main']);
    daemon.remove('twin-a.yaml');
    daemon.remove('twin-b.yaml');
  });
});

describe.concurrent('a pod that cannot run', () => {
  it('is Failed with the path of a field that this node cannot honour', async () => {
    daemon.put('field.yaml', manifest('field', [{ ...steady(), resources: { limits: { 'example.com/widget': 1 } } }]));
    const pod = await daemon.phase('field', 'Failed');
    expect(pod.status.reason).toBe('UnsupportedField');
    expect(pod.status.message).toContain('spec.containers[0].resources.limits.example.com/widget');
    expect(await daemon.whyText('field-e2e')).toContain('spec.containers[0].resources.limits.example.com/widget');
    expect(await containers(lab, 'field')).toEqual([]);
    daemon.remove('field.yaml');
  });

  it('waits with the reason when its image is not there, and tries again later', async () => {
    const absent = { ...steady(), image: 'localhost:1/absent:1', imagePullPolicy: 'IfNotPresent' as const };
    const never = { ...steady(), image: 'actorlet.test/absent:1', imagePullPolicy: 'Never' as const };
    daemon.put('absent.yaml', manifest('absent', [absent, steady('neighbour')]));
    daemon.put('nopull.yaml', manifest('nopull', [never]));
    const reasonOf = (p: {
      status: { containerStatuses?: { name: string; state: { waiting?: { reason?: string; message?: string } } }[] };
    }) => p.status.containerStatuses?.find((c) => c.name === 'main')?.state.waiting;
    const first = await daemon.podWhere('absent', 'ErrImagePull', (p) => reasonOf(p)?.reason === 'ErrImagePull');
    expect(reasonOf(first)?.message).toContain('localhost:1/absent:1');
    const no = await daemon.podWhere('nopull', 'ErrImageNeverPull', (p) => reasonOf(p)?.reason === 'ErrImageNeverPull');
    expect(reasonOf(no)?.message).toContain('actorlet.test/absent:1');
    expect(no.status.phase).toBe('Pending');
    const later = await daemon.podWhere('absent', 'ImagePullBackOff', (p) => reasonOf(p)?.reason === 'ImagePullBackOff');
    expect(reasonOf(later)?.message).toContain('Back-off pulling image "localhost:1/absent:1"');
    expect((await running(lab))['absent/neighbour']).toMatch(/#0$/);
    expect(await daemon.whyText('absent-e2e')).toMatch(/ImagePullBackOff|ErrImagePull/);
    daemon.remove('absent.yaml');
    daemon.remove('nopull.yaml');
  });
});

describe.concurrent('a manifest URL', () => {
  it('keeps its pods while it fails or answers garbage, and follows it when it is well again', async () => {
    await daemon.phase('web-first', 'Running');
    const before = (await running(lab))['web-first/main'];
    const complaint = (text: RegExp) =>
      daemon.wait(
        `why to say ${text}`,
        async () => text.test(await daemon.whyText(`http://127.0.0.1`)) || text.test((await daemon.why('nobody')).lines.join('\n')),
      );
    answer = { status: 503, body: 'away' };
    await complaint(/503/);
    answer = { status: 200, body: '{"apiVersion": "v1", "kind": ' };
    await complaint(/127\.0\.0\.1.*/);
    answer = { status: 200, body: JSON.stringify({ apiVersion: 'v1', kind: 'Deployment' }) };
    await complaint(/Deployment/);
    expect((await running(lab))['web-first/main']).toBe(before);
    answer = { status: 200, body: podList(manifest('web-first', [steady()]), manifest('web-second', [steady()])) };
    await daemon.phase('web-second', 'Running');
    expect((await running(lab))['web-first/main']).toBe(before);
    answer = { status: 200, body: podList() };
    await daemon.wait('both to be gone', async () => (await noTrace('web-first')()) && (await noTrace('web-second')()));
  });
});

describe('names that lead out of their folder', () => {
  const tree = () => [daemon.dir, daemon.rootDir, join(daemon.rootDir, 'pods'), daemon.podLogs].map((dir) => readdirSync(dir).sort());

  it('are the trouble of their manifest, or of whoever gave them to the runtime', async () => {
    const before = tree();
    const odd = ['../../../x', '..', 'a/b', 'x'.repeat(300), 'a\nb'];
    for (const [i, uid] of odd.entries()) {
      daemon.put(`uid-${i}.yaml`, manifest(`uid-${i}`, [steady()], { uid }));
      daemon.put(`volume-${i}.yaml`, manifest(`volume-${i}`, [steady()], { spec: { volumes: [{ name: uid, emptyDir: {} }] } }));
      daemon.put(`container-${i}.yaml`, manifest(`container-${i}`, [steady(uid)]));
    }
    // The runtime takes any text for the UID of a pod.
    const strange = { metadata: { name: 'strange', namespace: 'default', uid: 'a/../../../x', attempt: 0 }, linux: {} };
    const { podSandboxId } = await call(lab.cri, 'RunPodSandbox', { config: strange, runtimeHandler: '' });
    try {
      daemon.put('after.yaml', manifest('after', [steady()]));
      await daemon.phase('after', 'Running');
      const wrong = await daemon.wait('every manifest to be refused', async () => {
        const text = (await daemon.why('uid-0.yaml')).lines.join('\n');
        return text.includes('metadata.uid') && text;
      });
      expect(wrong).toContain('../../../x');
      expect((await sandboxes(lab)).find((x) => x.id === podSandboxId)?.ready).toBe(true);
    } finally {
      for (let i = 0; i < odd.length; i++) for (const kind of ['uid', 'volume', 'container']) daemon.remove(`${kind}-${i}.yaml`);
      daemon.remove('after.yaml');
      await call(lab.cri, 'StopPodSandbox', { podSandboxId });
      await call(lab.cri, 'RemovePodSandbox', { podSandboxId });
    }
    await daemon.wait('the other pod to be gone', noTrace('after'));
    // Folders of pods of earlier tests may go meanwhile.
    await daemon.wait('its folders to be gone', async () => tree().every((names, i) => names.every((name) => before[i]?.includes(name))));
  });

  it('one UID in two sources runs once, and the other pod when it is free', async () => {
    daemon.put('one.yaml', manifest('one', [steady()], { uid: 'shared-uid' }));
    await daemon.phase('one', 'Running');
    answer = { status: 200, body: podList(manifest('other', [steady()], { uid: 'shared-uid' })) };
    await daemon.wait('the other one to be refused', async () =>
      daemon.log().includes('of source file has the UID shared-uid; pod default/other-e2e'),
    );
    expect(Object.keys(await running(lab))).toContain('one/main');
    daemon.remove('one.yaml');
    await daemon.phase('other', 'Running');
    expect(Object.keys(await running(lab))).not.toContain('one/main');
    answer = { status: 200, body: podList() };
    await daemon.wait('it to be gone', noTrace('other'));
  });
});

describe('more pods than fit', () => {
  // Static pods are critical: others would make room for them, were there any that may be asked to.
  it('are refused with what is missing, while what runs stays', async () => {
    const before = await running(lab);
    const kept = Object.keys(before).length;
    await daemon.end('SIGTERM');
    daemon.configure({ maxPods: kept + 1 });
    await daemon.start();
    for (const name of ['more-a', 'more-b', 'more-c']) daemon.put(`${name}.yaml`, manifest(name, [steady()]));
    const phases = await daemon.wait('one to run and two to be refused', async () => {
      const pods = (await daemon.pods()).filter((p) => p.metadata.name.startsWith('more-'));
      const sorted = pods.map((p) => p.status.phase).sort();
      return sorted.join() === 'Failed,Failed,Running' && pods;
    });
    for (const p of phases.filter((q) => q.status.phase === 'Failed')) {
      expect(p.status).toMatchObject({ reason: 'UnexpectedAdmissionError', message: expect.stringContaining('[(res: pods, q: 1), ]') });
    }
    expect(await running(lab)).toMatchObject(before);
  });
});
