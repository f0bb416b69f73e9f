/** The cases of `cases.ts` on a whole node in virtual time: what it asks of its driver, and what the status of the claim goes through. */
import { createHash } from 'node:crypto';
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import type { CsiMethod, NodeCapability } from '../../../src/machines/wire/csi.ts';
import { cluster, create, drop, events, isReady, must, NS, patch, secret } from '../../integration/cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../../integration/virtualNode.ts';
import { CASES, type CsiCase, FS_GROUP, volumesOf } from './cases.ts';
import { type ClaimStatus, sayStatus } from './claims.ts';
import type { Call } from './compare.ts';
import { plainCalls, publishesIn } from './plain.ts';

const STORAGE = '/apis/storage.k8s.io/v1';
const WITHIN_MS = 400_000;

export interface VirtualTold {
  calls: Call[];
  /** What the status of its claim goes through. */
  claim: string[];
  publishes: number;
  /** Its files were given to the group of the pod. */
  given: boolean;
}

export async function virtualCalls(name: string): Promise<VirtualTold> {
  const of = CASES[name];
  if (of === undefined) throw new Error(`no case ${name}`);
  await using h = await cluster({ drivers: true });
  const run = new VirtualCase(h, name, of);
  return await run.run();
}

class VirtualCase {
  readonly #h: VirtualNode;
  readonly #name: string;
  readonly #of: CsiCase;
  readonly #driver: string;
  readonly #socket: string;

  constructor(h: VirtualNode, name: string, of: CsiCase) {
    this.#h = h;
    this.#name = name;
    this.#of = of;
    this.#driver = of.inTree?.driver ?? `${name}.csi.test`;
    this.#socket = `${ROOT}/plugins_registry/${this.#driver}-reg.sock`;
  }

