/**
 * Writes one pod's status, mirror and final deletion to the API: decide, one request, decide again. A node has a writer for each of
 * thousands of pods: one machine serves them all, and what differs between them is input.
 */

import { assign, not } from 'xstate';
import { isOlder, isRefusal, type KubeFailure } from '../kube/request.ts';
import type { Pod } from '../kube/types.ts';
import type { ProbeLedger } from '../pod/probes/probes.ts';
import type { PodsView } from '../pods/manager/messages.ts';
import type { StatusEntry } from '../pods/status/messages.ts';
import { retryDelayMs } from '../supervision/restartPolicy.ts';
import type { Moment } from '../xstate/facts.ts';
import { failureOf, names, podName, projecting } from '../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../xstate/provide.ts';
import { setupWith } from '../xstate/setup.ts';
import type { ApiPodsView, NodeView, PodWriterEvent } from './messages.ts';
import type { Wait } from './passing.ts';
import { decideWrite, type WriterPlan, type Written } from './podWriterDecide.ts';
import { leftOutOf, ownPart } from './statusPatch.ts';

const WRITE_RETRY_MS = 500;
const WRITE_RETRY_MAX_MS = 10_000;
/** The server will not have it: asked again rarely, and when there is something new to say. */
const REFUSED_RETRY_MS = 60_000;
const WAIT_MS = 1_000;
const HOLD_MS: Readonly<Record<Wait, number>> = {
  /** For what will be overtaken: longer than a container's start or the removal of a sandbox takes while many want one. */
  long: 5_000,
  /** For a pod of which nothing runs any more: its last word is under way, and endpoints still name it. */
  brief: 300,
};

export type WriteOutcome =
  /** `object`: as the server has it now; null: it is gone. */
  | { ok: true; object: Pod | null }
  /** `gone`: there is no object of that UID any more. `object`: as it was read after a conflict. */
  | { ok: false; failure: KubeFailure; gone: boolean; object?: Pod };

export interface PodWriterInput {
  uid: string;
  /** What the writer kept that slept before this one. */
  kept?: KeptWriter;
}
/** What comes with each event. */
export interface PodWriterFacts extends Moment {
  readonly pods: PodsView | undefined;
  readonly entry: StatusEntry | undefined;
  readonly api: ApiPodsView | undefined;
  readonly node: NodeView | undefined;
  readonly probes: ProbeLedger | undefined;
}
/** What the log tells of a failure: a new one loudly, repeats quietly. */
export type PodWriterFailure = Pick<PodWriterContext, 'plan' | 'failure' | 'failures'>;
export interface PodWriterContext extends Pick<PodWriterInput, 'uid'> {
  /** It slept, and has said all that there was to say. */
  woken: boolean;
  plan: WriterPlan;
  written: Written | null;
  /** The newest version. Its spec holds only what tells one definition from another. */
  latest: Pod | null;
  last: Pod | null;
  gone: ReadonlySet<string>;
  /** UID of `latest` once the watch has shown it: if it shows it no more, it is gone. */
  shown: string;
  /** What would be overtaken has waited its time: it is said now. */
  held: boolean;
  failures: number;
  failure: KubeFailure | null;
}

/** What a writer keeps while it sleeps. */
export type KeptWriter = Pick<PodWriterContext, 'written' | 'latest' | 'last' | 'gone' | 'shown'>;

/** Null: it has something to say, or waits to say it. What the watch has shown meanwhile need not be kept. */
export function keptOfWriter(snapshot: unknown, seen: PodWriterFacts): KeptWriter | null {
  const { value, context } = snapshot as { value: unknown; context: PodWriterContext };
  if (value !== 'resting') return null;
  const { plan, latest, last, gone, shown } = { ...context, ...decided(context, seen) };
  if (plan.kind !== 'rest') return null;
  const written = isPlain(context, seen) ? null : context.written;
  return { written, latest, last, gone: gone.size === 0 ? NONE : gone, shown };
}
/** A writer that remembers no write would have nothing to say either: the object shows all, and the server has left nothing out. */
function isPlain(context: PodWriterContext, seen: PodWriterFacts): boolean {
  const { written } = context;
  if (written === null || Object.keys(written.leftOut).length > 0) return false;
  return decided({ ...context, written: null, held: true }, seen).plan?.kind === 'rest';
}
/** Thousands of writers share it. */
const NONE: ReadonlySet<string> = new Set();

export interface ActInput {
  plan: WriterPlan;
}

function known(uid: string, { pods, entry, api, node, probes, wallMs }: PodWriterFacts) {
  const records = pods?.records;
  return { record: records?.get(uid), records, sourcesReady: pods?.sourcesReady === true, entry, api, node, probes, nowWallMs: wallMs };
}

