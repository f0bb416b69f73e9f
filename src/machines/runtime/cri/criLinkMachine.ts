/** Statechart of the link to the container runtime: is it there, does it answer, what does it say of itself. Pure. */

import { assign, setup } from 'xstate';
import type { GroupDriver } from '../../nodeFacts.ts';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import type { CriResponse } from '../../wire/criCalls.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import type { CriEvent, CriView, RuntimeHandlerView } from './messages.ts';

const LINK_BACKOFF_MIN_MS = 100;
/** A dial of a local socket costs next to nothing, and every pod that has something to do waits for it. */
const LINK_BACKOFF_MAX_MS = 250;
/** The kubelet asks for Status every 5 s (CRI reference 13.2). */
const STATUS_PERIOD_MS = 5000;
/** A runtime that just came back loads its network: pods wait for that, so it is asked more often. */
const NOT_READY_PERIOD_MS = 500;

/** Wait before the n-th dial in a row (0-based): 0.1 s, doubled, at most 0.25 s. */
export function linkBackoffMs(attempt: number): number {
  return retryDelayMs({ minMs: LINK_BACKOFF_MIN_MS, maxMs: LINK_BACKOFF_MAX_MS }, attempt);
}

export interface RuntimeIdentity {
  name: string;
  version: string;
  cgroupDriver: GroupDriver | null;
}
export interface StatusReading {
  runtimeReady: boolean;
  networkReady: boolean;
  networkReason: string;
  /** Why the runtime says that it is not ready; '' when it is. */
  runtimeReason: string;
  /** What it says of conditions that are true; absent: nothing. */
  remark?: string;
  handlers?: readonly RuntimeHandlerView[];
  strictGroups?: boolean;
  atMonoMs: number;
}

/** The runtime's own word for its cgroup driver; null where it gives none. An unknown word is an error, as in the kubelet. */
export function readCgroupDriver(response: CriResponse<'RuntimeConfig'> | null): GroupDriver | null {
  const said = response?.linux?.cgroupDriver;
  if (said === undefined) return null;
  if (said === 'SYSTEMD') return 'systemd';
  if (said === 'CGROUPFS') return 'cgroupfs';
  throw new Error(`runtime returned an unknown cgroup driver ${JSON.stringify(said)}`);
}

/** A condition that is missing counts as false, as the kubelet has it. */
export function readStatus(response: CriResponse<'Status'>, atMonoMs: number): StatusReading {
  const find = (type: string) => response.status?.conditions.find((c) => c.type === type);
  const why = (type: string) => {
    const condition = find(type);
    if (condition?.status === true) return '';
    if (condition === undefined) return `the runtime reports no ${type} condition`;
    return [condition.reason, condition.message].filter((s) => s !== '').join(': ') || `${type} is false`;
  };
  const remarks = ['RuntimeReady', 'NetworkReady'].flatMap((type) => {
    const { status = false, reason = '', message = '' } = find(type) ?? {};
    return status && message !== '' ? [reason === '' ? message : `${reason}: ${message}`] : [];
  });
  return {
    runtimeReady: find('RuntimeReady')?.status === true,
    runtimeReason: why('RuntimeReady'),
    networkReady: find('NetworkReady')?.status === true,
    networkReason: why('NetworkReady'),
    ...(remarks.length === 0 ? {} : { remark: remarks.join('; ') }),
    ...((response.runtimeHandlers?.length ?? 0) === 0 ? {} : { handlers: handlerViews(response.runtimeHandlers ?? []) }),
    ...(response.features === undefined || response.features === null ? {} : { strictGroups: response.features.supplementalGroupsPolicy }),
    atMonoMs,
  };
}

