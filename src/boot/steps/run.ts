/** Steps that bring the node up, tell the init system, keep watch and wait for the end. */

import { realpathSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BuildInfo } from '../../actors/edge/metrics/nodeMetrics.ts';
import { Heartbeat } from '../../actors/supervision/watchdog.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { EXIT } from '../errors.ts';
import { shownFlags } from '../flags/shown.ts';
import { noteFile, openHandling } from '../process/handling.ts';
import { HeapCollector, ownHeap, releaseMemory } from '../process/memory.ts';
import { watchdogIntervalMs } from '../process/notify.ts';
import { STALL_LIMIT_MS, startWatchdog } from '../process/watchdog/watchdog.ts';
import { createInputRecorder, startAnew, wantedInputs } from '../replay/recorder.ts';
import type { RecordedNode } from '../replay/recordInputs.ts';
import { versionInfo } from '../version.ts';
import { type BootContext, need, type Outcome, type Step } from './context.ts';

/** An orderly stop that takes longer is abandoned; containers are not touched either way. */
const STOP_LIMIT_MS = 20_000;
/** The tree is asked this often per stall limit whether it still turns. */
const PULSES_PER_LIMIT = 10;
/** Below that, ordinary work would count as a stall. */
const STALL_LIMIT_MIN_MS = 500;
/** By then the node is up; what a burst right after it touches goes with the next release. */
const START_SETTLES_MS = 2_000;
/** What a burst of work touched meanwhile goes again, also in the middle of it: some 40 MiB, for some milliseconds each time. */
const RELEASE_EVERY_MS = 10_000;
/** How soon after a burst of work its garbage is collected. */
const HEAP_LOOK_EVERY_MS = 2_000;
/** A hundred pods that come at once need 30 MiB in half a second. */
const HEAP_BURST_LOOK_EVERY_MS = 250;

export const createDependencies: Step = {
  name: 'create dependencies',
  async run(ctx) {
    const ports = await ctx.wiring.createPorts(need(ctx, 'nodeConfig'), {
      ...{ log: need(ctx, 'log'), notify: need(ctx, 'notify'), watchdog: need(ctx, 'watchdog') },
    });
    const { handling } = ctx.state;
    const inputRecorder = createInputRecorder(ctx);
    ctx.state.ports = { ...ports, inputRecorder, ...(handling === undefined ? {} : { handling }) };
    return undefined;
  },
};

export const createTheNode: Step = {
  name: 'create the node',
  async run(ctx) {
    const config = need(ctx, 'nodeConfig');
    const heartbeat = need(ctx, 'heartbeat');
    const options: AskedOptions = {
      build: buildInfo(),
      flagz: () => shownFlags(config),
      page: () => ctx.state.page ?? { state: config.flags.inspect === '' ? 'off' : 'starting' },
    };
    const recorded = await recordingOf(ctx, options);
    if (recorded === null) {
      ctx.state.node = await ctx.wiring.createNode(config, need(ctx, 'ports'), { ...options, heartbeat });
      return undefined;
    }
    ctx.state.inputs = recorded;
    const node = await ctx.wiring.createNode(config, recorded.ports, { ...(recorded.options as AskedOptions), heartbeat });
    ctx.state.node = recorded.around(node);
    return undefined;
  },
};

type AskedOptions = Omit<Parameters<BootContext['wiring']['createNode']>[2], 'heartbeat'>;

/** The recording of the node's inputs. Null: nobody asked for one, or it cannot be made and the node runs without. */
async function recordingOf(ctx: BootContext, options: AskedOptions): Promise<RecordedNode | null> {
  const wanted = await wantedInputs(need(ctx, 'loaded'));
  if (wanted === null) return null;
  try {
    const { recordInputs } = await import('../replay/recordInputs.ts');
    const full = () => startAnew(ctx, 'the recording of inputs is full: another one begins');
    return await recordInputs(need(ctx, 'nodeConfig'), need(ctx, 'ports'), { options, ...wanted, full });
  } catch (error) {
    need(ctx, 'log').error({ folder: wanted.folder, err: messageOf(error) }, 'inputs are not recorded');
    return null;
  }
}