function decided(context: PodWriterContext, seen: PodWriterFacts): Partial<PodWriterContext> {
  const facts = known(context.uid, seen);
  const { record } = facts;
  const last = record !== undefined && (record.source === 'file' || record.source === 'http') ? record.pod : context.last;
  const { uid, written, gone, held } = context;
  const newest = context.latest?.metadata.uid ?? '';
  const isShown = facts.api?.byUid.has(newest) === true;
  // What came and went again while the watch was silent is never shown: what is shown is newer than our own write, and without it.
  const at = facts.api?.resourceVersion ?? '';
  const own = context.latest?.metadata.resourceVersion ?? '';
  const passed = own !== '' && (own === at || isOlder(own, at));
  // Once the watch shows it, or something newer, there is nothing in it that is worth keeping.
  const overtaken = isShown && !isOlder(facts.api?.byUid.get(newest)?.metadata.resourceVersion ?? '', own);
  const latest = overtaken || (!isShown && newest !== '' && (newest === context.shown || passed)) ? null : context.latest;
  // What the watch has taken away need not be remembered as gone.
  const still = gone.size === 0 ? gone : new Set([...gone].filter((g) => facts.api?.byUid.has(g) === true));
  const conflicts = isConflict(context.failure) ? context.failures : 0;
  const plan = decideWrite({ ...facts, uid, written, latest, gone: still, last, held, conflicts });
  return {
    plan,
    last,
    latest,
    gone: still,
    // Until it was said.
    held: held && plan.kind !== 'rest',
    shown: isShown ? newest : context.shown,
  };
}

/** The object is another version by now, which was read: it is decided anew. */
function isConflict(failure: KubeFailure | null): boolean {
  return failure?.code === 409 && failure.reason === 'Conflict';
}

/** The server will not have it. That an object is not there, which it shows all the same, it will say for a moment only. */
function isRefused({ failure, plan }: PodWriterContext): boolean {
  return failure !== null && isRefusal(failure) && !(failure.code === 404 && 'target' in plan);
}

/** Thousands of pods are in memory once, as the watch showed them. */
function outlineOf({ spec, ...rest }: Pod): Pod {
  return { ...rest, spec: { containers: spec.containers.map(({ name, image }) => ({ name, ...(image === undefined ? {} : { image }) })) } };
}

/** What a request that succeeded, or came too late, leaves known. */
function settled(context: PodWriterContext, outcome: WriteOutcome): Partial<PodWriterContext> {
  const { plan } = context;
  const calm = { failures: 0, failure: null };
  const without = (uid: string): Partial<PodWriterContext> => ({
    gone: new Set([...context.gone, uid]),
    latest: context.latest?.metadata.uid === uid ? null : context.latest,
    written: context.written?.apiUid === uid ? null : context.written,
  });
  if (!outcome.ok) {
    if (outcome.gone && 'target' in plan) return { ...calm, ...without(plan.target.metadata.uid) };
    return {
      failures: context.failures + 1,
      failure: outcome.failure,
      ...(outcome.object === undefined ? {} : { latest: outlineOf(outcome.object) }),
    };
  }
  switch (plan.kind) {
    case 'patch': {
      const object = outcome.object;
      if (object === null) return calm;
      const { version } = plan;
      const before = context.written;
      const apiUid = object.metadata.uid;
      const sent = plan.body.status;
      const same = before?.apiUid === apiUid;
      const tries = same && before.version === version ? before.tries + 1 : 1;
      const leftOut = leftOutOf(object.status, sent, same ? before.leftOut : {});
      return {
        ...calm,
        latest: outlineOf(object),
        held: false,
        written: { apiUid, version, own: ownPart(object.status), sent, leftOut, tries },
      };
    }
    case 'createMirror':
      return { ...calm, latest: outcome.object === null ? null : outlineOf(outcome.object) };
    case 'delete':
    case 'deleteMirror':
      return outcome.object === null || plan.kind === 'deleteMirror' ? { ...calm, ...without(plan.target.metadata.uid) } : calm;
    default:
      return calm;
  }
}

const waitOf = ({ plan }: Partial<PodWriterContext>): Wait | undefined => (plan?.kind === 'hold' ? plan.wait : undefined);

const complain = {
  type: 'complain',
  params: ({ context: { plan, failure, failures } }: { context: PodWriterContext }) => ({ plan, failure, failures }),
} as const;

