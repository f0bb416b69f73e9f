/** Faults injected into a real daemon on a real containerd: the node gets over them, and containers are left as they are. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { InjectionView } from '@actorlet/faults/src/live.ts';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ActorView, findActor } from '../../../src/machines/supervision/actorState.ts';
import { type Daemon, NODE_NAME } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { manifest, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { hostPid, running } from '../runtime.ts';

const LONG_MS = 90_000;
let lab: Containerd;
let daemon: Daemon;
/** What the bystander's container was before any fault. */
let bystander: string | undefined;

onContainerd((made) => ({ lab, daemon } = made), { flags: ['--actorlet-fault-injection'] });
beforeAll(async () => {
  daemon.put('bystander.yaml', manifest('bystander', [steady()]));
  await daemon.phase('bystander', 'Running', LONG_MS);
  bystander = (await running(lab))['bystander/main'];
});

async function injected(): Promise<InjectionView[]> {
  return ((await daemon.admin.json('/inject')) as { injections: InjectionView[] }).injections;
}
/** Waits until the only injection has hit something. */
async function hit(): Promise<InjectionView> {
  return daemon.wait('the fault to hit', async () => (await injected()).find((i) => i.faults.some((f) => f.hits > 0)), {
    timeoutMs: LONG_MS,
  });
}
const health = async () => (await daemon.admin.json('/healthz', { verbose: '', json: '' })) as { healthy: boolean };
async function nothingInjected(): Promise<void> {
  await daemon.wait('every fault to be healed', async () => (await injected()).length === 0, { timeoutMs: LONG_MS });
}
async function actor(path: string): Promise<ActorView | undefined> {
  return findActor((await daemon.admin.json('/statez')) as ActorView, path);
}
function linkIsReady(ready: boolean): () => Promise<boolean> {
  return async () => ((await actor('node/runtime/cri'))?.state.startsWith('ready') ?? false) === ready;
}
async function bystanderIsUntouched(): Promise<void> {
  expect(bystander).toMatch(/#0$/);
  expect((await running(lab))['bystander/main']).toBe(bystander);
}
/** What `actorctl` says when it says no. */
async function refused(...args: string[]): Promise<string> {
  return daemon.ctl(...args).then(
    (out) => `not refused: ${out}`,
    (error: { stderr?: string }) => error.stderr ?? String(error),
  );
}
const uid = async (name: string): Promise<string> => (await daemon.pod(name))?.metadata.uid ?? '';

describe('a daemon with fault injection', { timeout: 300_000 }, () => {
  it('says so, and refuses what cannot be', async () => {
    expect(daemon.log()).toContain('FAULT INJECTION IS ALLOWED');
    expect(await daemon.ctl('tree')).toContain('fault injection is allowed: nothing is injected');
    expect(await daemon.ctl('healthz')).toContain('fault injection is allowed, faults at work: 0');
    const file = join(daemon.dir, 'bad.yaml');
    writeFileSync(
      file,
      'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: bad}\nspec:\n  faults:\n  - kind: cri\n    action: error\n    probability: 7\n',
    );
    expect(await refused('inject', '-f', file)).toContain('bad.yaml:8: spec.faults[0].probability: must be a number from 0 to 1');
    expect(await refused('inject', 'cri', '--error', 'Unavailble')).toContain('--error: ');
    expect(await refused('inject', 'kill', 'pods/podManger')).toContain('did you mean node/pods/podManager?');
    expect(await refused('inject', 'kill', 'pod', 'nobody')).toContain('no pod called nobody');
    expect(JSON.parse(await daemon.ctl('inject', 'list', '--json'))).toEqual([]);
    expect(await refused('inject', 'stop', 'nothing-1')).toContain('nothing called "nothing-1" is injected');
    expect(await injected()).toEqual([]);
  });

  it('fails calls to the runtime until it is told to stop, then the pod starts', async () => {
    await daemon.ctl('inject', 'cri', '--method', 'StartContainer', '--error', 'Unavailable', '--pod', 'late', '--for', '10m');
    daemon.put('late.yaml', manifest('late', [steady()]));
    const { id } = await hit();
    expect((await running(lab))['late/main']).toBeUndefined();
    expect(await daemon.ctl('tree')).toContain('1 at work');
    const metrics = await (await fetch(`${daemon.readOnlyUrl}/metrics`)).text();
    expect(metrics).toMatch(/^actorlet_faults_injected_total\{kind="cri"\} [1-9]/m);
    expect(metrics).toMatch(/^actorlet_faults_active 1$/m);
    expect(await daemon.ctl('recorder', 'node/foundation/injector', '--limit', '50')).toContain('hit StartContainer');

    expect(await daemon.ctl('inject', 'stop', id)).toContain(`healed ${id}`);
    await daemon.phase('late', 'Running', LONG_MS);
    const reasons = (await daemon.events()).filter((e) => e.pod === undefined).map((e) => e.reason);
    expect(reasons).toContain('FaultInjected');
    expect(reasons).toContain('FaultHealed');
    await bystanderIsUntouched();
  });

  it('gets over a full disk once that has expired by itself', async () => {
    await daemon.ctl('inject', 'disk', '--full', '--path', `${daemon.rootDir}/pods/**`, '--for', '15s');
    daemon.put('full.yaml', manifest('full', [steady()]));
    await hit();
    expect((await running(lab))['full/main']).toBeUndefined();
    await nothingInjected();
    await daemon.phase('full', 'Running', LONG_MS);
    await bystanderIsUntouched();
  });

  it('starts killed actors again and touches no container', async () => {
    const bystanderUid = await uid('bystander');
    const before = await running(lab);
    const paths = [`node/pods/workers/${bystanderUid}`, 'node/runtime/cri', 'node/runtime/pleg', 'node/pods/podManager'];
    for (const [target, path] of [
      [`pods/workers/${bystanderUid.slice(0, 8)}`, paths[0]],
      ['runtime/cri', paths[1]],
      ['node/runtime/pleg', paths[2]],
      ['pods/podManager', paths[3]],
    ] as const) {
      expect(await daemon.ctl('inject', 'kill', target)).toContain(`killed ${path}`);
      await daemon.wait(
        `${path} to be up again`,
        async () => {
          const found = await actor(path ?? '');
          return found?.lifecycle === 'running' && found.incarnation > 1;
        },
        { timeoutMs: LONG_MS },
      );
    }
    expect(await daemon.ctl('inject', 'kill', 'pod', 'bystander')).toContain(`killed ${paths[0]}`);
    await daemon.wait('the node to be well again', async () => (await health()).healthy, { timeoutMs: LONG_MS });
    await daemon.wait('every pod to be ready', async () => (await daemon.pods()).every((p) => p.status.containerStatuses?.[0]?.ready), {
      timeoutMs: LONG_MS,
    });
    expect(await running(lab)).toEqual(before);
  });

  it('finds an end that the event stream never told', async () => {
    await daemon.ctl('inject', 'hints', '--drop', '--for', '10m');
    const old = (await running(lab))['late/main']?.split('#')[0] ?? '';
    process.kill(await hostPid(lab, old), 'SIGKILL');
    await daemon.podWhere(
      'late',
      'late/main to run again',
      (p) => p.status.containerStatuses?.[0]?.restartCount === 1 && p.status.containerStatuses[0].ready,
      LONG_MS,
    );
    expect((await hit()).faults[0]?.what).toContain('hints drop');
    await daemon.ctl('inject', 'stop', '--all');
    expect(await injected()).toEqual([]);
    await bystanderIsUntouched();
  });

  it('is healed when the injector itself dies', async () => {
    await daemon.ctl('inject', 'runtime-down', '--for', '10m');
    await daemon.wait('the runtime to be away', linkIsReady(false), { timeoutMs: LONG_MS });
    expect(await daemon.ctl('inject', 'kill', 'foundation/injector')).toContain('killed node/foundation/injector');
    await daemon.wait('the runtime to be back', linkIsReady(true), { timeoutMs: LONG_MS });
    await daemon.wait('the injector to be back', async () => (await injected()).length === 0, { timeoutMs: LONG_MS });
    await daemon.wait('an event of it', async () => (await daemon.events()).some((e) => e.message.includes('the fault injector ended')), {
      timeoutMs: LONG_MS,
    });
    daemon.put('after.yaml', manifest('after', [steady()]));
    await daemon.phase('after', 'Running', LONG_MS);
    await bystanderIsUntouched();
  });

  it('leaves everything running when it ends with faults at work', async () => {
    await daemon.ctl('inject', 'cri', '--error', 'Internal', '--for', '10m');
    await hit();
    const before = await running(lab);
    expect(await daemon.end('SIGTERM')).toBe(0);
    expect(await running(lab)).toEqual(before);
    await daemon.start();
    expect(await injected()).toEqual([]);
    await daemon.wait(
      'every pod to be known again',
      async () => (await daemon.pods()).filter((p) => p.status.phase === 'Running').length === Object.keys(before).length,
      { timeoutMs: LONG_MS },
    );
    expect(await running(lab)).toEqual(before);
    expect((await daemon.pods()).every((p) => p.metadata.name.endsWith(`-${NODE_NAME}`))).toBe(true);
  });
});
