/** The person at a simulated node: puts, edits, removes and breaks manifests, and is the one who knows what ought to run. */
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimTime } from '@actorlet/world/src/time.ts';
import type { Meddling, PodSource } from '../faults.ts';
import type { ApiUser } from './apiUser.ts';
import { ManifestFiles } from './manifestFiles.ts';
import type { SimObject, SimPod } from './subjects.ts';

export interface Wanted {
  pod: SimPod;
  source: PodSource;
  /** Monotonic ms since which this very definition has been in place without a break. */
  sinceMs: number;
  /** Time between that and the change to this name before it; infinite for the first. */
  quietMs: number;
  /**
   * The manifest does not parse just now: what it held last stays wanted until the daemon restarts, and then no longer. Or
   * its directory is away: it is wanted no longer, as soon as the node looks.
   */
  broken: boolean;
}

export class Operator {
  readonly wanted = new Map<string, Wanted>();
  /** Names of which a pod was ever deleted by its source. */
  readonly deleted = new Set<string>();
  readonly #time: SimTime;
  readonly #api: ApiUser | undefined;
  readonly #files: ManifestFiles;
  readonly #touched = new Map<string, number>();
  readonly #objects = new Map<string, SimObject>();

  constructor(node: SimNode, time: SimTime, api?: ApiUser) {
    this.#time = time;
    this.#api = api;
    this.#files = new ManifestFiles(node);
    node.http = () => {
      const items = [...this.wanted.values()].filter((w) => w.source === 'http').map((w) => w.pod.manifest);
      return { status: 200, body: JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items }) };
    };
  }

  put(pod: SimPod, source: PodSource): void {
    if (source === 'api') {
      this.#putInApi(pod);
      return;
    }
    if (pod.fate === 'deleted') this.deleted.add(pod.name);
    // A deletion is never taken back; what an earlier change had in mind for later comes too late.
    else if (this.deleted.has(pod.name)) return;
    const was = this.wanted.get(pod.name);
    const text = JSON.stringify(pod.manifest);
    if (was?.source === 'file' && source === 'file' && !was.broken && JSON.stringify(was.pod.manifest) === text) {
      // Written anew, yet the same: nothing changes.
      this.#files.write(pod.name, text);
      return;
    }
    const quietMs = this.#touch(pod.name);
    if (was?.source !== source) this.#clear(pod.name);
    if (source === 'file') {
      if (this.#files.areOne) this.#displace(pod.name);
      this.#files.write(pod.name, text);
    }
    const broken = source === 'file' && this.#files.areAway;
    this.wanted.set(pod.name, { pod, source, sinceMs: this.#time.monoMs, quietMs, broken });
  }

  remove(name: string): void {
    this.#touch(name);
    this.#clear(name);
  }

  /** Makes the directory where it is away, and writes every broken manifest anew. */
  mend(): void {
    this.#files.bring();
    for (const [name, w] of this.wanted) {
      if (!w.broken) continue;
      this.#touch(name);
      this.#files.write(name, JSON.stringify(w.pod.manifest));
      this.wanted.set(name, { ...w, broken: false, sinceMs: this.#time.monoMs, quietMs: 0 });
    }
  }

  /** Monotonic ms of the last change to a pod of this name. */
  touchedMs(name: string): number {
    return this.#touched.get(name) ?? 0;
  }

  // ---- files ----

  breakManifest(name: string): boolean {
    const w = this.wanted.get(name);
    if (w === undefined || w.source !== 'file' || this.#files.areAway) return false;
    this.#touch(name);
    const text = JSON.stringify(w.pod.manifest);
    this.#files.write(name, text.slice(0, text.length >> 1));
    this.wanted.set(name, { ...w, broken: true });
    return true;
  }

  /** Removes the directory of manifests with all that is in it, until `mend`. False: it is away already. */
  takeManifests(): boolean {
    if (!this.#files.take()) return false;
    for (const [name, w] of this.wanted) {
      if (w.source !== 'file') continue;
      this.#touch(name);
      this.wanted.set(name, { ...w, broken: true });
    }
    return true;
  }

  /** Puts another directory with the same files in its place. False: there is none. */
  swapManifests(): boolean {
    return this.#files.swap();
  }

  // ---- the API ----

  deleteInApi(name: string, graceSeconds: number | null): boolean {
    if (this.wanted.get(name)?.source !== 'api') return this.#api?.remove(name, graceSeconds) === true;
    this.#touch(name);
    this.wanted.delete(name);
    return this.#endInApi(name, graceSeconds);
  }

  meddle(name: string, what: Meddling): boolean {
    return this.#api?.meddle(name, what) === true;
  }

  compact(): boolean {
    this.#api?.compact();
    return this.#api !== undefined;
  }

  /** Another address in the node's object. */
  moveNode(): boolean {
    return this.#api?.moveNode() === true;
  }

  /** Config maps and secrets, in the API. False: there is none. */
  putObject(object: SimObject): boolean {
    if (this.#api === undefined) return false;
    this.#objects.set(`${object.kind} ${object.name}`, object);
    this.#api.putObject(object);
    return true;
  }

  removeObject(object: Pick<SimObject, 'kind' | 'name'>): boolean {
    return this.#api?.removeObject(object) === true;
  }

  /** Makes those anew that were removed, and those that pods name and nobody made; claims are bound. */
  restoreObjects(): void {
    // A part of a schedule may lack the making of what its pods name.
    const named = [...this.wanted.values()].flatMap((w) => (w.source === 'api' ? (w.pod.objects ?? []) : []));
    const lacking = named.map((one): SimObject => ({ ...one, rev: 0, immutable: false }));
    for (const object of [...this.#objects.values(), ...lacking])
      if (object.kind === 'claim' || this.#api?.hasObject(object) === false) this.#api?.putObject(object, { bound: true });
  }

  #putInApi(pod: SimPod): void {
    if (this.#api === undefined) return;
    const was = this.wanted.get(pod.name);
    if (was !== undefined && JSON.stringify(was.pod.manifest) === JSON.stringify(pod.manifest)) return;
    const quietMs = this.#touch(pod.name);
    if (was !== undefined && was.source !== 'api') this.#clear(pod.name);
    const put = this.#api.put(pod);
    // Its predecessor was deleted by force.
    if (put.replaced) this.deleted.add(pod.name);
    this.wanted.set(pod.name, { pod: { ...pod, uid: put.uid }, source: 'api', sinceMs: this.#time.monoMs, quietMs, broken: false });
  }

  #endInApi(name: string, graceSeconds: number | null): boolean {
    this.deleted.add(name);
    return this.#api?.remove(name, graceSeconds) === true;
  }

  // ---- what is wanted ----

  /** Notes a change to this name; the result is the time since the change before it. */
  #touch(name: string): number {
    const now = this.#time.monoMs;
    const quietMs = now - (this.#touched.get(name) ?? Number.NEGATIVE_INFINITY);
    this.#touched.set(name, now);
    return quietMs;
  }

  #clear(name: string): void {
    const was = this.wanted.get(name);
    if (was?.source === 'file') this.#files.drop(name);
    if (was?.source === 'api') this.#endInApi(name, null);
    this.wanted.delete(name);
  }

  /** The one manifest becomes that of another pod. */
  #displace(name: string): void {
    for (const [other, w] of this.wanted) {
      if (other === name || w.source !== 'file') continue;
      this.#touch(other);
      this.wanted.delete(other);
    }
  }
}
