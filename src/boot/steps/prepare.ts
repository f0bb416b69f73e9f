/** Steps that prepare the process: log, signals, lock, privileges, limits, directories. */

import { mkdir } from 'node:fs/promises';
import { NotRegular } from '@actorlet/process/src/regularFile.ts';
import { toV1beta1 } from '../../machines/config/v1beta1.ts';
import { codeOf, messageOf } from '../../machines/text/errors.ts';
import { MASKED, shownUrl } from '../../machines/text/shownUrl.ts';
import { EXIT, StartError } from '../errors.ts';
import { createLogger } from '../logging.ts';
import { handleHarmlessSignals } from '../process/harmlessSignals.ts';
import { acquireLock, lockAtOnce } from '../process/lock.ts';
import { createNotify } from '../process/notify.ts';
import { setOomScore } from '../process/oomScore.ts';
import { GIT_VERSION } from '../version.ts';
import { type BootContext, need, type Step } from './context.ts';
import { rootDirProblem } from './host/hostChecks.ts';

const FLAGS_VERBOSITY = 1;
const CONFIG_VERBOSITY = 5;
const ROOT_DIR_MODE = 0o750;
/** Below the root directory: what is not the kubelet's. */
const OWN_FOLDER = 'actorlet';
const LOCK_FILE = 'daemon.lock';
/** Flags whose values are not logged. */
const SECRET_FLAGS: readonly string[] = ['manifest-url-header', 'storage-driver-password'];

export const startLog: Step = {
  name: 'start the log',
  run(ctx) {
    const { config, files } = need(ctx, 'loaded');
    const log = createLogger({ ...config.logging, pid: ctx.io.pid }, { write: (line) => void ctx.io.stderr.write(line) });
    ctx.state.log = log;
    log.info({ version: GIT_VERSION, runtime: `node-${process.version}`, config: files }, 'actorlet starts');
    for (const remark of ctx.remarks) log[remark.level]({}, remark.text);
    if (config.logging.verbosity >= FLAGS_VERBOSITY) {
      for (const { spec, value } of need(ctx, 'parsed').given.values()) {
        const shown = typeof value === 'string' ? shownUrl(value) : value;
        log.info({ value: SECRET_FLAGS.includes(spec.name) ? MASKED : shown }, `FLAG: --${spec.name}`);
      }
    }
    if (config.logging.verbosity >= CONFIG_VERBOSITY) log.info({ configuration: toV1beta1(config) }, 'the whole configuration');
    return undefined;
  },
};

/** First SIGINT or SIGTERM: an orderly end, exit code 0. Second: exit code 1 at once. Other signals have no effect. */
export const handleSignals: Step = {
  name: 'handle signals',
  run(ctx) {
    const log = need(ctx, 'log');
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      const onSignal = (): void => {
        if (ctx.ending.signal.aborted) {
          log.error({}, `${name} again: exiting at once`);
          ctx.io.exit(EXIT.fatal);
          return;
        }
        log.info({}, `${name}: stopping; containers are left running`);
        ctx.ending.abort(new Error(name));
      };
      ctx.cleanup.use(ctx.io.on(name, onSignal));
    }
    ctx.cleanup.use(handleHarmlessSignals({ io: ctx.io, log, libc: () => ctx.libc(), monoMs: () => performance.now() }));
    return undefined;
  },
};

/** What nothing in the tree caught: the flight recorder is printed and the init system restarts us. */
export const handleCrashes: Step = {
  name: 'handle crashes',
  run(ctx) {
    const log = need(ctx, 'log');
    for (const name of ['uncaughtException', 'unhandledRejection'] as const) {
      const onCrash = (error: unknown): void => {
        ctx.state.handling?.died(error);
        log.error(
          { stack: error instanceof Error ? error.stack : undefined },
          `${name}: ${messageOf(error)}; exiting with code ${EXIT.internal}`,
        );
        try {
          for (const line of ctx.state.node?.recorder() ?? []) ctx.io.stderr.write(`${line}\n`);
        } catch (failure) {
          ctx.io.stderr.write(`the flight recorder could not be printed: ${messageOf(failure)}\n`);
        }
        ctx.io.exit(EXIT.internal);
      };
      ctx.cleanup.use(ctx.io.on(name, onCrash));
    }
    return undefined;
  },
};

