/** Where images and writable layers lie (KEP-4191), and what follows for eviction: what each signal collects and ranks by. Pure. */

import { SIGNAL_FACTS, type Signal } from '../../config/evictionSignals.ts';
import type { Threshold } from './thresholds.ts';

/**
 * `single`: all on the node's file system. `imagefs`: images and writable layers on one of their own. `split`: images and
 * writable layers on two; layers count as the node's, whatever disk they lie on. `unseen`: images at no place that this
 * process can see. `unknown`: the runtime has not said yet.
 */
export type DiskLayout = 'single' | 'imagefs' | 'split' | 'unseen' | 'unknown';
type DiskReading = 'nodefs' | 'imagefs' | 'containerfs';
/** What is removed before a pod has to go. */
export interface Garbage {
  containers: boolean;
  images: boolean;
}
/** What counts of a pod: its writable layers; its logs and volumes. */
export interface Parts {
  layers: boolean;
  files: boolean;
}
interface DiskRow {
  collects: Garbage;
  counts: Parts;
}

export const NO_GARBAGE: Garbage = { containers: false, images: false };
const ALL: DiskRow = { collects: { containers: true, images: true }, counts: { layers: true, files: true } };
const LAYERS: DiskRow = { collects: { containers: true, images: true }, counts: { layers: true, files: false } };
/** Dead containers free their logs there. */
const FILES: DiskRow = { collects: { containers: true, images: false }, counts: { layers: false, files: true } };
const NODE_AND_LAYERS: DiskRow = { collects: { containers: true, images: false }, counts: { layers: true, files: true } };
/** Nothing of a pod lies there. */
const IMAGES: DiskRow = { collects: { containers: false, images: true }, counts: { layers: false, files: false } };

const ROWS: Readonly<Record<DiskLayout, Readonly<Record<DiskReading, DiskRow>>>> = {
  single: { nodefs: ALL, imagefs: ALL, containerfs: ALL },
  imagefs: { nodefs: FILES, imagefs: LAYERS, containerfs: LAYERS },
  split: { nodefs: NODE_AND_LAYERS, imagefs: IMAGES, containerfs: NODE_AND_LAYERS },
  unseen: { nodefs: NODE_AND_LAYERS, imagefs: ALL, containerfs: NODE_AND_LAYERS },
  unknown: { nodefs: ALL, imagefs: ALL, containerfs: ALL },
};

function rowOf(layout: DiskLayout, signal: Signal): DiskRow | undefined {
  const { reading } = SIGNAL_FACTS[signal];
  return reading === 'nodefs' || reading === 'imagefs' || reading === 'containerfs' ? ROWS[layout][reading] : undefined;
}
export function garbageOf(layout: DiskLayout, signal: Signal): Garbage {
  return rowOf(layout, signal)?.collects ?? NO_GARBAGE;
}
export function countedParts(layout: DiskLayout, signal: Signal): Parts {
  return rowOf(layout, signal)?.counts ?? ALL.counts;
}

/** Writable layers lie on another disk than the node's files, so limits of containers leave them out. */
export function layersElsewhere(layout: DiskLayout): boolean {
  return layout === 'imagefs' || layout === 'split';
}

const OF_LAYERS: Partial<Record<Signal, Signal>> = {
  'nodefs.available': 'containerfs.available',
  'nodefs.inodesFree': 'containerfs.inodesFree',
};

/**
 * With thresholds of the file system of writable layers: on split disks those of the node's. Elsewhere it is a file system that
 * has thresholds already.
 */
export function withLayers(thresholds: readonly Threshold[], layout: DiskLayout): readonly Threshold[] {
  if (layout !== 'split') return thresholds;
  return [
    ...thresholds,
    ...thresholds.flatMap((t): Threshold[] => {
      const signal = OF_LAYERS[t.signal];
      return signal === undefined ? [] : [{ ...t, signal }];
    }),
  ];
}
