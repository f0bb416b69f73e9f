/** What the cluster is told of drivers on this node: an object of kind CSINode, an annotation and labels of the node (resources and volumes 8.17). */

import { assign } from 'xstate';
import { own, put } from '../data/own.ts';
import { sameData } from '../data/sameData.ts';
import type { KubeObject } from '../kube/request.ts';
import type { WireCsiNode } from '../kube/wire.ts';
import { MIGRATED_PLUGINS } from '../pod/volumes/kinds/inTree/inTree.ts';
import type { CsiDriver } from '../services/plugins/messages.ts';
import { isRecord } from '../shape/conform.ts';
import { partOf, textFieldsOf, textOf } from '../shape/lenient.ts';
import { retryDelayMs } from '../supervision/restartPolicy.ts';
import { messageOf } from '../text/errors.ts';
import { projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';

const NODE_ID_ANNOTATION = 'csi.volume.kubernetes.io/nodeid';
/** On CSINode: old plugins of whose volumes the cluster attaches those of their drivers. */
const MIGRATED_ANNOTATION = 'storage.alpha.kubernetes.io/migrated-plugins';
const MIGRATED = MIGRATED_PLUGINS.join(',');

export interface CsiNodeInput {
  node: { name: string; uid: string };
  drivers: readonly CsiDriver[];
  /** Names of drivers that this daemon knew and that have gone; whatever else is there stays. */
  gone: ReadonlySet<string>;
}
interface DriverEntry {
  name: string;
  nodeID: string;
  topologyKeys: string[] | null;
  allocatable?: { count: number };
}

function entryOf(d: CsiDriver): DriverEntry {
  const keys = Object.keys(d.topology).sort();
  return {
    name: d.name,
    nodeID: d.nodeId,
    topologyKeys: keys.length === 0 ? null : keys,
    ...(d.volumesMax > 0 ? { allocatable: { count: d.volumesMax } } : {}),
  };
}

export function newCsiNode({ node, drivers }: CsiNodeInput): WireCsiNode {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: {
      name: node.name,
      annotations: { [MIGRATED_ANNOTATION]: MIGRATED },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid }],
    },
    spec: { drivers: drivers.map(entryOf) },
  };
}

/** One of an earlier node of this name goes with it: the cluster removes what that node owned, at any moment. */
export function ownsCsiNode({ metadata }: KubeObject, { name, uid }: CsiNodeInput['node']): boolean {
  const { ownerReferences: owners } = metadata;
  return Array.isArray(owners) && owners.some((o) => isRecord(o) && o.kind === 'Node' && o.name === name && o.uid === uid);
}

/**
 * The object as it should be, or null where it is. An entry cannot be changed, only taken out and put in: one that differs goes with one
 * update and comes with the next. `inPlace`: the API server is of a version that lets the count of volumes be changed (1.34). Default true.
 */
export function csiNodeUpdate(
  existing: Record<string, unknown>,
  { inPlace = true, ...o }: CsiNodeInput & { inPlace?: boolean },
): Record<string, unknown> | null {
  const spec = partOf(existing, 'spec');
  const held = Array.isArray(spec.drivers) ? spec.drivers.filter(isRecord) : [];
  const wanted = new Map(o.drivers.map((d) => [d.name, entryOf(d)]));
  // Their order means nothing. Other writers of the object may have put anything there: that differs from what is wanted.
  const ordered = (keys: unknown): readonly unknown[] => {
    if (!Array.isArray(keys)) return [];
    return keys.every((key) => typeof key === 'string') ? [...keys].sort() : keys;
  };
  const plain = (entry: Record<string, unknown> | DriverEntry) => ({ ...entry, topologyKeys: ordered(entry.topologyKeys) });
  const same = (entry: Record<string, unknown>, want: DriverEntry) => sameData(plain(entry), plain(want));
  const kept = held.flatMap((entry) => {
    const name = textOf(entry.name);
    const want = wanted.get(name);
    if (want === undefined) return o.gone.has(name) ? [] : [entry];
    if (same(entry, want)) return [entry];
    return inPlace && same({ ...entry, allocatable: want.allocatable }, want) ? [{ ...entry, allocatable: want.allocatable }] : [];
  });
  const missing = [...wanted.values()].filter((want) => !held.some((entry) => entry.name === want.name));
  const metadata = annotated(existing.metadata);
  if (metadata === null && missing.length === 0 && kept.length === held.length && kept.every((entry, i) => entry === held[i])) return null;
  return { ...existing, metadata: metadata ?? existing.metadata, spec: { ...spec, drivers: [...kept, ...missing] } };
}

/** Metadata with the annotation of old plugins, or null where it is there. The order of the plugins means nothing. */
function annotated(metadata: unknown): Record<string, unknown> | null {
  const before = isRecord(metadata) ? metadata : {};
  const annotations = partOf(before, 'annotations');
  const held = annotations[MIGRATED_ANNOTATION];
  if (typeof held === 'string' && [...new Set(held.split(','))].sort().join(',') === MIGRATED) return null;
  return { ...before, annotations: { ...annotations, [MIGRATED_ANNOTATION]: MIGRATED } };
}

