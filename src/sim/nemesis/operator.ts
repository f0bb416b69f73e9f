/** The person at a simulated node: puts, edits, removes and breaks manifests, and is the one who knows what ought to run. */
import type { SimNode } from '../world/node.ts';
import { MANIFESTS } from '../world/node.ts';
import type { SimTime } from '../world/time.ts';
import type { SimPod } from './pods.ts';

export interface Wanted {
  pod: SimPod;
  source: 'file' | 'http';
  /** Monotonic ms since which this very definition has been in place without a break. */
  sinceMs: number;
  /** Time between that and the change to this name before it; infinite for the first. */
  quietMs: number;
  /** The manifest does not parse just now: what it held last stays wanted until the daemon restarts, and then no longer. */
  broken: boolean;
}

export interface Operator {
  readonly wanted: ReadonlyMap<string, Wanted>;
  /** Names of which a pod was ever deleted by its source. */
  readonly deleted: ReadonlySet<string>;
  put(pod: SimPod, source: 'file' | 'http'): void;
  remove(name: string): void;
  /** False when there is nothing to break. */
  breakManifest(name: string): boolean;
  /** Writes every broken manifest anew. */
  mend(): void;
  /** Monotonic ms of the last change to a pod of this name. */
  touchedMs(name: string): number;
}

export function operator(node: SimNode, time: SimTime): Operator {
  const wanted = new Map<string, Wanted>();
  const touched = new Map<string, number>();
  const deleted = new Set<string>();
  const fileOf = (name: string) => `${MANIFESTS}/${name}.json`;
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
    if (was?.source === 'file') node.disk.drop(fileOf(name));
    wanted.delete(name);
  };
  return {
    wanted,
    deleted,
    put(pod, source) {
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
      if (source === 'file') node.disk.put(fileOf(pod.name), text);
      wanted.set(pod.name, { pod, source, sinceMs: time.monoMs, quietMs, broken: false });
    },
    remove(name) {
      touch(name);
      clear(name);
    },
    breakManifest(name) {
      const w = wanted.get(name);
      if (w === undefined || w.source !== 'file') return false;
      touch(name);
      const text = JSON.stringify(w.pod.manifest);
      node.disk.put(fileOf(name), text.slice(0, text.length >> 1));
      wanted.set(name, { ...w, broken: true });
      return true;
    },
    mend() {
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
