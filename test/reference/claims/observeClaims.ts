/** Runs the pods of `story.ts` on a node agent of a real cluster, with a driver of our own, and keeps what it told. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { isRecord } from '../../../src/machines/shape/conform.ts';
import { startDraDriver, type TestDraDriver, type WireClaim } from '../../allocation/draDriver.ts';
import { type Cluster, LONG } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { steady } from '../../e2e/manifests.ts';
import { answerOf, DRIVER, FAILING, objects, pods, slices } from './story.ts';
import { checkpointOf, named, type ToldClaim, type ToldClaims, type ToldPod } from './told.ts';

const API = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims';
const FAILURES = 2;
interface Claim {
  metadata: { name: string; uid: string; ownerReferences?: { name: string }[] };
  status?: { allocation?: { devices?: { results?: Record<string, unknown>[] } }; reservedFor?: { name: string }[] };
}

/** What a driver of the story prepares, with a CDI spec for the runtime. */
export class StoryDriver {
  readonly #c: Cluster;
  readonly #claims = new Map<string, Claim>();
  #left = FAILURES;
  driver: TestDraDriver | undefined;

  constructor(c: Cluster) {
    this.#c = c;
  }

  async start(): Promise<void> {
    this.driver = await startDraDriver({
      name: DRIVER,
      socket: join(this.#c.daemon.rootDir, 'plugins_registry', `${DRIVER}-reg.sock`),
      prepare: (claim) => this.#prepare(claim),
      unprepare: ({ uid }) => rmSync(this.#file(uid), { force: true }),
      refuse: ({ name }) => (name === FAILING && this.#left-- > 0 ? 'the device is busy' : undefined),
      before: async (claims) => {
        for (const { uid, name } of claims) if (!this.#claims.has(uid)) this.#claims.set(uid, await readClaim(this.#c, name));
      },
    });
  }
  #file(uid: string): string {
    return join(this.#c.lab.dir, 'cdi', `${uid}.json`);
  }
  #prepare({ uid }: WireClaim): object[] {
    const results = this.#claims.get(uid)?.status?.allocation?.devices?.results ?? [];
    mkdirSync(join(this.#c.lab.dir, 'cdi'), { recursive: true });
    const devices = results.map((r) => ({
      name: `${uid}-${String(r.device)}`,
      containerEdits: { env: [`DRA_${String(r.device).replace('-', '_')}=1`] },
    }));
    writeFileSync(this.#file(uid), JSON.stringify({ cdiVersion: '0.6.0', kind: `${DRIVER}/claim`, devices }));
    return answerOf(results, uid);
  }
}

async function readClaim(c: Cluster, name: string): Promise<Claim> {
  return (await c.plane.request('GET', `${API}/${name}`)).body as Claim;
}

const stateFile = (c: Cluster): string => join(c.daemon.rootDir, 'dra_manager_state');
const names = Object.keys(pods((name) => steady(name)));

/** The node agent runs. Pods run afterwards. */
export async function begin(c: Cluster, driver: StoryDriver): Promise<void> {
  await driver.start();
  await c.daemon.wait('the driver is registered', () => driver.driver?.told.includes('') === true, LONG);
  await c.kubectl('label', 'namespace', 'default', 'resource.kubernetes.io/admin-access=true', '--overwrite');
  await c.apply(...objects());
  await c.daemon.wait(
    'slices of before are deleted',
    async () => (await c.kubectl('get', 'resourceslices', '-o', 'name')).trim() === '',
    LONG,
  );
  await c.apply(...slices(NODE_NAME));
  for (const [name, spec] of Object.entries(pods((n, more) => steady(n, more)))) {
    await c.create(name, spec);
    // The scheduler may refuse the second of two pods that come at once to one device, and looks again after minutes.
    if (name.startsWith('capacity')) await c.ready(name);
  }
  for (const name of names) await c.ready(name);
}

/** All pods run. */
export async function look(c: Cluster, { driver }: StoryDriver): Promise<{ told: Omit<ToldClaims, 'calls'>; known: Map<string, string> }> {
  const devices = [{ device: { poolName: 'e2e', deviceName: 'plain-00' }, health: 'UNHEALTHY', message: 'hot' }];
  driver?.health(devices);
  const told = (pod: Pod): boolean => JSON.stringify(pod.status.containerStatuses ?? []).includes('"Unhealthy"');
  await c.daemon.wait('health', async () => (await Promise.all(names.map((n) => c.pod(n)))).some((p) => p !== null && told(p)), LONG);
  const list = ((await c.plane.request('GET', API)).body as { items: Claim[] }).items;
  const all = await Promise.all(names.map((name) => c.ready(name)));
  const known = knownOf(list, all);
  const strip = named(known);
  const toldPods: Record<string, ToldPod> = {};
  for (const pod of all) toldPods[pod.metadata.name] = await ofPod(c, pod);
  const events = JSON.parse(await c.kubectl('get', 'events', '-o', 'json')) as {
    items: { type: string; reason: string; message: string; involvedObject: { name: string } }[];
  };
  const warnings = events.items
    .filter((e) => /DynamicResources/.test(e.reason))
    .map((e) => `${e.involvedObject.name} ${e.type} ${e.reason}: ${e.message}`);
  return {
    known,
    told: strip({
      pods: toldPods,
      claims: Object.fromEntries(list.map((claim) => [claim.metadata.name, ofClaim(claim)])),
      events: [...new Set(warnings)].sort(),
      checkpoint: { running: checkpointOf(readFileSync(stateFile(c), 'utf8')), gone: null },
    }),
  };
}

function knownOf(claims: readonly Claim[], all: readonly Pod[]): Map<string, string> {
  const known = new Map<string, string>();
  for (const { metadata } of all) known.set(metadata.uid, `pod:${metadata.name}`);
  for (const { metadata, status } of claims) {
    const [owner] = metadata.ownerReferences ?? [];
    const name = owner === undefined ? metadata.name : `${owner.name}-made`;
    known.set(metadata.uid, `claim:${name}`);
    if (owner !== undefined) known.set(metadata.name, name);
    for (const { shareID } of status?.allocation?.devices?.results ?? [])
      if (typeof shareID === 'string') known.set(shareID, `share:${name}`);
  }
  return known;
}

function ofClaim({ metadata, status }: Claim): ToldClaim {
  return {
    reservedFor: (status?.reservedFor ?? []).map((r) => r.name).sort(),
    owner: metadata.ownerReferences?.[0]?.name ?? null,
    results: status?.allocation?.devices?.results ?? [],
  };
}

async function ofPod(c: Cluster, pod: Pod): Promise<ToldPod> {
  const { resourceClaimStatuses, extendedResourceClaimStatus, containerStatuses = [] } = pod.status;
  const cdi: Record<string, string[]> = {};
  for (const { name, containerID = '' } of containerStatuses) {
    const id = containerID.slice(containerID.indexOf('://') + 3);
    const answer = await c.lab.cri.call(
      'ContainerStatus',
      { containerId: id, verbose: true },
      { timeoutMs: 5_000, signal: new AbortController().signal },
    );
    const { config }: { config?: unknown } = JSON.parse(answer.info.info ?? '{}');
    const devices = isRecord(config) && Array.isArray(config.CDI_devices) ? config.CDI_devices : [];
    cdi[name] = devices.filter(isRecord).map((d) => String(d.name));
  }
  return {
    given: {
      ...(resourceClaimStatuses === undefined ? {} : { resourceClaimStatuses }),
      ...(extendedResourceClaimStatus === undefined ? {} : { extendedResourceClaimStatus }),
    },
    cdi,
    allocated: Object.fromEntries(containerStatuses.map((s) => [s.name, s.allocatedResourcesStatus ?? null])),
  };
}

/** Ends these pods, and waits until what they alone used is unprepared. */
export async function end(c: Cluster, which: readonly string[] = names): Promise<void> {
  await c.kubectl('delete', 'pod', ...which, '--wait=true');
}

/** By claim, each call once in a row: how often an agent asks again is its own. */
export function callsOf({ driver }: StoryDriver, known: ReadonlyMap<string, string>): Record<string, string[]> {
  const calls: Record<string, string[]> = {};
  for (const { method, claims } of driver?.calls ?? [])
    for (const { uid } of claims) {
      const of = known.get(uid) ?? uid;
      const before = calls[of] ?? [];
      calls[of] = before.at(-1) === method ? before : [...before, method];
    }
  return Object.fromEntries(Object.entries(calls).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function checkpointNow(c: Cluster): unknown {
  return existsSync(stateFile(c)) ? checkpointOf(readFileSync(stateFile(c), 'utf8')) : null;
}
