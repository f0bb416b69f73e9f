/** What is done in a run of a fleet file, and when. */

import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import type { ConfigTaint } from '@actorlet/kubelet/machines/config/config.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isMap } from 'yaml';
import { type ApiFault, decodeApiFault } from './apiFaults.ts';
import { checkFiles, fieldsIn, type Unreadable } from './fields.ts';
import { taintOf } from './groups.ts';
import { type ClockSpec, clockIn } from './hardware/clocks.ts';
import { type VolumeFault, volumeFaultIn } from './hardware/storage.ts';
import { isManifest } from './objects.ts';
import { CLOCK_FOR, INTERRUPTION_TAINT, SELECTION, STEP, type StepName, VOLUME_FAULT_FOR } from './table.ts';

/** Nodes that a step is about: of these groups (absent: of all), and of these a share, drawn by the seed. */
export interface Selection {
  groups?: readonly string[];
  share: number;
}
export type NodeStep =
  /** `away`, `back`: daemons end, and start again. */
  | { do: 'restart' | 'stop' | 'start' | 'remove' | 'away' | 'back' | 'evict'; nodes: Selection }
  | { do: 'notice'; nodes: Selection; taint: ConfigTaint; noticeMs: number }
  /** Null: clocks are as their groups say. */
  | { do: 'clock'; nodes: Selection; clock: ClockSpec | null }
  | { do: 'inject'; scenario: string; nodes: Selection }
  /** `isOfAll`: also of nodes that are not there yet. Null: the fault of that name ends. */
  | { do: 'volumes'; nodes: Selection; isOfAll: boolean; name: string; fault: VolumeFault | null };
type AddStep = { do: 'add'; group: string; count: number };
/** Of the data of the API server. */
type DataStep = { do: 'backup' | 'restore' };
/** A fault that clients of the API server meet, behind the proxy. */
export type ApiStep = { do: 'inject'; name: string; api: ApiFault };
/** `manifests`: files. `objects`: written out. */
export type ObjectStep = { do: 'apply' | 'delete'; manifests: readonly string[]; objects: readonly KubeObject[] };
export type StepSpec = { atMs: number } & (NodeStep | AddStep | ApiStep | DataStep | ObjectStep);

/** Steps that have a field of their own; it belongs to no other. */
const FIELDS: Readonly<Record<string, readonly StepName[]>> = {
  scenario: ['inject'],
  api: ['inject'],
  clock: ['inject'],
  volumes: ['inject'],
  manifests: ['apply', 'delete'],
  objects: ['apply', 'delete'],
  nodes: ['restart', 'stop', 'start', 'remove', 'interrupt', 'flap', 'evict', 'inject'],
  group: ['add'],
  count: ['add'],
  notice: ['interrupt'],
  taint: ['interrupt'],
  down: ['flap'],
  up: ['flap'],
  times: ['flap'],
};

interface StepOptions {
  /** Of nodes that a step may be about. */
  groups: readonly string[];
  /** Those that nodes may be added to. */
  ownGroups: readonly string[];
  unreadable: Unreadable;
}

/** A step injects one of them. */
const INJECTED = ['api', 'clock', 'scenario', 'volumes'] as const;
const NOTICE_MS = 120_000;
const FLAP = { downMs: 60_000, upMs: 60_000, times: 3 } as const;

export function decodeStep(step: MapReader, { groups, ownGroups, unreadable }: StepOptions): StepSpec[] {
  const { atMs, do: does, scenario = '', manifests = [], ...own } = fieldsIn(step, STEP, { atMs: 0 });
  checkFiles(step, { field: 'scenario', files: scenario === '' ? [] : [scenario], unreadable });
  checkFiles(step, { field: 'manifests', files: manifests, unreadable });
  const nodes = selectionIn(step, groups);
  const apiMap = step.map('api');
  const api = apiMap === undefined ? undefined : decodeApiFault(apiMap);
  const clocks = clockStepsIn(step.map('clock'), { atMs, nodes });
  const volumes = volumeStepsIn(step.map('volumes'), { atMs, nodes, isOfAll: !step.has('nodes') });
  const objects = step.maps('objects').flatMap((map) => objectIn(map));
  step.finish();
  // What was wrong with it was told.
  if (does === undefined) return [];
  for (const [field, steps] of Object.entries(FIELDS)) {
    if (step.has(field) && !steps.includes(does)) step.wrong(field, `belongs to ${steps.join(', ')}`);
  }
  if (does === 'inject') {
    const [what, second] = INJECTED.filter((one) => step.has(one));
    if (what === undefined) step.wrong('scenario', 'is missing; inject needs the file of a fault scenario, clock, volumes, or api');
    if (second !== undefined) step.wrong(second, `stands beside ${what}: a step injects one of them`);
    if (what === 'api') return apiStep(step, atMs, api ?? null);
    if (what === 'clock') return clocks;
    if (what === 'volumes') return volumes;
    return [{ atMs, nodes, do: does, scenario }];
  }
  if (does === 'backup' || does === 'restore') return [{ atMs, do: does }];
  if (does === 'add') return addStep(step, atMs, { ...own, groups: ownGroups });
  if (does === 'interrupt') return interruptSteps(step, { atMs, nodes, ...own });
  if (does === 'flap') return flapSteps({ atMs, nodes, ...FLAP, ...own });
  if (does !== 'apply' && does !== 'delete') return [{ atMs, nodes, do: does }];
  if (!step.has('manifests') && !step.has('objects')) step.wrong('manifests', `is missing; ${does} needs manifests (files) or objects`);
  return [{ atMs, do: does, manifests, objects }];
}