function buildInfo(): BuildInfo {
  const info = versionInfo();
  const text = (key: string): string => info[key] ?? '';
  return {
    major: text('major'),
    minor: text('minor'),
    gitVersion: text('gitVersion'),
    gitCommit: '',
    buildDate: '',
    platform: text('platform'),
    runtime: `Node.js ${process.version}`,
  };
}

/** Servers and healthz are children of the tree: they listen once this has happened. */
export const startTheNode: Step = {
  name: 'start the node',
  async run(ctx) {
    const node = need(ctx, 'node');
    const started = node.start().then(
      () => 'started' as const,
      (error: unknown) => ({ failed: error }),
    );
    const result = await Promise.race([started, ended(ctx).then(() => 'ended' as const)]);
    if (result === 'started') return undefined;
    if (result === 'ended') return stopTheNode(ctx);
    need(ctx, 'log').error({ err: messageOf(result.failed) }, `the tree did not start; exiting with code ${EXIT.internal}`);
    dumpRecorder(ctx);
    await Promise.all([ctx.state.recording?.abandon(), ctx.state.tracing?.end(), ctx.state.inputs?.end('the daemon ended')]);
    return { exit: EXIT.internal };
  },
};

/** Sent once the servers were started; it does not mean that the runtime answers (trap 17). */
export const notifyReady: Step = {
  name: 'tell the init system that we are ready',
  run(ctx) {
    notify(ctx, 'READY=1');
    return undefined;
  },
};

function notify(ctx: BootContext, state: string): void {
  try {
    need(ctx, 'notify')(state);
  } catch (error) {
    need(ctx, 'log').warn({ err: messageOf(error), state }, 'the init system could not be told');
  }
}

/** Before anything that takes time with what others wrote: a start that blocks ends like a daemon that blocks. */
export const keepWatch: Step = {
  name: 'keep watch over the main thread',
  run(ctx) {
    const heartbeat = new Heartbeat();
    ctx.state.heartbeat = heartbeat;
    const limitMs = stallLimitMs(ctx.env);
    every(ctx, limitMs / PULSES_PER_LIMIT, () => heartbeat.pulse(performance.now()));
    const log = need(ctx, 'log');
    const watchdog = startWatchdog({
      shared: heartbeat.shared,
      limitMs,
      noteFile: noteFile(need(ctx, 'loaded').flags.rootDir),
      onFailure: (error) => log.error({ err: messageOf(error) }, 'the watchdog thread, which serves the health port too, failed'),
    });
    ctx.state.watchdog = watchdog;
    ctx.cleanup.use(watchdog);
    return undefined;
  },
};

/** Shorter for tests of the real process; never longer. */
function stallLimitMs(env: BootContext['env']): number {
  const asked = Number(env.ACTORLET_STALL_LIMIT_MS ?? '');
  return asked >= STALL_LIMIT_MIN_MS && asked < STALL_LIMIT_MS ? asked : STALL_LIMIT_MS;
}

/** What an earlier process died over counts from here on, and what this one handles is noted. */
export const noteWhatIsHandled: Step = {
  name: 'note what is being handled',
  run(ctx) {
    const log = need(ctx, 'log');
    const { rootDir } = need(ctx, 'loaded').flags;
    try {
      ctx.state.handling = openHandling({ rootDir, libc: ctx.libc(), wallMs: () => Date.now(), log });
    } catch (error) {
      log.warn({ err: messageOf(error) }, 'what is being handled cannot be noted; nothing that ends this process will be set aside');
    }
    return undefined;
  },
};

