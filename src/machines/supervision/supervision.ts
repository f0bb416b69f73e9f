/**
 * The decisions of a supervisor over a few children in a fixed order: one total function from where it is and what happened
 * to where it is next and what is to be done. The statechart around it is `supervisorMachine.ts`.
 */
import {
  addCrashes,
  type ExitReason,
  type Intensity,
  judgeExit,
  NO_HISTORY,
  type RestartHistory,
  type RestartRules,
  type Strategy,
} from './restartPolicy.ts';

export interface ChildRules extends RestartRules {
  id: string;
}
type ChildStatus = 'down' | 'starting' | 'up' | 'stopping' | 'ended';

export interface ChildRecord {
  id: string;
  status: ChildStatus;
  incarnation: number;
  history: RestartHistory;
  /** Waits for those to its left to become ready before it starts. Cleared when it is ready or ended. */
  sequenced: boolean;
  /** Must go down before its group starts again. */
  cycle: boolean;
  /** Timer it waits for while down. */
  blockedBy: number | null;
  lastError: string | null;
}

export interface SupervisorInput {
  strategy: Strategy;
  intensity: Intensity;
  escalate: 'parent' | { parkMs: number };
  rules: readonly ChildRules[];
  /** Incarnations used up so far, by child, so that none is reused. */
  incarnations: Readonly<Record<string, number>>;
}
export interface SupervisorContext {
  strategy: Strategy;
  intensity: Intensity;
  escalate: 'parent' | { parkMs: number };
  rules: readonly ChildRules[];
  children: readonly ChildRecord[];
  /** Counted crashes of all children in the window, monotonic ms. */
  crashes: readonly number[];
  goal: 'run' | 'stop' | 'fail' | 'park';
  /** Why it gave up. */
  failure: string | null;
  nextToken: number;
}

export type SupervisorEvent =
  | { type: 'sup.stop' }
  | { type: 'child.started'; id: string; incarnation: number; atMs: number }
  | { type: 'child.ready'; id: string; incarnation: number }
  | { type: 'child.exited'; id: string; incarnation: number; reason: ExitReason; atMs: number; random: number; counts: boolean }
  /** Crashes that were held against an item count after all. */
  | { type: 'child.counted'; id: string; atMs: readonly number[] }
  | { type: 'child.due'; token: number };

export type SupervisorEffect =
  | { type: 'start'; id: string; incarnation: number }
  | { type: 'stop'; id: string; incarnation: number }
  /** The child will not be started again by itself. */
  | { type: 'ended'; id: string }
  | { type: 'restarting'; id: string; delayMs: number; inWindow: number; reason: ExitReason }
  | { type: 'escalated'; error: string };
/** Effect of the statechart itself: a delayed `child.due`. */
type TimerEffect = { type: 'timer'; token: number; delayMs: number };

interface Step {
  context: SupervisorContext;
  effects: (SupervisorEffect | TimerEffect)[];
}

export function initialSupervisor(input: SupervisorInput): SupervisorContext {
  return {
    strategy: input.strategy,
    intensity: input.intensity,
    escalate: input.escalate,
    rules: input.rules,
    children: input.rules.map((r) => freshChild(r.id, input.incarnations[r.id] ?? 0)),
    crashes: [],
    goal: 'run',
    failure: null,
    nextToken: 1,
  };
}
function freshChild(id: string, incarnation: number): ChildRecord {
  return {
    id,
    status: 'down',
    incarnation,
    history: NO_HISTORY,
    sequenced: true,
    cycle: false,
    blockedBy: null,
    lastError: null,
  };
}

const isLive = (c: ChildRecord): boolean => c.status === 'starting' || c.status === 'up';
export const allDown = (ctx: SupervisorContext): boolean => ctx.children.every((c) => c.status === 'down' || c.status === 'ended');
/** Every child is up or ended. */
export const isSettled = (ctx: SupervisorContext): boolean =>
  ctx.children.every((c) => !c.cycle && (c.status === 'up' || c.status === 'ended'));

/** One decision: the next context and what is to be done. Total; unknown and stale events change nothing. */
export function supervise(ctx: SupervisorContext, event: SupervisorEvent | { type: 'sup.begin' | 'sup.resume' }): Step {
  const step = reduce(ctx, event);
  return reconcile(step);
}

