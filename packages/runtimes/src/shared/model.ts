/**
 * What both embedded runtimes agree on: the rows of a runtime's state and how they are shown as CRI messages
 * (lists, filters, statuses). Pure.
 */

import { own } from '@actorlet/kubelet/machines/data/own.ts';
import type {
  ContainerMetadata,
  CriContainer,
  CriContainerState,
  CriContainerStatus,
  ImageSpec,
  Mount,
  NamespaceOption,
  PodSandbox,
  PodSandboxMetadata,
  PodSandboxState,
  PodSandboxStatus,
  StringMap,
} from '@actorlet/kubelet/machines/wire/cri.ts';

/** gRPC status codes the embedded runtimes answer with. */
export const CODE = {
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

/** A refusal with its gRPC code; each runtime turns it into its own error form. */
export class RuntimeRefusal extends Error {
  readonly code: number;
  constructor(code: number, details: string) {
    super(details);
    this.name = 'RuntimeRefusal';
    this.code = code;
  }
}

export interface SandboxRow {
  id: string;
  metadata: PodSandboxMetadata;
  labels: StringMap;
  annotations: StringMap;
  runtimeHandler: string;
  ready: boolean;
  /** Milliseconds since the epoch, with microseconds as the fraction. Strictly growing within one runtime. */
  createdAtMs: number;
  /** '' for a pod on the host's network. */
  ip: string;
  namespaces: NamespaceOption;
}

export interface ContainerRow {
  id: string;
  sandboxId: string;
  metadata: ContainerMetadata;
  image: ImageSpec;
  imageRef: string;
  labels: StringMap;
  annotations: StringMap;
  mounts: Mount[];
  /** Absolute path, '' when the container keeps no log. */
  logPath: string;
  state: CriContainerState;
  createdAtMs: number;
  /** 0 = never, for this and `finishedAtMs`. */
  startedAtMs: number;
  finishedAtMs: number;
  exitCode: number;
  reason: string;
  message: string;
}

/** Milliseconds to CRI nanoseconds, microsecond precision. */
export function nanos(ms: number): string {
  return ms <= 0 ? '0' : `${BigInt(Math.round(ms * 1000)) * 1000n}`;
}

function sandboxState(row: SandboxRow): PodSandboxState {
  return row.ready ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY';
}

export function sandboxItem(row: SandboxRow): PodSandbox {
  return {
    id: row.id,
    metadata: row.metadata,
    state: sandboxState(row),
    createdAt: nanos(row.createdAtMs),
    labels: row.labels,
    annotations: row.annotations,
    runtimeHandler: row.runtimeHandler,
  };
}

export function sandboxStatus(row: SandboxRow): PodSandboxStatus {
  return {
    ...sandboxItem(row),
    network: { ip: row.ready ? row.ip : '', additionalIps: [] },
    linux: { namespaces: { options: row.namespaces } },
  };
}

export function containerItem(row: ContainerRow): CriContainer {
  return {
    id: row.id,
    podSandboxId: row.sandboxId,
    metadata: row.metadata,
    image: row.image,
    imageRef: row.imageRef,
    state: row.state,
    createdAt: nanos(row.createdAtMs),
    labels: row.labels,
    annotations: row.annotations,
  };
}

export function containerStatus(row: ContainerRow): CriContainerStatus {
  return {
    id: row.id,
    metadata: row.metadata,
    state: row.state,
    createdAt: nanos(row.createdAtMs),
    startedAt: nanos(row.startedAtMs),
    finishedAt: nanos(row.finishedAtMs),
    exitCode: row.exitCode,
    image: row.image,
    imageRef: row.imageRef,
    reason: row.reason,
    message: row.message,
    labels: row.labels,
    annotations: row.annotations,
    mounts: row.mounts,
    logPath: row.logPath,
  };
}

/** The CRI's words when a container has ended and no better reason is known. */
export function exitReason(exitCode: number): string {
  return exitCode === 0 ? 'Completed' : 'Error';
}

function hasLabels(labels: StringMap, selector: StringMap | null | undefined): boolean {
  return Object.entries(selector ?? {}).every(([k, v]) => own(labels, k) === v);
}

// Over the wire an absent message is null and an absent string is ''; in process both are simply missing.
export interface SandboxFilter {
  id?: string;
  state?: { state: PodSandboxState } | null;
  labelSelector?: StringMap;
}
export function matchSandbox(row: SandboxRow, filter: SandboxFilter | null | undefined): boolean {
  if (filter === null || filter === undefined) return true;
  if (filter.id && row.id !== filter.id) return false;
  if (filter.state && filter.state.state !== sandboxState(row)) return false;
  return hasLabels(row.labels, filter.labelSelector);
}

export interface ContainerFilter {
  id?: string;
  state?: { state: CriContainerState } | null;
  podSandboxId?: string;
  labelSelector?: StringMap;
}
export function matchContainer(row: ContainerRow, filter: ContainerFilter | null | undefined): boolean {
  if (filter === null || filter === undefined) return true;
  if (filter.id && row.id !== filter.id) return false;
  if (filter.podSandboxId && row.sandboxId !== filter.podSandboxId) return false;
  if (filter.state && filter.state.state !== row.state) return false;
  return hasLabels(row.labels, filter.labelSelector);
}

/** A runtime keeps one sandbox per pod and attempt, and one container per sandbox, name and attempt. */
export function sandboxKey(m: PodSandboxMetadata): string {
  return `${m.name}_${m.namespace}_${m.uid}_${m.attempt}`;
}
export function containerKey(sandboxId: string, m: ContainerMetadata): string {
  return `${m.name}_${sandboxId}_${m.attempt}`;
}

/** `name` -> `name:latest`; names with a tag or a digest stay. A registry's port is no tag. */
export function imageTag(name: string): string {
  if (name.includes('@')) return name;
  const last = name.slice(name.lastIndexOf('/') + 1);
  return last.includes(':') ? name : `${name}:latest`;
}