const { setup, facts } = setupWith<PodWriterFacts>();
export const podWriterMachine = setup({
  types: { context: {} as PodWriterContext, input: {} as PodWriterInput, events: {} as PodWriterEvent },
  actors: { act: unprovided<WriteOutcome, ActInput>() },
  actions: {
    decide: assign(({ context }) => decided(context, facts())),
    settle: assign(({ context }, p: { outcome: WriteOutcome }) => settled(context, p.outcome)),
    complain: unprovidedAction<PodWriterFailure>(),
  },
  guards: {
    woken: ({ context }) => context.woken,
    ends: ({ context }) => context.plan.kind === 'end',
    rests: ({ context }) => context.plan.kind === 'rest',
    waits: ({ context }) => context.plan.kind === 'wait',
    holds: ({ context }) => context.plan.kind === 'hold',
    turnsBrief: ({ context }) => waitOf(context) === 'long' && waitOf(decided(context, facts())) === 'brief',
    failed: ({ context }) => context.failures > 0,
    urgent: ({ event }) => event.urgent === true,
    refused: ({ context }) => isRefused(context),
  },
  delays: {
    wait: WAIT_MS,
    hold: ({ context }) => HOLD_MS[waitOf(context) ?? 'brief'],
    retry: ({ context }) => {
      const { failure, failures } = context;
      if (isConflict(failure) && failures === 1) return 0;
      const base = isRefused(context) ? REFUSED_RETRY_MS : retryDelayMs({ minMs: WRITE_RETRY_MS, maxMs: WRITE_RETRY_MAX_MS }, failures - 1);
      return Math.max(base * (1 + 0.5 * facts().random), failure?.retryAfterMs ?? 0);
    },
  },
}).createMachine({
  id: 'podWriter',
  meta: projecting<PodWriterContext>(({ uid, plan, written, latest, gone, held, failures, failure }) => ({
    ...{ uid, plan: plan.kind, pod: latest === null ? null : podName(latest), held, failures },
    written: written === null ? null : { uid: written.apiUid, version: written.version, tries: written.tries },
    gone: names(gone),
    failure: failureOf(failure),
  })),
  options: { maxIterations: 1000 },
  context: ({ input: { uid, kept } }) => ({
    uid,
    plan: { kind: 'rest' },
    ...(kept ?? { written: null, latest: null, last: null, gone: NONE, shown: '' }),
    woken: kept !== undefined,
    held: false,
    failures: 0,
    failure: null,
  }),
  initial: 'beginning',
  states: {
    beginning: {
      always: [{ guard: 'woken', target: 'resting' }, { target: 'deciding' }],
    },
    deciding: {
      entry: ['decide'],
      always: [
        { guard: 'ends', target: 'ended' },
        { guard: 'rests', target: 'resting' },
        { guard: 'waits', target: 'waiting' },
        { guard: 'holds', target: 'holding' },
        { target: 'acting' },
      ],
    },
    resting: {
      meta: { reason: 'UpToDate', message: 'the API server has what there is to say' },
      on: { 'pod.write': { target: 'deciding' } },
    },
    waiting: {
      meta: { reason: 'Waiting', message: ({ plan }: PodWriterContext) => (plan.kind === 'wait' ? plan.why : '') },
      after: { wait: { target: 'deciding' } },
      on: { 'pod.write': { target: 'deciding' } },
    },
    /** Looked at anew with every word about the pod; the time is that of the first, or of the first that says it will be brief. */
    holding: {
      meta: { reason: 'Holding', message: ({ plan }: PodWriterContext) => (plan.kind === 'hold' ? plan.why : '') },
      always: { guard: not('holds'), target: 'deciding' },
      after: { hold: { target: 'deciding', actions: [assign({ held: true })] } },
      on: {
        'pod.write': [{ guard: 'turnsBrief', target: 'holding', reenter: true, actions: ['decide'] }, { actions: ['decide'] }],
      },
    },
    acting: {
      meta: { reason: 'Writing', message: ({ plan }: PodWriterContext) => `request under way: ${plan.kind}` },
      invoke: {
        src: 'act',
        input: ({ context: { plan } }) => ({ plan }),
        onDone: { target: 'judging', actions: [{ type: 'settle', params: ({ event }) => ({ outcome: event.output }) }] },
      },
    },
    judging: {
      always: [{ guard: 'failed', target: 'backingOff', actions: [complain] }, { target: 'deciding' }],
    },
    backingOff: {
      meta: {
        reason: 'WriteFailed',
        message: ({ plan, failure }: PodWriterContext) => `${plan.kind}: ${failure?.message ?? ''}; it is tried again`,
      },
      after: { retry: { target: 'deciding' } },
      on: {
        'pod.write': [
          { guard: 'urgent', target: 'deciding' },
          { guard: 'refused', target: 'deciding' },
        ],
      },
    },
    ended: { type: 'final', meta: { reason: 'Ended', message: '' } },
  },
});
