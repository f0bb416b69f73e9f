/**
 * `sandboxd`: the embedded process runtime as a program of its own.
 *   sandboxd --root-dir DIR            serve until TERM; containers outlive it
 *   sandboxd --root-dir DIR --status   what runs there
 *   sandboxd --root-dir DIR --stop     stop and remove every pod of that root, then end the runtime; --purge: and its images
 *   sandboxd --probe                   whether the kind `oci` can run here, and why not; exit code 0 or 1
 * Exit codes: 0 done; 64 bad usage; 70 failure; 75 another runtime serves this root directory.
 */
import { readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeOwnSync } from '@actorlet/process/src/regularFile.ts';
import { outliveSignals } from '@actorlet/process/src/signals.ts';
import { statusOf, stopAll } from './admin.ts';
import { EXIT_LOCKED, isKind, type Kind } from './ensure.ts';
import { probeIsolation } from './probe.ts';
import { createProcessRuntime } from './runtime.ts';
import { serveCri } from './server.ts';
import { acquireLock } from './store/lock.ts';
import { layout, prepareFolders } from './store/store.ts';
import { createStreamingServer } from './streaming/server.ts';

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

function say(level: 'info' | 'warn' | 'error', message: string): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, msg: message })}\n`);
}

interface Serve {
  wanted: 'plain' | undefined;
  kind: Kind;
  limits: string | undefined;
}

async function serve(rootDir: string, o: Serve): Promise<void> {
  const l = layout(rootDir);
  const path = process.env.PATH || DEFAULT_PATH;
  process.umask(0o022);
  prepareFolders(l);
  // Loaded only where it is used.
  const ociKind = o.kind === 'oci' ? await import('../oci/index.ts') : undefined;
  await ociKind?.enterPlace(l, path);
  const lock = await acquireLock(l.lock, () => {
    say('error', 'the lock on the root directory was lost: ending, containers run on');
    process.exit(70);
  });
  if (lock === null) {
    say('info', `another runtime serves ${rootDir}`);
    ociKind?.dropPlace(l, { unless: 'kept' });
    process.exit(EXIT_LOCKED);
  }
  const lostHolder = ociKind?.keepPlace(l) ?? null;
  const isolation = await probeIsolation({ path, wanted: o.wanted });
  if (isolation.mkfifo === '') throw new Error('mkfifo (coreutils) is not installed');
  const warn = (message: string) => say('warn', message);
  const limits = JSON.parse(o.limits ?? '{}') as object;
  const oci = await ociKind?.createOci({ layout: l, path, limits, warn });
  const streaming = await createStreamingServer({ socketPath: l.streaming, isolation, oci });
  const runtime = await createProcessRuntime({
    layout: l,
    isolation,
    streaming,
    env: { path, home: homedir() },
    nodePath: process.execPath,
    oci,
    lostHolder,
    log: say,
  });
  writeOwnSync(l.kind, o.kind, 0o600);
  writeOwnSync(l.pid, `${process.pid}\n`, 0o600);
  const server = await serveCri({ socketPath: l.socket, runtime, warn });
  const images = oci === undefined ? 'built-in images alone' : `OCI images with ${oci.about.programs}; ${oci.about.cgroups}`;
  say('info', `serving CRI on unix://${l.socket}; isolation: ${isolation.kind}, ${isolation.reason}; ${images}`);

  let ending = false;
  const end = (signal: string): void => {
    if (ending) return;
    ending = true;
    say('info', `${signal}: ending, containers run on`);
    server.close();
    streaming.close();
    void runtime.close().finally(() => {
      rmSync(l.pid, { force: true });
      rmSync(l.socket, { force: true });
      rmSync(l.streaming, { force: true });
      if (readdirSync(l.sandboxes).length === 0) ociKind?.dropPlace(l, { unless: 'never' });
      lock.release();
      process.exit(0);
    });
  };
  process.on('SIGTERM', () => end('SIGTERM'));
  process.on('SIGINT', () => end('SIGINT'));
}

const USAGE =
  'usage: sandboxd --root-dir DIR [--stop [--purge] | --status] [--kind process|oci] [--isolation plain]\n       sandboxd --probe';

function parse() {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    options: {
      ...{ 'root-dir': text, kind: text, isolation: text, 'image-limits': text },
      ...{ stop: flag, purge: flag, status: flag, probe: flag },
    },
  });
  if (!values['root-dir'] && values.probe !== true) throw new Error('--root-dir is missing');
  if (values.isolation !== undefined && values.isolation !== 'plain' && values.isolation !== 'auto')
    throw new Error('--isolation is auto or plain');
  if (values.kind !== undefined && !isKind(values.kind)) throw new Error('--kind is process or oci');
  return { ...values, kind: (values.kind ?? 'process') as Kind };
}

async function main(): Promise<void> {
  let values: ReturnType<typeof parse>;
  try {
    values = parse();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    process.exit(64);
  }
  const rootDir = resolve(values['root-dir'] ?? '');
  const say1 = (line: string): void => void process.stdout.write(`${line}\n`);
  const self = { execPath: process.execPath, entry: process.argv[1] ?? '' };
  if (values.probe === true) {
    const { probe } = await import('../oci/probe.ts');
    process.exit((await probe(process.env.PATH || DEFAULT_PATH, say1)) ? 0 : 1);
  }
  if (values.stop === true) await stopAll(rootDir, { say: say1, purge: values.purge === true, ...self });
  else if (values.status === true) await statusOf(rootDir, say1);
  else
    return serve(rootDir, {
      wanted: values.isolation === 'plain' ? 'plain' : undefined,
      kind: values.kind,
      limits: values['image-limits'],
    });
  process.exit(0);
}

outliveSignals();
process.on('uncaughtException', (error) => {
  say('error', `unexpected: ${error.stack ?? error.message}; ending, containers run on`);
  process.exit(70);
});
process.on('unhandledRejection', (error) => {
  say('error', `unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}; ending, containers run on`);
  process.exit(70);
});
main().catch((error: Error) => {
  say('error', error.message);
  process.exit(70);
});
