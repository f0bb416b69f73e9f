/**
 * The manager of ResourceClaims: its records, a statechart for each claim and for each registration of a driver. A claim that takes
 * its time delays the pods that use it, and no other.
 */

import { assign } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { claimsOfPod } from '../../pod/resources/claims.ts';
import type { ListedPod, RuntimePodsView } from '../../pod/runtime/seen.ts';
import type { PodRecord, PodsView } from '../../pods/manager/messages.ts';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { names, podName, projecting, some } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { type ClaimEvent, type ClaimSaid, claimMachine } from './claimMachine.ts';
import { type DriverSaid, driverMachine } from './driverMachine.ts';
import type { ClaimsEvent, DraDriver } from './messages.ts';
import { SLICES_GRACE_MS, type SlicesSaid, slicesMachine } from './slicesMachine.ts';
import { type ClaimRecord, claimKey, splitKey } from './types.ts';

const CLAIMS_RETRY = { minMs: 1_000, maxMs: 60_000 } as const;
/** How often claims of pods are looked for that this node does not have any more, from the reference. */
const SWEEP_MS = 60_000;

type AskEvent = Extract<ClaimsEvent, { type: 'claims.prepare' | 'claims.release' }>;

/** What comes with each event. */
export interface ClaimsFacts {
  readonly drivers: ReadonlyMap<string, DraDriver>;
  readonly pods: PodsView | undefined;
  readonly listing: RuntimePodsView | undefined;
  /** Every claim that is recorded. */
  readonly records: ReadonlyMap<string, ClaimRecord>;
}
/** A question about a pod: how many of its claims have not answered yet, and what was wrong with one. */
interface Open {
  what: string;
  left: number;
  error: string | null;
}
export interface ClaimsContext {
  /** By key: the statechart, and how often it was told something. */
  claims: ReadonlyMap<string, { child: string; told: number }>;
  open: ReadonlyMap<number, Open>;
  /** Registrations, by the socket of each. */
  drivers: ReadonlyMap<string, DraDriver>;
  /** Stamps of those that are connected. */
  connected: ReadonlySet<string>;
  /** Drivers whose ResourceSlices are about to be deleted. */
  leaving: ReadonlySet<string>;
  /** Slices of all drivers go when the daemon starts: none of them has registered yet. */
  starts: boolean;
  lastId: number;
  error: string;
  attempts: number;
}
type Event = ClaimsEvent | ClaimSaid | DriverSaid | SlicesSaid;

const { setup, facts } = setupWith<ClaimsFacts>();
const effects = setup({
  types: { context: {} as ClaimsContext, events: {} as Event, input: {} as Pick<ClaimsContext, 'starts' | 'leaving'> },
  actors: { load: unprovided<ReadonlyMap<string, ClaimRecord>>(), claim: claimMachine, driver: driverMachine, slices: slicesMachine },
  actions: {
    hold: unprovidedAction<{ ask: number; event: AskEvent }>(),
    /** `error` null: every claim of the pod is as it was asked for. */
    reply: unprovidedAction<{ ask: number; error: string | null }>(),
    refuse: unprovidedAction<{ event: AskEvent; why: string }>(),
    sayFailed: unprovidedAction<{ error: string }>(),
    /** For the next manager in this daemon. */
    tellLeaving: unprovidedAction<{ drivers: ReadonlySet<string> }>(),
  },
});
type Enqueue = Parameters<Parameters<typeof effects.enqueueActions>[0]>[0]['enqueue'];
type Claims = Map<string, { child: string; told: number }>;

/** Tells a claim something; one that is not known begins with that. */
function tell(
  enqueue: Enqueue,
  at: { claims: Claims; lastId: number },
  to: { namespace: string; name: string; event: ClaimEvent },
): number {
  const key = claimKey(to);
  let { lastId } = at;
  let known = at.claims.get(key);
  if (known === undefined) {
    lastId += 1;
    known = { child: `${key}#${lastId}`, told: 0 };
    enqueue.spawnChild('claim', { id: known.child, input: { namespace: to.namespace, name: to.name, record: null } });
  }
  at.claims.set(key, { ...known, told: known.told + 1 });
  enqueue.sendTo(known.child, to.event);
  return lastId;
}
const slicesOf = (driver: string): string => `slices of ${driver || 'all drivers'}`;
const whatOf = (verb: string, pod: Pod): string => `${verb} for pod ${podName(pod)}`;
/** It has no worker that would release its claims, and none of its containers may run. */
const isUnused = (record: PodRecord | undefined, listed: ListedPod | undefined): boolean =>
  (record?.state.is ?? 'refused') === 'refused' && listed?.containers.some((c) => c.state !== 'exited') !== true;

