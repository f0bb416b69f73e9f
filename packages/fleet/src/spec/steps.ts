/** What is done in a run of a fleet file, and when. */

import type { MapReader } from '@actorlet/kubelet/machines/faults/read/reader.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isMap } from 'yaml';
import { type ApiFault, decodeApiFault } from './apiFaults.ts';
import { checkFiles, fieldsIn, type Unreadable } from './fields.ts';
import { isManifest } from './objects.ts';
import { SELECTION, STEP, type StepName } from './table.ts';

/** Nodes that a step is about: of these groups (absent: of all), and of these a share, drawn by the seed. */
export interface Selection {
  groups?: readonly string[];
  share: number;
}
export type NodeStep = { do: 'restart' | 'stop' | 'start'; nodes: Selection } | { do: 'inject'; scenario: string; nodes: Selection };
/** A fault that clients of the API server meet, behind the proxy. */
export type ApiStep = { do: 'inject'; name: string; api: ApiFault };
/** `manifests`: files. `objects`: written out. */
export type ObjectStep = { do: 'apply' | 'delete'; manifests: readonly string[]; objects: readonly KubeObject[] };
export type StepSpec = { atMs: number } & (NodeStep | ApiStep | ObjectStep);

/** Steps that have a field of their own; it belongs to no other. */
const FIELDS: Readonly<Record<'scenario' | 'api' | 'manifests' | 'objects' | 'nodes', readonly StepName[]>> = {
  scenario: ['inject'],
  api: ['inject'],
  manifests: ['apply', 'delete'],
  objects: ['apply', 'delete'],
  nodes: ['restart', 'stop', 'start', 'inject'],
};

export function decodeStep(step: MapReader, { groups, unreadable }: { groups: readonly string[]; unreadable: Unreadable }): StepSpec[] {
  const { atMs, do: does, scenario = '', manifests = [] } = fieldsIn(step, STEP, { atMs: 0 });
  checkFiles(step, { field: 'scenario', files: scenario === '' ? [] : [scenario], unreadable });
  checkFiles(step, { field: 'manifests', files: manifests, unreadable });
  const nodes = selectionIn(step, groups);
  const apiMap = step.map('api');
  const api = apiMap === undefined ? undefined : decodeApiFault(apiMap);
  const objects = step.maps('objects').flatMap((map) => objectIn(map));
  step.finish();
  // What was wrong with it was told.
  if (does === undefined) return [];
  for (const [field, steps] of Object.entries(FIELDS)) {
    if (step.has(field) && !steps.includes(does)) step.wrong(field, `belongs to ${steps.join(', ')}`);
  }
  if (does === 'inject') {
    if (step.has('api')) return apiStep(step, atMs, api ?? null);
    if (!step.has('scenario')) step.wrong('scenario', 'is missing; inject needs the file of a fault scenario, or api');
    return [{ atMs, nodes, do: does, scenario }];
  }
  if (does !== 'apply' && does !== 'delete') return [{ atMs, nodes, do: does }];
  if (!step.has('manifests') && !step.has('objects')) step.wrong('manifests', `is missing; ${does} needs manifests (files) or objects`);
  return [{ atMs, do: does, manifests, objects }];
}

/** What is to be old is noted before. */
function apiStep(step: MapReader, atMs: number, api: ApiFault | null): StepSpec[] {
  for (const field of ['scenario', 'nodes']) {
    if (step.has(field)) step.wrong(field, 'stands beside api: a fault is one of nodes or one of clients');
  }
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