/** The patch of the node's own object; `conflicts`: labels that say something else, which stays. */
export function nodeMetadataPatch(
  metadata: { annotations?: Readonly<Record<string, string>> | undefined; labels?: Readonly<Record<string, string>> | undefined },
  o: Pick<CsiNodeInput, 'drivers' | 'gone'>,
): { patch: Record<string, unknown> | null; conflicts: string[] } {
  const before = idsOf(metadata.annotations?.[NODE_ID_ANNOTATION]);
  const ids = Object.fromEntries(Object.entries(before).filter(([name]) => !o.gone.has(name)));
  for (const { name, nodeId } of o.drivers) put(ids, name, nodeId);
  const labels: Record<string, string> = {};
  const conflicts: string[] = [];
  for (const { name, topology } of o.drivers) {
    for (const [key, value] of Object.entries(topology)) {
      const held = own(metadata.labels, key) ?? own(labels, key);
      if (held === undefined) put(labels, key, value);
      else if (held !== value) conflicts.push(`label ${key} of the node is ${held}, and CSI driver ${name} says ${value}`);
    }
  }
  const annotated = !sameData(before, ids);
  if (!annotated && Object.keys(labels).length === 0) return { patch: null, conflicts };
  const text = Object.keys(ids).length === 0 ? null : JSON.stringify(ids);
  return {
    patch: {
      metadata: {
        ...(annotated ? { annotations: { [NODE_ID_ANNOTATION]: text } } : {}),
        ...(Object.keys(labels).length === 0 ? {} : { labels }),
      },
    },
    conflicts,
  };
}

function idsOf(annotation: string | undefined): Record<string, string> {
  try {
    const value: unknown = JSON.parse(annotation ?? '{}');
    return textFieldsOf(value);
  } catch {
    return {};
  }
}

const BACKOFF_MIN_MS = 500;
const BACKOFF_MAX_MS = 30_000;
/** Rules of drivers may have changed meanwhile. */
const LOOK_MS = 1_200_000;

/**
 * When the drivers are asked again how many volumes the node can take, monotonic ms. `periods`: of those that the cluster wants
 * asked, by name.
 */
export function renewals(
  due: ReadonlyMap<string, number>,
  periods: ReadonlyMap<string, number>,
  nowMonoMs: number,
): { now: string[]; due: Map<string, number> } {
  const next = new Map([...periods].map(([name, ms]) => [name, Math.min(due.get(name) ?? Number.POSITIVE_INFINITY, nowMonoMs + ms)]));
  const now = [...next].filter(([, at]) => at <= nowMonoMs).map(([name]) => name);
  for (const name of now) next.set(name, nowMonoMs + (periods.get(name) ?? 0));
  return { now, due: next };
}

interface Context {
  /** Until the next look, where nothing is told before. */
  lookMs: number;
  again: boolean;
  attempts: number;
  error: string;
}

const { setup, facts } = setupWith();
export const csiNodeMachine = setup({
  types: { context: {} as Context, events: {} as { type: 'csiNode.look' } },
  actors: {
    /** How long until a driver is to be asked again; null: none is. */
    converge: unprovided<number | null>(),
  },
  actions: { sayFailed: unprovidedAction<{ error: string }>() },
  guards: { again: ({ context }) => context.again },
  delays: {
    look: ({ context }) => context.lookMs,
    wait: ({ context }) => retryDelayMs({ minMs: BACKOFF_MIN_MS, maxMs: BACKOFF_MAX_MS, jitter: 0.2 }, context.attempts, facts().random),
  },
}).createMachine({
  id: 'csiNode',
  meta: projecting<Context>(({ again, attempts, error, lookMs }) => ({ again, attempts, error, lookMs })),
  context: { lookMs: LOOK_MS, again: false, attempts: 0, error: '' },
  initial: 'converging',
  states: {
    converging: {
      meta: { reason: 'Converging', message: 'the cluster is told of the drivers on this node' },
      entry: [assign({ again: false })],
      invoke: {
        src: 'converge',
        onDone: {
          target: 'settled',
          actions: [assign(({ event }) => ({ attempts: 0, error: '', lookMs: Math.min(LOOK_MS, event.output ?? LOOK_MS) }))],
        },
        onError: {
          target: 'failed',
          actions: [
            assign(({ context, event }) => ({
              attempts: context.attempts + 1,
              error: messageOf(event.error),
            })),
            { type: 'sayFailed', params: ({ context }) => ({ error: context.error }) },
          ],
        },
      },
      on: { 'csiNode.look': { actions: [assign({ again: true })] } },
    },
    settled: {
      meta: { reason: 'Settled', message: '' },
      always: { guard: 'again', target: 'converging' },
      after: { look: { target: 'converging' } },
      on: { 'csiNode.look': { target: 'converging' } },
    },
    failed: {
      meta: { reason: 'Failed', message: ({ error }: Context) => error },
      after: { wait: { target: 'converging' } },
    },
  },
});