const machine = effects.extend({
  actions: {
    restore: enqueuing(effects)(({ context, enqueue }, records: ReadonlyMap<string, ClaimRecord>) => {
      const claims = new Map(context.claims);
      let { lastId } = context;
      for (const [key, record] of records) {
        lastId += 1;
        const child = `${key}#${lastId}`;
        enqueue.spawnChild('claim', { id: child, input: { namespace: record.namespace, name: record.name, record } });
        claims.set(key, { child, told: 0 });
      }
      enqueue.assign({ claims, lastId });
      for (const driver of context.leaving)
        enqueue.spawnChild('slices', { id: slicesOf(driver), input: { driver, graceMs: SLICES_GRACE_MS } });
      if (!context.starts) return;
      enqueue.spawnChild('slices', { id: slicesOf(''), input: { driver: '', graceMs: 0 } });
    }),
    begin: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'claims.prepare') return;
      const { pod } = event;
      const { uid, namespace, name } = pod.metadata;
      const ask = context.lastId + 1;
      enqueue({ type: 'hold', params: { ask, event } });
      const wanted = claimsOfPod(pod);
      if (!wanted.ok || wanted.value.length === 0) {
        enqueue({ type: 'reply', params: { ask, error: wanted.ok ? null : wanted.message } });
        enqueue.assign({ lastId: ask });
        return;
      }
      const claims = new Map(context.claims);
      let lastId = ask;
      for (const claim of wanted.value) {
        const use = { ask, user: { uid, namespace, name, owned: claim.owned } };
        lastId = tell(enqueue, { claims, lastId }, { namespace, name: claim.name, event: { type: 'claim.use', use } });
      }
      const open = new Map(context.open).set(ask, { what: whatOf('prepare', pod), left: wanted.value.length, error: null });
      enqueue.assign({ claims, lastId, open });
    }),
    release: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'claims.release') return;
      const { uid } = event;
      const ask = context.lastId + 1;
      enqueue({ type: 'hold', params: { ask, event } });
      enqueue.assign({ lastId: ask });
      if (context.claims.size === 0) {
        enqueue({ type: 'reply', params: { ask, error: null } });
        return;
      }
      const claims = new Map(context.claims);
      for (const key of context.claims.keys())
        tell(enqueue, { claims, lastId: ask }, { ...splitKey(key), event: { type: 'claim.release', leave: { ask, uid } } });
      enqueue.assign({ claims, open: new Map(context.open).set(ask, { what: `release of ${uid}`, left: claims.size, error: null }) });
    }),
    doubt: effects.enqueueActions(({ context, event, enqueue }) => {
      const wanted = event.type === 'claims.doubt' ? claimsOfPod(event.pod) : null;
      if (event.type !== 'claims.doubt' || wanted?.ok !== true) return;
      const { namespace } = event.pod.metadata;
      const claims = new Map(context.claims);
      for (const { name } of wanted.value)
        if (claims.has(claimKey({ namespace, name })))
          tell(enqueue, { claims, lastId: context.lastId }, { namespace, name, event: { type: 'claim.doubt' } });
      enqueue.assign({ claims });
    }),
    answered: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'claim.answered') return;
      const { ask } = event;
      const known = context.open.get(ask);
      if (known === undefined) return;
      const now = { ...known, left: known.left - 1, error: known.error ?? event.error };
      const open = new Map(context.open);
      if (now.left > 0) open.set(ask, now);
      else {
        open.delete(ask);
        enqueue({ type: 'reply', params: { ask, error: now.error } });
      }
      enqueue.assign({ open });
    }),
    /** A claim that was told something since it said so goes on. */
    drop: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'claim.idle') return;
      const known = context.claims.get(event.key);
      if (known === undefined || known.told !== event.heard) return;
      enqueue.stopChild(known.child);
      enqueue.assign({ claims: new Map([...context.claims].filter(([key]) => key !== event.key)) });
    }),
    /** Pods that end no other way: this node does not have them any more, or did not let them in. */
    sweep: effects.enqueueActions(({ context, enqueue }) => {
      const { pods, listing, records } = facts();
      if (pods?.sourcesReady !== true || listing === undefined) return;
      const claims = new Map(context.claims);
      for (const [key, { pods: users }] of records)
        for (const uid of users)
          if (claims.has(key) && isUnused(pods.records.get(uid), listing.pods.get(uid)))
            tell(
              enqueue,
              { claims, lastId: context.lastId },
              { ...splitKey(key), event: { type: 'claim.release', leave: { ask: null, uid } } },
            );
      enqueue.assign({ claims });
    }),
    compareDrivers: effects.enqueueActions(({ context, enqueue }) => {
      const { drivers } = facts();
      const connected = new Set(context.connected);
      const gone: string[] = [];
      for (const [socket, { driver, stamp }] of context.drivers) {
        if (drivers.get(socket)?.stamp === stamp) continue;
        enqueue.stopChild(stamp);
        connected.delete(stamp);
        gone.push(driver);
      }
      for (const [socket, driver] of drivers)
        if (context.drivers.get(socket)?.stamp !== driver.stamp) enqueue.spawnChild('driver', { id: driver.stamp, input: driver });
      // A driver that registered anew is given the time to be reached.
      const fresh = [...drivers].filter(([socket, { stamp }]) => context.drivers.get(socket)?.stamp !== stamp);
      enqueue.assign({
        drivers,
        connected,
        ...watchSlices(enqueue, { ...context, drivers, connected }, [...gone, ...fresh.map(([, d]) => d.driver)]),
      });
    }),
    noteDriver: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'driver.changed') return;
      const connected = new Set(context.connected);
      if (event.connected) connected.add(event.stamp);
      else connected.delete(event.stamp);
      enqueue.assign({ connected, ...watchSlices(enqueue, { ...context, connected }, [event.driver]) });
    }),
    slicesGone: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'slices.deleted') return;
      enqueue.stopChild(slicesOf(event.driver));
      const leaving = new Set([...context.leaving].filter((d) => d !== event.driver));
      enqueue.assign({ leaving });
      enqueue({ type: 'tellLeaving', params: { drivers: leaving } });
    }),
    noteFailure: assign(({ context }, { error }: { error: unknown }) => ({ error: messageOf(error), attempts: context.attempts + 1 })),
    noteSuccess: assign({ error: '', attempts: 0 }),
  },
  delays: { wait: ({ context }) => retryDelayMs(CLAIMS_RETRY, context.attempts - 1) },
});

