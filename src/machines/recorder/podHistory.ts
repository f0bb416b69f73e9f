/** What is kept of a pod's life, for its timeline. */
import type { CriMethod } from '../wire/criCalls.ts';

/** A container as a status shows it. */
export interface SeenContainer {
  name: string;
  init: boolean;
  /** `waiting`, `running`, `terminated`. */
  state: string;
  reason: string;
  restartCount: number;
  /** How its last run ended: `exit code 1 (Error)`; '' before an end. */
  lastExit: string;
}
/** It was so from `fromMs` until the next span of the same container. */
export interface ContainerSpan extends SeenContainer {
  fromMs: number;
}

interface PodStep {
  atMs: number;
  from: string;
  to: string;
  event: string;
  reason: string;
}
export interface RuntimeCall {
  method: CriMethod;
  /** What it was about, where the request says: a container's name, an image. */
  about: string;
  startMs: number;
  /** Null: in flight. */
  endMs: number | null;
  /** '' while in flight and when it worked; else the error. */
  error: string;
}
export interface PodHistory {
  steps: PodStep[];
  calls: RuntimeCall[];
  /** What its containers did. */
  containers: ContainerSpan[];
  /** When it was Ready first; absent: never yet. */
  readyAtMs?: number;
  /** Steps, calls and spans that were left out of the middle. */
  left: number;
}

/** The newest entries of a history that a bundle of a death has. */
export const BUNDLE_ENTRIES = { steps: 60, calls: 60, spans: 40 } as const;