function reduce(ctx: SupervisorContext, event: SupervisorEvent | { type: 'sup.begin' | 'sup.resume' }): Step {
  switch (event.type) {
    case 'sup.begin':
      return { context: ctx, effects: [] };
    case 'sup.stop':
      return { context: leave(ctx, 'stop', null), effects: [] };
    case 'sup.resume':
      return resume(ctx);
    case 'child.started':
      return {
        context: patch(ctx, event, (c) => ({ ...c, history: { ...c.history, startedAtMs: event.atMs } })),
        effects: [],
      };
    case 'child.ready':
      return {
        context: patch(ctx, event, (c) => (c.status === 'starting' ? { ...c, status: 'up', sequenced: false } : c)),
        effects: [],
      };
    case 'child.due':
      return {
        context: {
          ...ctx,
          children: ctx.children.map((c) => (c.blockedBy === event.token ? { ...c, blockedBy: null } : c)),
        },
        effects: [],
      };
    case 'child.counted':
      return counted(ctx, event);
    case 'child.exited':
      return exited(ctx, event);
  }
}

function patch(ctx: SupervisorContext, who: { id: string; incarnation: number }, fn: (c: ChildRecord) => ChildRecord): SupervisorContext {
  return { ...ctx, children: ctx.children.map((c) => (c.id === who.id && c.incarnation === who.incarnation ? fn(c) : c)) };
}

/** From now on children only go down. A stop overrides a failure under way. */
function leave(ctx: SupervisorContext, goal: 'stop' | 'fail' | 'park', failure: string | null): SupervisorContext {
  if (ctx.goal !== 'run' && goal !== 'stop') return ctx;
  return {
    ...ctx,
    goal,
    failure: failure ?? ctx.failure,
    children: ctx.children.map((c) => ({ ...c, blockedBy: null, cycle: false })),
  };
}

function giveUp(ctx: SupervisorContext, failure: string): Step {
  if (ctx.goal !== 'run') return { context: ctx, effects: [] };
  return {
    context: leave(ctx, ctx.escalate === 'parent' ? 'fail' : 'park', failure),
    effects: [{ type: 'escalated', error: failure }],
  };
}

function resume(ctx: SupervisorContext): Step {
  const effects: SupervisorEffect[] = [];
  const children = ctx.children.map((c, i): ChildRecord => {
    if (ctx.rules[i]?.restart !== 'temporary' || c.incarnation === 0) return { ...freshChild(c.id, c.incarnation), lastError: c.lastError };
    if (c.status !== 'ended') effects.push({ type: 'ended', id: c.id });
    return { ...c, status: 'ended', sequenced: false };
  });
  return { context: { ...ctx, goal: 'run', failure: null, crashes: [], children }, effects };
}

function counted(ctx: SupervisorContext, event: { id: string; atMs: readonly number[] }): Step {
  const i = ctx.children.findIndex((c) => c.id === event.id);
  const child = ctx.children[i];
  const rules = ctx.rules[i];
  if (child === undefined || rules === undefined || ctx.goal !== 'run') return { context: ctx, effects: [] };
  const own = addCrashes(child.history.crashes, event.atMs, rules.intensity);
  const all = addCrashes(ctx.crashes, event.atMs, ctx.intensity);
  const context: SupervisorContext = {
    ...ctx,
    crashes: all.crashes,
    children: ctx.children.map((c, j) => (j === i ? { ...c, history: { ...c.history, crashes: own.crashes } } : c)),
  };
  if (own.over || all.over) return giveUp(context, overText(own.over ? rules : null, context, child.lastError));
  return { context, effects: [] };
}

function overText(child: ChildRules | null, ctx: SupervisorContext, last: string | null): string {
  const what =
    child === null
      ? `its children crashed more than ${ctx.intensity.max} times in ${ctx.intensity.periodMs} ms`
      : `child ${child.id} crashed more than ${child.intensity.max} times in ${child.intensity.periodMs} ms`;
  return last === null ? what : `${what}; last: ${last}`;
}

/** One line for a log or a state dump. */
export function describeExit(reason: ExitReason): string {
  switch (reason.kind) {
    case 'normal':
      return 'ended normally';
    case 'shutdown':
      return 'was shut down';
    case 'killed':
      return `was killed by ${reason.by}`;
    case 'error':
      return reason.error.message === '' ? reason.error.name : reason.error.message;
  }
}