/** What a handler does not claim, it cannot do. In order: another order each time would be a write of the node each time. */
function handlerViews(handlers: NonNullable<CriResponse<'Status'>['runtimeHandlers']>): RuntimeHandlerView[] {
  return handlers
    .map(({ name, features }) => ({
      name,
      recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts === true,
      userNamespaces: features?.userNamespaces === true,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export interface LinkContext {
  attempt: number;
  /** Why the link is lost; '' while it is not. */
  lostReason: string;
  identity: RuntimeIdentity | null;
  reading: StatusReading | null;
}

export type LinkEvent = CriEvent | { type: 'server.broken'; error: Error };

const said = (error: unknown): string => messageOf(error);

function linkView(context: LinkContext, state: CriView['state']): CriView {
  const { identity, reading } = context;
  return {
    state,
    reason: state === 'ready' ? (reading?.runtimeReason ?? '') : context.lostReason,
    runtimeName: identity?.name ?? '',
    runtimeVersion: identity?.version ?? '',
    ...(identity === null ? {} : { cgroupDriver: identity.cgroupDriver }),
    runtimeReady: state === 'ready' && reading?.runtimeReady === true,
    networkReady: state === 'ready' && reading?.networkReady === true,
    networkReason: state === 'ready' ? (reading?.networkReason ?? '') : context.lostReason,
    ...(state === 'ready' && reading?.remark !== undefined ? { remark: reading.remark } : {}),
    ...(reading?.handlers === undefined ? {} : { handlers: reading.handlers }),
    ...(reading?.strictGroups === undefined ? {} : { strictGroups: reading.strictGroups }),
    lastGoodMonoMs: reading?.atMonoMs ?? null,
  };
}

function readyMessage({ identity, reading }: LinkContext): string {
  const troubles = [reading?.runtimeReason ?? '', reading?.networkReason ?? '', reading?.remark ?? ''].filter((t) => t !== '');
  return [`${identity?.name ?? ''} ${identity?.version ?? ''}`, ...troubles].join('; ');
}

const announcing = (state: CriView['state']) =>
  ({ type: 'announce', params: ({ context }: { context: LinkContext }) => ({ view: linkView(context, state) }) }) as const;

/**
 * connecting -> ready | lost; ready -> lost when a Status poll fails; lost -> connecting after a back-off.
 * Calls are served in every state: whether the runtime is there is for the call itself to find out.
 */
export const criLinkMachine = setup({
  types: { context: {} as LinkContext, events: {} as LinkEvent },
  actors: {
    /** Version and RuntimeConfig, then Status, on a fresh connection. */
    dial: unprovided<{ identity: RuntimeIdentity; reading: StatusReading }>(),
    poll: unprovided<StatusReading>(),
  },
  actions: {
    serve: unprovidedAction<{ call: Extract<CriEvent, { type: 'cri.call' }> }>(),
    fence: unprovidedAction<{ fence: Extract<CriEvent, { type: 'cri.fence' }> }>(),
    announce: unprovidedAction<{ view: CriView }>(),
    reportReady: unprovidedAction(),
    reportLost: unprovidedAction(),
    fail: (_, params: { error: Error }) => {
      throw params.error;
    },
  },
  delays: {
    backoff: ({ context }) => linkBackoffMs(context.attempt),
    statusPeriod: ({ context: { reading } }) => (reading?.runtimeReady && reading.networkReady ? STATUS_PERIOD_MS : NOT_READY_PERIOD_MS),
  },
}).createMachine({
  id: 'criLink',
  meta: projecting<LinkContext>(({ attempt, lostReason, identity, reading }) => ({
    ...{ attempt, lostReason, runtime: identity === null ? null : `${identity.name} ${identity.version}` },
    runtimeReady: reading?.runtimeReady ?? null,
    networkReady: reading?.networkReady ?? null,
    reason: reading === null ? '' : reading.runtimeReason || reading.networkReason,
  })),
  context: { attempt: 0, lostReason: 'not connected yet', identity: null, reading: null },
  initial: 'connecting',
  on: {
    'cri.call': { actions: { type: 'serve', params: ({ event }) => ({ call: event }) } },
    'cri.fence': { actions: { type: 'fence', params: ({ event }) => ({ fence: event }) } },
    'server.broken': { actions: { type: 'fail', params: ({ event }) => ({ error: event.error }) } },
  },
  states: {
    connecting: {
      meta: { reason: 'Connecting', message: 'asking the container runtime for its version and status' },
      entry: announcing('connecting'),
      invoke: {
        src: 'dial',
        onDone: {
          target: 'ready',
          actions: [assign(({ event }) => ({ ...event.output, attempt: 0, lostReason: '' })), announcing('ready'), 'reportReady'],
        },
        onError: { target: 'lost', actions: assign({ lostReason: ({ event }) => said(event.error) }) },
      },
    },
    ready: {
      meta: { reason: 'Ready', message: readyMessage },
      initial: 'waiting',
      states: {
        waiting: { after: { statusPeriod: 'polling' }, on: { 'cri.check': 'polling' } },
        polling: {
          invoke: {
            src: 'poll',
            onDone: {
              target: 'waiting',
              actions: [assign({ reading: ({ event }) => event.output }), announcing('ready')],
            },
            onError: {
              target: '#criLink.lost',
              actions: [assign({ lostReason: ({ event }) => said(event.error) }), 'reportLost'],
            },
          },
        },
      },
    },
    lost: {
      meta: { reason: 'RuntimeLost', message: ({ lostReason }: LinkContext) => `${lostReason}; dialling again after a back-off` },
      entry: announcing('lost'),
      after: { backoff: { target: 'connecting', actions: assign({ attempt: ({ context }) => context.attempt + 1 }) } },
    },
  },
});
