/**
 * What the file source knows: one entry per manifest path, and what each reading of a file does to it
 * (spec: pod lifecycle 1.2). Pure: store in, store out.
 */
import type { Pod } from '../../kube/types.ts';
import { fullName } from '../../pod/names.ts';
import type { ManifestsView, SourceError } from '../podConfig/messages.ts';

/** One look at one file. */
export type FileReading = { path: string } /** `notes`: what was read leniently. */ & (
  | { kind: 'pod'; pod: Pod; digest: string; notes?: readonly string[] }
  /** Its bytes are those of the last reading, good or bad. */
  | { kind: 'same'; digest: string }
  /** `holds`: as in {@link SourceError}. */
  | { kind: 'bad'; message: string; digest: string; holds?: string }
  /** It was written to while it was read. */
  | { kind: 'changing' }
  | { kind: 'gone' }
  /** A directory, FIFO, socket or device: named once, never read. */
  | { kind: 'skipped'; message: string }
);

interface FileEntry {
  /** The pod of the last good reading, until a listing gives up on it. */
  pod: Pod | null;
  fullName: string | null;
  digest: string;
  notes: readonly string[];
  holds?: string;
  /** Why the present content is no manifest; null when it is one. */
  error: string | null;
  /** Order of first becoming good: who had a name first keeps it. */
  since: number;
}
export interface FileStore {
  readonly entries: ReadonlyMap<string, FileEntry>;
  readonly nextSince: number;
}
export const emptyFileStore: FileStore = { entries: new Map(), nextSince: 1 };

export interface Applied {
  store: FileStore;
  changes: FileChange[];
}
export interface FileChange {
  /** A short sentence about what differs now, for causes and the log. */
  what: string;
  /** The pod whose manifest it is, as NAME_NAMESPACE; null: it holds none, and held none. */
  about: string | null;
  /** The manifest cannot be used: an error of the set says the same. */
  wrong?: true;
}

type Step = { entry: FileEntry | null; change?: string; wrong?: true };

function applyOne(prior: FileEntry | undefined, r: FileReading, since: number): Step {
  switch (r.kind) {
    case 'pod':
      return {
        entry: {
          pod: r.pod,
          fullName: fullName(r.pod),
          digest: r.digest,
          notes: r.notes ?? [],
          error: null,
          since: prior?.pod ? prior.since : since,
        },
        change: `manifest ${r.path} ${prior?.pod ? 'changed' : 'appeared'}`,
      };
    case 'same':
      return { entry: prior ?? null };
    case 'bad': {
      const kept = prior?.pod ?? null;
      const entry = {
        pod: kept,
        fullName: prior?.fullName ?? null,
        digest: r.digest,
        notes: [],
        ...(r.holds === undefined ? {} : { holds: r.holds }),
        error: r.message,
        since: prior?.since ?? since,
      };
      return prior?.error === r.message ? { entry } : { entry, change: `manifest ${r.path} cannot be used: ${r.message}`, wrong: true };
    }
    case 'changing':
      return { entry: prior ?? null };
    case 'gone':
      return prior === undefined ? { entry: null } : { entry: null, change: `manifest ${r.path} is gone` };
    case 'skipped':
      return prior?.pod ? { entry: null, change: `manifest ${r.path} is gone: ${r.message}` } : { entry: null };
  }
}

/** Takes in readings of single files; other entries stay as they are. */
export function applyReadings(store: FileStore, readings: readonly FileReading[]): Applied {
  const entries = new Map(store.entries);
  let nextSince = store.nextSince;
  const changes: FileChange[] = [];
  for (const r of readings) {
    const prior = entries.get(r.path);
    const step = applyOne(prior, r, nextSince);
    if (step.entry === null) entries.delete(r.path);
    else {
      if (step.entry.since === nextSince) nextSince += 1;
      entries.set(r.path, step.entry);
    }
    if (step.change !== undefined) {
      const about = step.entry?.fullName ?? prior?.fullName ?? null;
      changes.push({ what: step.change, about, ...(step.wrong === undefined ? {} : { wrong: step.wrong }) });
    }
  }
  return { store: { entries, nextSince }, changes };
}

/**
 * Takes in a complete listing: what is not in it is gone. With `giveUp` (a periodic listing) a file that was already
 * bad before this listing and still is loses its pod; a file first found bad here keeps it until the next one, so
 * that a file caught in the middle of being rewritten costs nothing.
 */
export function applyListing(store: FileStore, readings: readonly FileReading[], giveUp: boolean): Applied {
  const listed = new Set(readings.map((r) => r.path));
  const missing = [...store.entries.keys()].filter((p) => !listed.has(p)).map((path): FileReading => ({ path, kind: 'gone' }));
  const applied = applyReadings(store, [...missing, ...readings]);
  if (!giveUp) return applied;
  const entries = new Map(applied.store.entries);
  for (const [path, before] of store.entries) {
    const now = entries.get(path);
    if (before.error === null || now === undefined || now.error === null || now.pod === null) continue;
    entries.set(path, { ...now, pod: null });
    const what = `manifest ${path} is still unusable at this listing (${now.error}): its pod is removed`;
    applied.changes.push({ what, about: now.fullName });
  }
  return { ...applied, store: { ...applied.store, entries } };
}

/** Which file holds which pod. */
export function manifestsOf(store: FileStore): ManifestsView {
  return new Map(
    [...store.entries].flatMap(([path, { pod }]) =>
      pod === null ? [] : [[path, { namespace: pod.metadata.namespace, name: pod.metadata.name }] as const],
    ),
  );
}

/** The complete set: pods in order of precedence, and everything that is wrong. */
export function toSet(store: FileStore): { pods: Pod[]; errors: SourceError[] } {
  const pods: Pod[] = [];
  const errors: SourceError[] = [];
  const holders = new Map<string, string>();
  const ordered = [...store.entries].sort(([p, a], [q, b]) => a.since - b.since || (p < q ? -1 : 1));
  for (const [path, entry] of ordered) {
    if (entry.error !== null) {
      const message = entry.pod === null ? entry.error : `${entry.error} (its pod runs on as last read until the next listing)`;
      const { fullName: was, holds, pod } = entry;
      errors.push({
        ...{ where: path, message },
        ...(was === null ? {} : { fullName: was }),
        ...(holds === undefined || pod !== null ? {} : { holds }),
      });
    }
    if (entry.pod === null) continue;
    pods.push(entry.pod);
    const name = fullName(entry.pod);
    for (const message of entry.notes) errors.push({ where: path, message, fullName: name, note: true });
    const holder = holders.get(name);
    if (holder === undefined) holders.set(name, path);
    else {
      const what = `pod ${entry.pod.metadata.namespace}/${entry.pod.metadata.name} is already defined by ${holder}; this file is ignored`;
      errors.push({ where: path, message: what });
    }
  }
  errors.sort((a, b) => (a.where < b.where ? -1 : a.where > b.where ? 1 : 0));
  return { pods, errors };
}