/** A driver that no registration reaches loses its ResourceSlices after the grace; one that is reached keeps them. */
function watchSlices(
  enqueue: Enqueue,
  at: Pick<ClaimsContext, 'drivers' | 'connected' | 'leaving'>,
  changed: readonly string[],
): Pick<ClaimsContext, 'leaving'> {
  const leaving = new Set(at.leaving);
  for (const driver of new Set(changed)) {
    const usable = [...at.drivers.values()].some((d) => d.driver === driver && at.connected.has(d.stamp));
    if (usable && leaving.delete(driver)) enqueue.stopChild(slicesOf(driver));
    if (usable || leaving.has(driver)) continue;
    leaving.add(driver);
    enqueue.spawnChild('slices', { id: slicesOf(driver), input: { driver, graceMs: SLICES_GRACE_MS } });
  }
  enqueue({ type: 'tellLeaving', params: { drivers: leaving } });
  return { leaving };
}

const whyRefused = ({ error }: ClaimsContext): string =>
  error === '' ? 'the records of ResourceClaims are being read' : `the records of ResourceClaims cannot be read: ${error}`;
type Refused = { context: ClaimsContext; event: AskEvent };
const refusal = { type: 'refuse', params: ({ context, event }: Refused) => ({ event, why: whyRefused(context) }) } as const;
/** While the records are not read: nothing that was read counts as prepared. */
const notYet = {
  'claims.prepare': { actions: [refusal] },
  'claims.release': { actions: [refusal] },
  'claims.doubt': {},
  'claims.drivers': {},
} as const;

export const claimsMachine = machine.createMachine({
  id: 'claims',
  meta: projecting<ClaimsContext>(({ claims, drivers, open, leaving, error, attempts }) => ({
    claims: names(claims.keys()),
    drivers: some(drivers.values(), ({ driver, endpoint }) => `${driver} at ${endpoint}`),
    open: some(open.values(), ({ what, left }) => `${what}: ${left} claims`),
    ...{ leaving: names(leaving), error, attempts },
  })),
  context: ({ input }) => ({
    ...{ claims: new Map(), open: new Map(), drivers: new Map(), connected: new Set() },
    ...{ ...input, lastId: 0, error: '', attempts: 0 },
  }),
  initial: 'loading',
  on: {
    'claims.prepare': { actions: ['begin'] },
    'claims.release': { actions: ['release'] },
    'claims.doubt': { actions: ['doubt'] },
    'claims.drivers': { actions: ['compareDrivers'] },
    'claim.answered': { actions: ['answered'] },
    'claim.idle': { actions: ['drop'] },
    'driver.changed': { actions: ['noteDriver'] },
    'slices.deleted': { actions: ['slicesGone'] },
  },
  states: {
    loading: {
      meta: { reason: 'Loading', message: 'reading which claims pods used before the daemon started' },
      on: notYet,
      invoke: {
        src: 'load',
        onDone: { target: 'serving', actions: ['noteSuccess', { type: 'restore', params: ({ event }) => event.output }, 'compareDrivers'] },
        onError: {
          target: 'unread',
          actions: [
            { type: 'noteFailure', params: ({ event }) => event },
            { type: 'sayFailed', params: ({ context: { error } }) => ({ error }) },
          ],
        },
      },
    },
    unread: {
      meta: { reason: 'RecordsUnreadable', message: (c: ClaimsContext) => `${whyRefused(c)}; pods with claims wait` },
      on: notYet,
      after: { wait: { target: 'loading' } },
    },
    serving: {
      meta: {
        reason: 'Serving',
        message: ({ claims, drivers }: ClaimsContext) => `${claims.size} claims, ${drivers.size} registered drivers`,
      },
      after: { [SWEEP_MS]: { target: 'serving', reenter: true, actions: ['sweep'] } },
    },
  },
});