/** Waits, however long, for the holder of the lock. */
export const takeLock: Step = {
  name: 'take the lock file',
  async run(ctx) {
    const { lockFile, exitOnLockContention } = need(ctx, 'loaded').flags;
    if (lockFile === '') return undefined;
    const log = need(ctx, 'log');
    try {
      const lock = await acquireLock(lockFile, {
        libc: ctx.libc(),
        signal: ctx.ending.signal,
        onWait: () => log.info({ file: lockFile }, 'another process holds the lock; waiting for it'),
      });
      ctx.state.lock = ctx.cleanup.use(lock);
      log.info({ file: lockFile }, 'the lock is held');
      if (!exitOnLockContention) return undefined;
      const onContention = (reason: string): void => {
        log.info({}, `lock contention: ${reason}; stopping, containers are left running`);
        ctx.ending.abort(new Error(reason));
      };
      ctx.cleanup.use(lock.watchContention(onContention));
    } catch (error) {
      if (ctx.ending.signal.aborted) return { exit: EXIT.ok };
      throw new StartError('the lock cannot be taken', [{ where: '--lock-file', what: `${lockFile}: ${messageOf(error)}` }]);
    }
    return undefined;
  },
};

/** An error in the log only: what really needs the privilege fails by itself later. */
export const checkRoot: Step = {
  name: 'check for root',
  run(ctx) {
    if (ctx.io.uid === 0) return undefined;
    // The embedded runtimes are made for ordinary users.
    if (!onEmbedded(ctx)) need(ctx, 'log').error({ uid: ctx.io.uid }, 'not running as root: what needs root will fail');
    return undefined;
  },
};

/** Trying things out on an embedded runtime needs neither; on a real one the node is less safe without. */
function cannotSet(ctx: BootContext, fields: object, message: string): void {
  need(ctx, 'log')[onEmbedded(ctx) ? 'info' : 'warn'](fields, message);
}
const onEmbedded = (ctx: BootContext): boolean => need(ctx, 'loaded').config.containerRuntimeEndpoint.startsWith('embedded://');

export const adjustOomScore: Step = {
  name: 'adjust the OOM score',
  async run(ctx) {
    const value = need(ctx, 'loaded').config.oomScoreAdj;
    try {
      await setOomScore(value);
    } catch (error) {
      cannotSet(ctx, { value, err: messageOf(error) }, 'oomScoreAdj (--oom-score-adj) cannot be set; going on without it');
    }
    return undefined;
  },
};

export const raiseFileLimit: Step = {
  name: 'set the limit of open files',
  run(ctx) {
    const value = need(ctx, 'loaded').config.maxOpenFiles;
    try {
      ctx.libc().setNoFileLimit(value);
    } catch (error) {
      cannotSet(ctx, { value, err: messageOf(error) }, 'maxOpenFiles (--max-open-files) cannot be set; going on with the present limit');
    }
    return undefined;
  },
};

export const makeRootDirectory: Step = {
  name: 'make the root directory',
  async run(ctx) {
    const { rootDir } = need(ctx, 'loaded').flags;
    try {
      await mkdir(rootDir, { recursive: true, mode: ROOT_DIR_MODE });
    } catch (error) {
      const hint = codeOf(error) === 'EACCES' ? '; choose a directory you may write, or run as root' : '';
      throw new StartError('the root directory cannot be made', [{ where: '--root-dir', what: `${messageOf(error)}${hint}` }]);
    }
    const problem = await rootDirProblem(rootDir);
    if (problem !== null) need(ctx, 'log').warn({ flag: problem.where }, problem.what);
    return undefined;
  },
};

/** Two daemons on one directory would take each other's pods for strays. */
export const lockRootDirectory: Step = {
  name: 'lock the root directory',
  async run(ctx) {
    const { rootDir } = need(ctx, 'loaded').flags;
    const folder = `${rootDir}/${OWN_FOLDER}`;
    let held: Disposable | number;
    try {
      await mkdir(folder, { recursive: true, mode: ROOT_DIR_MODE });
      held = lockAtOnce(`${folder}/${LOCK_FILE}`, { libc: ctx.libc(), pid: ctx.io.pid });
    } catch (error) {
      if (error instanceof NotRegular)
        throw new StartError('the root directory cannot be locked', [{ where: '--root-dir', what: `${error.message}; remove it` }]);
      cannotSet(
        ctx,
        { folder, err: messageOf(error) },
        'the root directory (--root-dir) cannot be locked; a second daemon on it would harm its pods',
      );
      return undefined;
    }
    if (typeof held === 'number') {
      const who = held === 0 ? 'another actorlet process' : `actorlet process ${held}`;
      throw new StartError('the root directory is in use', [
        { where: '--root-dir', what: `${rootDir} is in use by ${who}; end that one first, or give this one a directory of its own` },
      ]);
    }
    ctx.cleanup.use(held);
    return undefined;
  },
};

export const connectNotify: Step = {
  name: 'find the init system',
  run(ctx) {
    ctx.state.notify = createNotify(ctx.env, ctx.libc);
    return undefined;
  },
};
