/** How near two values of a row must be. Pure. */
import type { Difference } from './differences.ts';
import type { Rows } from './rows.ts';

/** `any`: both have it. A number: one is at most so many times the other, or nearly nothing beside it. */
export type Class = 'exact' | 'any' | number;

/** Pages of memory, and files of a few kilobytes, that come and go. */
const NEARLY_NOTHING = 2 ** 20;

/** The first that fits counts; else a value is `exact`. */
const CLASSES: readonly (readonly [RegExp, Class])[] = [
  // What the agent itself did so far, and how long it took.
  [/^\/metrics [^f]|^\/metrics\/(?:probes|slis) (?:prober|kubernetes_healthchecks_total|process)/, 'any'],
  // Of the machine, which others use too.
  [/^\/metrics\/(?:cadvisor|resource) (?:container_(?!spec|ulimits).*id="\/"|machine_swap|node_)/, 'any'],
  [/^page \/stats\/summary\S* \.node\.(?!nodeName|rlimit\.maxpid|\S*capacityBytes|\S*inodes$)/, 'any'],
  [/last_seen|start_time_seconds|cpu_\S*(?:seconds|periods)_total|network_\S+_(?:bytes|packets)_total/, 'any'],
  [/\.(?:cpu|network)\.\S*(?:NanoSeconds|NanoCores|rxBytes|txBytes)$/, 'any'],
  [/\.(?:availableBytes|inodesFree)$|container_fs_inodes_free/, 'any'],
  [/(?:container|pod)_memory|\.memory\.\S*(?:Bytes|[fF]aults)$/, 3],
  [/^(?:pod|node|lease|page \/pods).*(?:resourceVersion|renewTime)$/, 'any'],
];

export function classOf(where: string): Class {
  return CLASSES.find(([which]) => which.test(where))?.[1] ?? 'exact';
}

function alike(where: string, theirs: readonly string[], ours: readonly string[]): boolean {
  const kind = classOf(where);
  if (kind === 'any') return true;
  if (theirs.length !== ours.length) return false;
  return theirs.every((their, i) => {
    const our = ours[i];
    if (their === our || kind === 'exact') return their === our;
    const [least = 0, most = 0] = [Number(their), Number(our)].sort((a, b) => a - b);
    return most <= least * kind || most <= NEARLY_NOTHING;
  });
}

const SHOWN_MAX = 200;
const shown = (values: readonly string[] | undefined): string => (values ?? ['-']).join(' | ').slice(0, SHOWN_MAX);

/** @param left Rows whose difference is known. */
export function rowDifferences(reference: Rows, actorlet: Rows, left: (where: string) => boolean): Difference[] {
  const all = [...new Set([...reference.keys(), ...actorlet.keys()])].sort();
  return all.flatMap((where): Difference[] => {
    const [theirs, ours] = [reference.get(where), actorlet.get(where)];
    if (left(where) || (theirs !== undefined && ours !== undefined && alike(where, theirs, ours))) return [];
    return [[where, shown(theirs), shown(ours)]];
  });
}
