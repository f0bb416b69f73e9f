/** The person at a simulated node: puts, edits, removes and breaks manifests, and is the one who knows what ought to run. */
import type { SimNode } from '../world/node.ts';
import { MANIFESTS, ONE_MANIFEST } from '../world/paths.ts';
import type { SimTime } from '../world/time.ts';
import type { ApiUser } from './apiUser.ts';
import type { Meddling, PodSource } from './faults.ts';
import type { SimObject } from './objects.ts';
import type { SimPod } from './pods.ts';

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

export interface Operator {
  readonly wanted: ReadonlyMap<string, Wanted>;
  /** Names of which a pod was ever deleted by its source. */
  readonly deleted: ReadonlySet<string>;
  put(pod: SimPod, source: PodSource): void;
  remove(name: string): void;
  /** In the API. False: there is no such object. */
  deleteInApi(name: string, graceSeconds: number | null): boolean;
  meddle(name: string, what: Meddling): boolean;
  compact(): boolean;
  /** Another address in the node's object. */
  moveNode(): boolean;
  /** Config maps and secrets, in the API. False: there is none. */
  putObject(object: SimObject): boolean;
  removeObject(object: Pick<SimObject, 'kind' | 'name'>): boolean;
  /** Makes those anew that were removed, and those that pods name and nobody made; claims are bound. */
  restoreObjects(): void;
  /** False when there is nothing to break. */
  breakManifest(name: string): boolean;
  /** Removes the directory of manifests with all that is in it, until `mend`. False: it is away already. */
  takeManifests(): boolean;
  /** Puts another directory with the same files in its place. False: there is none. */
  swapManifests(): boolean;
  /** Makes the directory where it is away, and writes every broken manifest anew. */
  mend(): void;
  /** Monotonic ms of the last change to a pod of this name. */
  touchedMs(name: string): number;
}

export function operator(node: SimNode, time: SimTime, api?: ApiUser): Operator {
  const wanted = new Map<string, Wanted>();
  const touched = new Map<string, number>();
  const deleted = new Set<string>();
  const objects = new Map<string, SimObject>();
  let away = false;
  const fileOf = (name: string) => (node.tuning.oneManifest ? ONE_MANIFEST : `${MANIFESTS}/${name}.json`);
  node.http = () => ({
    status: 200,
    body: JSON.stringify({
      apiVersion: 'v1',
      kind: 'PodList',
      items: [...wanted.values()].filter((w) => w.source === 'http').map((w) => w.pod.manifest),
    }),
  });
  const touch = (name: string): void => void touched.set(name, time.monoMs);
  const clear = (name: string): void => {
    const was = wanted.get(name);
    if (was?.source === 'file' && !away) node.disk.drop(fileOf(name));
    if (was?.source === 'api') endInApi(name, null);
    wanted.delete(name);
  };
  /** The one manifest becomes that of another pod. */
  const displace = (name: string): void => {
    for (const [other, w] of wanted) {
      if (other === name || w.source !== 'file') continue;
      touch(other);
      wanted.delete(other);
    }
  };
  const endInApi = (name: string, graceSeconds: number | null): boolean => {
    deleted.add(name);
    return api?.remove(name, graceSeconds) === true;
  };
  const putInApi = (pod: SimPod): void => {
    if (api === undefined) return;
    const was = wanted.get(pod.name);
    if (was !== undefined && JSON.stringify(was.pod.manifest) === JSON.stringify(pod.manifest)) return;
    const quietMs = time.monoMs - (touched.get(pod.name) ?? Number.NEGATIVE_INFINITY);
    touch(pod.name);
    if (was !== undefined && was.source !== 'api') clear(pod.name);
    const put = api.put(pod);
    // Its predecessor was deleted by force.
    if (put.replaced) deleted.add(pod.name);
    wanted.set(pod.name, { pod: { ...pod, uid: put.uid }, source: 'api', sinceMs: time.monoMs, quietMs, broken: false });
  };
  return {
    wanted,
    deleted,
    put(pod, source) {
      if (source === 'api') {
        putInApi(pod);
        return;
      }
      if (pod.fate === 'deleted') deleted.add(pod.name);
      // A deletion is never taken back; what an earlier change had in mind for later comes too late.
      else if (deleted.has(pod.name)) return;
      const was = wanted.get(pod.name);
      const text = JSON.stringify(pod.manifest);
      if (was?.source === 'file' && source === 'file' && !was.broken && JSON.stringify(was.pod.manifest) === text) {
        // Written anew, yet the same: nothing changes.
        node.disk.put(fileOf(pod.name), text);
        return;
      }
      const quietMs = time.monoMs - (touched.get(pod.name) ?? Number.NEGATIVE_INFINITY);
      touch(pod.name);
      if (was?.source !== source) clear(pod.name);
      if (source === 'file' && node.tuning.oneManifest) displace(pod.name);
      const broken = source === 'file' && away;
      if (source === 'file' && !away) node.disk.put(fileOf(pod.name), text);
      wanted.set(pod.name, { pod, source, sinceMs: time.monoMs, quietMs, broken });
    },
    remove(name) {
      touch(name);
      clear(name);
    },
    deleteInApi(name, graceSeconds) {
      if (wanted.get(name)?.source !== 'api') return api?.remove(name, graceSeconds) === true;
      touch(name);
      wanted.delete(name);
      return endInApi(name, graceSeconds);
    },
    meddle: (name, what) => api?.meddle(name, what) === true,
    compact() {
      api?.compact();
      return api !== undefined;
    },
    moveNode: () => api?.moveNode() === true,
    putObject(object) {
      if (api === undefined) return false;
      objects.set(`${object.kind} ${object.name}`, object);
      api.putObject(object);
      return true;
    },
    removeObject: (object) => api?.removeObject(object) === true,
    restoreObjects() {
      // A part of a schedule may lack the making of what its pods name.
      const named = [...wanted.values()].flatMap((w) => (w.source === 'api' ? (w.pod.objects ?? []) : []));
      const lacking = named.map((one): SimObject => ({ ...one, rev: 0, immutable: false }));
      for (const object of [...objects.values(), ...lacking])
        if (object.kind === 'claim' || api?.hasObject(object) === false) api?.putObject(object, { bound: true });
    },
    breakManifest(name) {
      const w = wanted.get(name);
      if (w === undefined || w.source !== 'file' || away) return false;
      touch(name);
      const text = JSON.stringify(w.pod.manifest);
      node.disk.put(fileOf(name), text.slice(0, text.length >> 1));
      wanted.set(name, { ...w, broken: true });
      return true;
    },
    takeManifests() {
      if (away || !node.disk.takeDir(MANIFESTS)) return false;
      away = true;
      for (const [name, w] of wanted) {
        if (w.source !== 'file') continue;
        touch(name);
        wanted.set(name, { ...w, broken: true });
      }
      return true;
    },
    swapManifests: () => !away && node.disk.swapDir(MANIFESTS),
    mend() {
      if (away) node.disk.makeDir(MANIFESTS);
      away = false;
      for (const [name, w] of wanted) {
        if (!w.broken) continue;
        touch(name);
        node.disk.put(fileOf(name), JSON.stringify(w.pod.manifest));
        wanted.set(name, { ...w, broken: false, sinceMs: time.monoMs, quietMs: 0 });
      }
    },
    touchedMs: (name) => touched.get(name) ?? 0,
  };
}