function exited(ctx: SupervisorContext, event: SupervisorEvent & { type: 'child.exited' }): Step {
  const i = ctx.children.findIndex((c) => c.id === event.id);
  const child = ctx.children[i];
  const rules = ctx.rules[i];
  const known = child !== undefined && rules !== undefined && child.incarnation === event.incarnation;
  if (!known || child.status === 'down' || child.status === 'ended') return { context: ctx, effects: [] };

  const set = (c: ChildRecord, more?: Partial<SupervisorContext>): SupervisorContext => ({
    ...ctx,
    ...more,
    children: ctx.children.map((old, j) => (j === i ? c : old)),
  });
  if (ctx.goal !== 'run') return { context: set({ ...child, status: 'down' }), effects: [] };
  if (child.status === 'stopping' || child.cycle) {
    if (rules.restart === 'temporary') {
      return {
        context: set({ ...child, status: 'ended', cycle: false, sequenced: false }),
        effects: [{ type: 'ended', id: child.id }],
      };
    }
    return { context: set({ ...child, status: 'down', cycle: false }), effects: [] };
  }

  const verdict = judgeExit(rules, child.history, event);
  const lastError = event.reason.kind === 'error' || event.reason.kind === 'killed' ? describeExit(event.reason) : child.lastError;
  const gone: ChildRecord = { ...child, status: 'down', history: verdict.history, lastError };
  switch (verdict.next) {
    case 'end':
      return {
        context: set({ ...gone, status: 'ended', sequenced: false }),
        effects: [{ type: 'ended', id: child.id }],
      };
    case 'give-up':
      return giveUp(set(gone), overText(rules, ctx, describeExit(event.reason)));
    case 'restart': {
      const window = addCrashes(ctx.crashes, verdict.counted ? [event.atMs] : [], ctx.intensity);
      const context = set(gone, { crashes: window.crashes });
      if (verdict.counted && window.over) return giveUp(context, overText(null, ctx, `${child.id}: ${describeExit(event.reason)}`));
      return restart(context, i, { delayMs: verdict.delayMs, reason: event.reason, inWindow: verdict.history.crashes.length });
    }
  }
}

function restart(ctx: SupervisorContext, i: number, how: { delayMs: number; reason: ExitReason; inWindow: number }): Step {
  const token = ctx.nextToken;
  const inGroup = (j: number): boolean => ctx.strategy === 'rest_for_one' && j > i;
  const effects: Step['effects'] = [{ type: 'timer', token, delayMs: how.delayMs }];
  const children = ctx.children.map((c, j): ChildRecord => {
    if (j === i) return { ...c, blockedBy: token, sequenced: ctx.strategy === 'one_for_one' ? c.sequenced : true };
    if (!inGroup(j)) return c;
    const temporary = ctx.rules[j]?.restart === 'temporary';
    // A child that has not been started yet is only made to wait; a temporary one that lived or ended never comes back.
    if (temporary && c.status === 'ended') return c;
    const waiting = { ...c, blockedBy: token, sequenced: true };
    if (c.status === 'ended') return { ...waiting, status: 'down' };
    if (c.status === 'down' && temporary && c.incarnation > 0) {
      effects.push({ type: 'ended', id: c.id });
      return { ...c, status: 'ended', sequenced: false, blockedBy: null };
    }
    if (c.status === 'down') return waiting;
    return { ...waiting, cycle: true };
  });
  const child = ctx.children[i];
  if (child !== undefined) {
    effects.push({ type: 'restarting', id: child.id, delayMs: how.delayMs, inWindow: how.inWindow, reason: how.reason });
  }
  return { context: { ...ctx, children, nextToken: token + 1 }, effects };
}

/** Brings children towards the goal: one orderly stop at a time from the right, or every start that is allowed now. */
function reconcile(step: Step): Step {
  const { context: ctx, effects } = step;
  const mustStop = (c: ChildRecord): boolean => isLive(c) && (ctx.goal !== 'run' || c.cycle);
  if (ctx.goal !== 'run' || ctx.children.some((c) => c.cycle)) {
    if (ctx.children.some((c) => c.status === 'stopping')) return step;
    const target = ctx.children.findLast(mustStop);
    if (target === undefined) return step;
    return {
      context: patch(ctx, target, (c) => ({ ...c, status: 'stopping' })),
      effects: [...effects, { type: 'stop', id: target.id, incarnation: target.incarnation }],
    };
  }
  let leftPending = false;
  const starts: SupervisorEffect[] = [];
  const children = ctx.children.map((c): ChildRecord => {
    const held = c.sequenced && leftPending;
    if (c.sequenced) leftPending = true;
    if (c.status !== 'down' || c.blockedBy !== null || held) return c;
    const started: ChildRecord = { ...c, status: 'starting', incarnation: c.incarnation + 1 };
    starts.push({ type: 'start', id: c.id, incarnation: started.incarnation });
    return started;
  });
  return starts.length === 0 ? step : { context: { ...ctx, children }, effects: [...effects, ...starts] };
}