/** systemd's watchdog, where it asks for one, beside our own: it counts from READY=1 on. */
export const feedSystemd: Step = {
  name: "feed systemd's watchdog",
  run(ctx) {
    const interval = need(ctx, 'gates').enabled('SystemdWatchdog') ? watchdogIntervalMs(ctx.env, ctx.io.pid) : undefined;
    if (interval !== undefined) every(ctx, interval, () => notify(ctx, 'WATCHDOG=1'));
    return undefined;
  },
};

/** Out of descriptors for a moment is no reason to end. */
function guarded(ctx: BootContext, fn: () => void): () => void {
  const log = need(ctx, 'log');
  let told = '';
  return () => {
    try {
      fn();
    } catch (error) {
      const why = messageOf(error);
      if (why !== told) log.warn({ err: why }, 'a chore of the daemon failed; it is tried again at its next time');
      told = why;
    }
  };
}

function every(ctx: BootContext, ms: number, fn: () => void): void {
  // Not unref'd: this is also what keeps the event loop alive while every actor waits.
  const timer = setInterval(guarded(ctx, fn), ms);
  ctx.cleanup.defer(() => clearInterval(timer));
}

/** Once the start is over, and then now and again; see `process/memory.ts`. `inBursts`: then, too. */
export const giveBackPages = ({ grownBytes, inBursts = true }: { grownBytes?: number; inBursts?: boolean } = {}): Step => ({
  name: 'release what only the start needed',
  run(ctx) {
    const program = realpathSync(process.execPath);
    const settle = guarded(ctx, () => {
      // Written once per build, and before a crash that may come: the next start reads it.
      flushCompileCache();
      releaseMemory(program);
    });
    const first = setTimeout(settle, START_SETTLES_MS);
    first.unref();
    ctx.cleanup.defer(() => clearTimeout(first));
    every(ctx, RELEASE_EVERY_MS, () => releaseMemory(program));
    const { clock } = need(ctx, 'ports');
    const heap = ownHeap(() => clock.monoMs());
    if (heap !== null) {
      const collector = new HeapCollector(heap, grownBytes);
      // The C library releases collected memory to the system, not by V8 alone.
      every(ctx, HEAP_LOOK_EVERY_MS, () => {
        if (collector.look()) releaseMemory(program);
      });
      if (inBursts)
        every(ctx, HEAP_BURST_LOOK_EVERY_MS, () => {
          if (collector.lookInBurst()) releaseMemory(program);
        });
    }
    return undefined;
  },
});

export const serve: Step = {
  name: 'serve until told to end',
  async run(ctx) {
    const failed = need(ctx, 'node').tree.failed;
    const result = await Promise.race([failed, ended(ctx)]);
    if (result === undefined) return stopTheNode(ctx);
    need(ctx, 'log').error({ err: messageOf(result) }, `the tree failed; exiting with code ${EXIT.internal}, containers are left running`);
    dumpRecorder(ctx);
    await Promise.all([ctx.state.recording?.abandon(), ctx.state.tracing?.end(), ctx.state.inputs?.end('the daemon ended')]);
    return { exit: EXIT.internal };
  },
};

export async function stopTheNode(ctx: BootContext): Promise<Outcome> {
  const log = need(ctx, 'log');
  const limit = new AbortController();
  const late = sleep(STOP_LIMIT_MS, 'late' as const, { signal: limit.signal }).catch(() => 'cancelled' as const);
  const how = await Promise.race([need(ctx, 'node').stop(), late]);
  limit.abort();
  if (how === 'late') log.warn({}, `the tree did not stop within ${STOP_LIMIT_MS} ms; it is abandoned`);
  await Promise.all([ctx.state.recording?.end(), ctx.state.tracing?.end(), ctx.state.inputs?.end('the daemon ended')]);
  log.info({}, 'stopped; containers are left running');
  return { exit: EXIT.ok };
}

function dumpRecorder(ctx: BootContext): void {
  for (const line of need(ctx, 'node').recorder()) ctx.io.stderr.write(`${line}\n`);
}

export function ended(ctx: BootContext): Promise<undefined> {
  const { signal } = ctx.ending;
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }));
}