function addStep(step: MapReader, atMs: number, o: { group?: string; count?: number; groups: readonly string[] }): StepSpec[] {
  const { group, count = 1, groups } = o;
  if (!step.has('group')) step.wrong('group', 'is missing; add needs the group of the new nodes');
  if (group === undefined) return [];
  if (!groups.includes(group)) step.wrong('group', `there is no group ${JSON.stringify(group)}; known: ${groups.join(', ')}`);
  return [{ atMs, do: 'add', group, count }];
}

/** All of these are about the nodes that the first one draws. */
function interruptSteps(step: MapReader, o: { atMs: number; nodes: Selection; noticeMs?: number; taint?: string }): StepSpec[] {
  const { atMs, nodes, noticeMs = NOTICE_MS } = o;
  return taintOf(step, o.taint ?? INTERRUPTION_TAINT, 'taint').flatMap((taint): StepSpec[] => [
    { atMs, nodes, do: 'notice', taint, noticeMs },
    { atMs: atMs + noticeMs, nodes, do: 'remove' },
  ]);
}

function flapSteps({ atMs, nodes, downMs, upMs, times }: { atMs: number; nodes: Selection; downMs: number; upMs: number; times: number }) {
  return Array.from({ length: times }, (_, i): StepSpec[] => {
    const fromMs = atMs + i * (downMs + upMs);
    return [
      { atMs: fromMs, nodes, do: 'away' },
      { atMs: fromMs + downMs, nodes, do: 'back' },
    ];
  }).flat();
}

/** At the end of `for` the same nodes are put right. */
function clockStepsIn(map: MapReader | undefined, { atMs, nodes }: { atMs: number; nodes: Selection }): StepSpec[] {
  if (map === undefined) return [];
  const clock = clockIn(map);
  const forMs = map.read('for', CLOCK_FOR);
  map.finish();
  if (clock === null) return [];
  const set: StepSpec = { atMs, nodes, do: 'clock', clock };
  return forMs === undefined ? [set] : [set, { atMs: atMs + forMs, nodes, do: 'clock', clock: null }];
}

function volumeStepsIn(map: MapReader | undefined, o: { atMs: number; nodes: Selection; isOfAll: boolean }): StepSpec[] {
  if (map === undefined) return [];
  const fault = volumeFaultIn(map);
  const forMs = map.read('for', VOLUME_FAULT_FOR);
  map.finish();
  if (fault === null) return [];
  const begins: StepSpec = { ...o, do: 'volumes', name: `${fault.fault}@${o.atMs / 1_000}s`, fault };
  return forMs === undefined ? [begins] : [begins, { ...begins, atMs: o.atMs + forMs, fault: null }];
}

/** What is to be old is noted before. */
function apiStep(step: MapReader, atMs: number, api: ApiFault | null): StepSpec[] {
  if (step.has('nodes')) step.wrong('nodes', 'stands beside api: a fault is one of nodes or one of clients');
  if (api === null) return [];
  return [{ atMs: beginMs(atMs, api), do: 'inject', name: `${api.fault}@${atMs / 1_000}s`, api }];
}

/** When a fault begins that takes effect at that time. */
export function beginMs(atMs: number, { fault, ageMs }: ApiFault): number {
  return fault === 'stale-reads' ? Math.max(0, atMs - ageMs) : atMs;
}

function objectIn(map: MapReader): KubeObject[] {
  const value: unknown = isMap(map.node) ? map.node.toJSON() : undefined;
  if (isManifest(value)) return [value];
  map.wrong('', 'must be an object of Kubernetes: apiVersion, kind and metadata.name');
  return [];
}

function selectionIn(of: MapReader, groups: readonly string[]): Selection {
  const nodes = of.map('nodes');
  if (nodes === undefined) return { share: 1 };
  const share = nodes.read('share', SELECTION.share) ?? 1;
  const chosen = nodes.words('groups', groups);
  nodes.finish();
  return { share, ...(chosen === undefined ? {} : { groups: chosen }) };
}
