/** What the reference kubelet did with the claims of `story.ts` (claims136.json, written by claims.ts), asked of a virtual node. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { bind, claimNode, claimPath, driver, registered, SOCKET, STATE, setStatus } from '../../integration/claims/resourceClaims.ts';
import { created, drop, events, inApi, isReady, must, NS } from '../../integration/cluster/clusterPods.ts';
import type { VirtualNode } from '../../integration/virtualNode.ts';
import { answerOf, DRIVER, FAILING, pods } from './story.ts';
import { CLAIMS_RECORDING, checkpointOf, named, type ToldClaims } from './told.ts';

/** Two pods that begin at once have the kubelet record the devices of their claim twice (docs/differences.md). */
function once(value: unknown): unknown {
  if (Array.isArray(value)) return [...new Map(value.map((v) => [JSON.stringify(v), once(v)])).values()];
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, v]) => [key, once(v)]));
}
const recorded = once(JSON.parse(readFileSync(CLAIMS_RECORDING, 'utf8'))) as ToldClaims;
const specs = pods((name, more): Container => ({ name, image: 'busybox:1', ...more }));

function make(h: VirtualNode, path: string, body: object): { metadata: { uid: string } } {
  return must(h, { verb: 'POST', path, body });
}
const spec = (of: Partial<PodSpec>) => ({ ...of, containers: (of.containers ?? []).map(requested) });
/** As the API server defaults them. */
function requested(c: Container): Container {
  return c.resources?.limits === undefined ? c : { ...c, resources: { requests: c.resources.limits, ...c.resources } };
}

it('has the calls, devices, statuses, events and records of the reference', async () => {
  let left = 2;
  await using h = await claimNode({ devices: true });
  const results = new Map<string, readonly Record<string, unknown>[]>();
  const gpu = driver(h, {
    name: DRIVER,
    health: [],
    devices: ({ uid }) => answerOf(results.get(uid) ?? [], uid).map(deviceOf),
  });
  await registered(h);
  const known = new Map<string, string>();
  const made = new Map<string, Pod>();
  for (const [name, of] of Object.entries(specs)) {
    const pod = make(h, `${NS}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: spec(of),
    }) as unknown as Pod;
    made.set(name, pod);
    known.set(pod.metadata.uid, `pod:${name}`);
  }
  for (const [name, { owner, reservedFor, results: allocated }] of Object.entries(recorded.claims)) {
    const ownerReferences =
      owner === null ? [] : [{ uid: made.get(owner)?.metadata.uid, controller: true, kind: 'Pod', name: owner, apiVersion: 'v1' }];
    const { uid } = make(h, claimPath('').slice(0, -1), { metadata: { name, ownerReferences }, spec: {} }).metadata;
    known.set(uid, `claim:${name}`);
    results.set(uid, allocated);
    setStatus(h, claimPath(name), {
      allocation: { devices: { results: allocated } },
      reservedFor: reservedFor.map((pod) => ({ resource: 'pods', name: pod, uid: made.get(pod)?.metadata.uid })),
    });
    if (name === FAILING)
      h.dra.fault = (call) => (call.uid === uid && left-- > 0 ? { kind: 'error', error: 'the device is busy' } : undefined);
  }
  for (const [name, { given }] of Object.entries(recorded.pods)) {
    setStatus(h, `${NS}/pods/${name}`, given);
    bind(h, name);
  }
  const names = Object.keys(specs);
  await h.until('all are Ready', () => names.every((name) => isReady(h, name)), 120_000);
  h.dra.tell(SOCKET, [{ pool: 'e2e', device: 'plain-00', health: 'Unhealthy', message: 'hot', timeoutMs: 30_000 }]);
  const sick = (of: unknown): number => JSON.stringify(of).split('"Unhealthy"').length;
  await h.until('health', () => sick(names.map((name) => inApi(h, name)?.status)) === sick(recorded.pods), 30_000);
  const strip = named(known);
  const told = strip({
    cdi: Object.fromEntries(
      names.map((name) => [
        name,
        Object.fromEntries(created(h, name).map((c) => [c.metadata?.name, (c.CDIDevices ?? []).map((d) => d.name)])),
      ]),
    ),
    allocated: Object.fromEntries(
      names.map((name) => [
        name,
        Object.fromEntries((inApi(h, name)?.status.containerStatuses ?? []).map((s) => [s.name, s.allocatedResourcesStatus ?? null])),
      ]),
    ),
    running: checkpointOf(h.fs.textOf(STATE) ?? ''),
  });
  const of = <K extends 'cdi' | 'allocated'>(key: K) =>
    Object.fromEntries(Object.entries(recorded.pods).map(([name, pod]) => [name, pod[key]]));
  expect(told.cdi).toEqual(of('cdi'));
  expect(told.allocated).toEqual(of('allocated'));
  expect(told.running).toEqual(recorded.checkpoint.running);
  expect(
    strip(events(h, 'FailedPrepareDynamicResources').slice(0, 1)).map((e) => `${FAILING} Warning FailedPrepareDynamicResources: ${e}`),
  ).toEqual(recorded.events);
  for (const name of names) drop(h, `pods/${name}`);
  await h.until('all are gone', () => names.every((name) => inApi(h, name) === undefined), 60_000);
  expect(gpu.prepared.size).toBe(0);
  expect(callsOf(h, known)).toEqual(recorded.calls);
  expect(checkpointOf(h.fs.textOf(STATE) ?? '')).toEqual(recorded.checkpoint.gone);
});

function deviceOf(answer: object) {
  const {
    poolName,
    deviceName,
    requestNames,
    cdiDeviceIds,
    shareId = null,
  } = answer as {
    poolName: string;
    deviceName: string;
    requestNames: string[];
    cdiDeviceIds: string[];
    shareId?: string;
  };
  return { pool: poolName, device: deviceName, shareId, requests: requestNames, cdiIds: cdiDeviceIds };
}
function callsOf(h: VirtualNode, known: ReadonlyMap<string, string>): Record<string, string[]> {
  const calls: Record<string, string[]> = {};
  for (const { method, uid } of h.dra.calls) {
    const of = known.get(uid) ?? uid;
    const before = calls[of] ?? [];
    calls[of] = before.at(-1) === method ? before : [...before, method];
  }
  return calls;
}