  async run(): Promise<VirtualTold> {
    const [h, of, name] = [this.#h, this.#of, this.#name];
    const claim = this.#watchClaim();
    await this.#plug(of.capabilities ?? []);
    this.#fail();
    this.#provide();
    if (of.growth?.beforePod === true) this.#grant(of.growth.sizes[0] ?? '', false);
    const pod = this.#create();
    if (of.fails === undefined) {
      // Without an object of its driver a volume must be attached.
      const { attachRequired = of.rules === null } = (of.rules ?? {}) as { attachRequired?: boolean };
      if (attachRequired && of.inline === undefined) await this.#attach();
      await h.until('Ready', () => isReady(h, name), WITHIN_MS);
    } else {
      const text = of.fails;
      await h.until('it fails', () => events(h, 'FailedMount').some((e) => e.includes(text)), WITHIN_MS);
      await h.advance(10_000);
    }
    if (of.returns !== undefined) await this.#comeBack(of.returns);
    if (of.growth !== undefined && of.growth.beforePod !== true) await this.#grow();
    drop(h, `pods/${name}`);
    const { uid } = pod.metadata;
    await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${uid}`), WITHIN_MS);
    const given = [...h.mounts.owners].some(([path, owner]) => path.includes('kubernetes.io~csi') && owner === `-:${FS_GROUP}`);
    const calls = h.drivers.calls as Parameters<typeof plainCalls>[0];
    return { claim, calls: plainCalls(calls, { rootDir: ROOT, uid }), publishes: publishesIn(calls), given };
  }

  #watchClaim(): string[] {
    const lines: string[] = [];
    this.#h.kube.store.onEvent(({ resource, object }) => {
      if (resource !== 'persistentvolumeclaims') return;
      const line = sayStatus(object.status as ClaimStatus);
      if (line !== '' && line !== lines.at(-1)) lines.push(line);
    });
    return lines;
  }

  async #plug(capabilities: readonly string[]): Promise<void> {
    const driver = this.#h.drivers.add(this.#socket, { name: this.#driver, capabilities: new Set(capabilities as NodeCapability[]) });
    this.#h.fs.makeSocket(this.#socket);
    await this.#h.until('the driver is registered', () => this.#known());
    if (!this.#h.drivers.sockets.has(this.#socket)) throw new Error(`${driver.name} is gone`);
  }
  #known(): boolean {
    return this.#h.tree.registry.read(driversView)?.value.has(this.#driver) === true;
  }

  #fail(): void {
    const left = new Map(Object.entries(this.#of.faults ?? {}).map(([method, { codes }]) => [method, [...codes]]));
    this.#h.drivers.fault = (_, method: CsiMethod) => {
      const codes = left.get(method);
      const code = this.#of.faults?.[method]?.forever === true ? codes?.[0] : codes?.shift();
      return code === undefined ? undefined : { code, details: 'as the test wants', effect: false };
    };
  }

  #put(path: string, body: object): { metadata: { uid: string } } {
    const made = this.#h.kube.handle({ verb: 'POST', path, body });
    if (!made.ok) throw new Error(made.failure.message);
    return made.body as { metadata: { uid: string } };
  }

  #provide(): void {
    const [h, of, name] = [this.#h, this.#of, this.#name];
    for (const word of ['stage', 'publish', 'expand']) secret(h, word, { key: `of ${word}` });
    this.#put(`${NS}/serviceaccounts`, { metadata: { name: 'default' } });
    if (of.rules !== null) {
      this.#put(`${STORAGE}/csidrivers`, { metadata: { name: this.#driver }, spec: { attachRequired: false, ...of.rules } });
    }
    if (of.inline !== undefined) return;
    const { metadata } = this.#put(`${NS}/persistentvolumeclaims`, {
      metadata: { name },
      spec: { volumeName: `pv-${name}`, resources: { requests: { storage: '16Mi' } } },
      status: { phase: 'Bound', capacity: { storage: '16Mi' } },
    });
    const source = of.inTree?.source ?? { csi: { driver: this.#driver, volumeHandle: `handle-${name}`, ...of.source } };
    const common = { accessModes: ['ReadWriteOnce'], capacity: { storage: '16Mi' }, ...of.pv };
    const spec = { ...common, claimRef: { uid: metadata.uid }, ...source };
    this.#put('/api/v1/persistentvolumes', { metadata: { name: `pv-${name}` }, spec });
  }

  #create() {
    const [of, name] = [this.#of, this.#name];
    const { volumes, uses } = volumesOf(name, of, this.#driver);
    const spec = { serviceAccountName: 'default', volumes, ...of.pod };
    return create(this.#h, name, { container: uses, spec } as Parameters<typeof create>[2]);
  }

  async #attach(): Promise<void> {
    const handle = `handle-${this.#name}`;
    const unique = `kubernetes.io/csi/${this.#driver}^${handle}`;
    const path = '/api/v1/nodes/n1/status';
    const id = `csi-${createHash('sha256').update(`${handle}${this.#driver}n1`).digest('hex')}`;
    this.#put(`${STORAGE}/volumeattachments`, { metadata: { name: id }, status: { attached: true, attachmentMetadata: { lun: '3' } } });
    const body = { status: { volumesAttached: [{ name: unique, devicePath: '' }] } };
    const done = this.#h.kube.handle({ verb: 'PATCH', path, patchType: 'merge', body });
    if (!done.ok) throw new Error(done.failure.message);
  }

  async #comeBack(capabilities: readonly string[]): Promise<void> {
    const before = this.#h.drivers.sockets.get(this.#socket);
    this.#h.fs.drop(this.#socket);
    await this.#h.until('the driver is unregistered', () => !this.#known());
    await this.#plug(capabilities);
    const after = this.#h.drivers.sockets.get(this.#socket);
    for (const [path, handle] of before?.published ?? []) after?.published.set(path, handle);
    for (const [path, handle] of before?.staged ?? []) {
      if (capabilities.length > 0) after?.staged.set(path, handle);
      else this.#h.mounts.take(path);
    }
  }

  async #grow(): Promise<void> {
    for (const [at, size] of (this.#of.growth?.sizes ?? []).entries()) {
      const fails = this.#of.growth?.fails ?? [];
      this.#grant(size, (fails[at - 1] ?? null) !== null);
      const text = fails[at] ?? null;
      const done = () =>
        text === null ? this.#capacity() === size : events(this.#h, text).length > 0 || JSON.stringify(this.#status()).includes(text);
      await this.#h.until(`the claim has ${size}`, done, WITHIN_MS);
    }
  }
  #capacity(): string | undefined {
    return this.#status().capacity?.storage;
  }
  #status(): { capacity?: { storage?: string } } {
    const got = this.#h.kube.handle({ verb: 'GET', path: `${NS}/persistentvolumeclaims/${this.#name}` });
    return got.ok ? (got.body as { status: { capacity?: { storage?: string } } }).status : {};
  }

  /** As in `lab.ts`. */
  #grant(storage: string, smaller: boolean): void {
    const [h, name] = [this.#h, this.#name];
    patch(h, `persistentvolumeclaims/${name}`, { spec: { resources: { requests: { storage } } } });
    const merge = (path: string, body: object) => {
      must(h, { verb: 'PATCH', path, patchType: 'merge', body });
    };
    if (!smaller) merge(`/api/v1/persistentvolumes/pv-${name}`, { spec: { capacity: { storage } } });
    merge(`${NS}/persistentvolumeclaims/${name}/status`, {
      status: {
        conditions: [{ type: 'FileSystemResizePending', status: 'True' }],
        allocatedResources: { storage },
        allocatedResourceStatuses: { storage: 'NodeResizePending' },
      },
    });
  }
}
