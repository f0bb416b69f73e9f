/** Furniture of the boot tests: a fake process around `boot`, temporary folders, golden files. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { boot } from '../../src/boot/boot.ts';
import { type LoadedConfig, loadConfig } from '../../src/boot/config/load.ts';
import { runnable } from '../../src/boot/config/runnable.ts';
import { validate } from '../../src/boot/config/validate.ts';
import type { Problem } from '../../src/boot/errors.ts';
import { parseFlags } from '../../src/boot/flags/parse.ts';
import type { BootIo, BootNode, ProcessEvent, Wiring } from '../../src/boot/steps/context.ts';
import type { NodeConfig } from '../../src/machines/config/config.ts';
import { createFeatureGates } from '../../src/machines/config/gates.ts';
import type { Ports } from '../../src/ports/ports.ts';

/** Kernel settings as a node has them. */
const PROC_SYS = join(import.meta.dirname, '../e2e/lab/procSys');

export const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

/** A folder that is removed when the scope ends. */
export function tempDir(): Disposable & { path: string; write(name: string, text: string): string } {
  const path = mkdtempSync(join(tmpdir(), 'actorlet-boot-'));
  return {
    path,
    write(name, text) {
      const file = join(path, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
      return file;
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Compares with a file under test/golden; UPDATE_GOLDEN=1 rewrites it. Answers the golden text. */
export function golden(name: string, actual: string): string {
  const file = join(import.meta.dirname, '../golden/boot', name);
  if (process.env.UPDATE_GOLDEN === '1') {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, actual);
  }
  return readFileSync(file, 'utf8');
}

/** Arguments and maybe a file's body (after the header) to a loaded configuration. */
export async function load(argv: readonly string[], body?: string): Promise<LoadedConfig> {
  using dir = tempDir();
  const args = body === undefined ? argv : ['--config', dir.write('kubelet.yaml', HEADER + body), ...argv];
  const parsed = parseFlags(args, { cwd: '/work-dir' });
  if (parsed.errors.length > 0) throw new Error(parsed.errors.join('\n'));
  // Awaited here: the folder goes when this scope ends.
  return await loadConfig(parsed.given, '/work-dir');
}

/** Every problem of a configuration, as `where: what`. */
export async function problemsOf(argv: readonly string[], body?: string): Promise<string[]> {
  const loaded = await load(argv, body);
  const { gates } = createFeatureGates(loaded.config.featureGates);
  const given = parseFlags(argv, { cwd: '/work-dir' }).given;
  return texts([...loaded.errors, ...validate({ ...loaded, config: runnable({ ...loaded, gates }).config, gates, given })]);
}
export function texts(problems: readonly Problem[]): string[] {
  return problems.map((p) => `${p.where}: ${p.what}`);
}

export interface FakeRun {
  code: Promise<number>;
  stdout(): string;
  stderr(): string;
  exits: number[];
  /** What the node was created with. */
  ports(): Ports | undefined;
  /** How often it became the same program anew. */
  again(): number;
  emit(name: ProcessEvent, detail?: unknown): void;
  /** Configuration the node was created with. */
  nodeConfig(): NodeConfig | undefined;
  stops(): number;
}

/** `boot` in this process with a fake process around it and a node that does nothing. */
export function fakeBoot(
  argv: readonly string[],
  o: { env?: Record<string, string>; node?: Partial<BootNode>; uid?: number; pid?: number } = {},
): FakeRun {
  const out: string[] = [];
  const err: string[] = [];
  const exits: number[] = [];
  const listeners = new Map<ProcessEvent, Set<(detail: unknown) => void>>();
  let config: NodeConfig | undefined;
  let stops = 0;
  let anew = 0;
  let nodePorts: Ports | undefined;
  const io: BootIo = {
    stdout: { write: (text) => out.push(text) },
    stderr: { write: (text) => err.push(text) },
    cwd: '/work-dir',
    pid: o.pid ?? 4242,
    uid: o.uid ?? 0,
    exit: (code) => void exits.push(code),
    again() {
      anew += 1;
    },
    on(name, fn) {
      const set = listeners.get(name) ?? new Set();
      listeners.set(name, set.add(fn));
      return { [Symbol.dispose]: () => void set.delete(fn) };
    },
  };
  const node: BootNode = {
    start: () => Promise.resolve(),
    stop: () => {
      stops++;
      return Promise.resolve();
    },
    recorder: () => ['recorder line'],
    tree: { registry: emptyRegistry(), failed: new Promise(() => {}) },
    ...o.node,
  };
  const wiring: Wiring = {
    createPorts: (c) => {
      config = c;
      return { clock: { wallMs: () => Date.now(), monoMs: () => performance.now(), setTimeout, clearTimeout } } as unknown as Ports;
    },
    createNode(_, ports) {
      nodePorts = ports;
      return node;
    },
  };
  return {
    code: boot(argv, { ACTORLET_PROC_SYS: PROC_SYS, ...o.env }, { io, wiring }),
    stdout: () => out.join(''),
    stderr: () => err.join(''),
    exits,
    ports: () => nodePorts,
    again: () => anew,
    emit: (name, detail) => {
      for (const fn of listeners.get(name) ?? []) fn(detail);
    },
    nodeConfig: () => config,
    stops: () => stops,
  };
}

export function emptyRegistry(views: Readonly<Record<string, unknown>> = {}): BootNode['tree']['registry'] {
  return {
    send: () => 'dead',
    ask: () => Promise.resolve({ kind: 'lost', reason: 'no tree' }),
    read: (key) => (key.view in views ? { version: 1, value: views[key.view] as never } : undefined),
    watch: () => ({ [Symbol.dispose]: () => {} }),
    deadLetters: () => ({ total: 0, byReason: {}, recent: [] }),
  };
}

/** Polls until the condition holds; fails after the deadline with `what`. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, deadlineMs = 30_000): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${what}`);
    await sleep(10);
  }
}

/** A statement that holds the main thread of a process for good, as an endless loop does, without its processor time. */
export const BLOCK = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';
