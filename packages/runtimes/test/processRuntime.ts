/** Starts real process runtimes for tests, as this user or as another, and cleans up after them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGrpcCri } from '@actorlet/kubelet/boot/dependencies/cri/grpcCri.ts';
import type { Cri, Logger } from '@actorlet/kubelet/ports/ports.ts';
import { SANDBOX } from '../../../test/programs.ts';
import { scanProcesses } from '../src/process/container/procfs.ts';
import { MARK } from '../src/process/container/shim.ts';
import { answers } from '../src/process/ensure.ts';
import { layout } from '../src/process/store/store.ts';
import { calls, eventually } from './conformance.ts';

export const ENTRY = SANDBOX;

const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };

export interface TestRuntime {
  rootDir: string;
  cri: Cri;
  pid(): number;
  log(): string;
  /** SIGKILL to the runtime alone. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Ends everything; fails when a process of any container is left. */
  close(): Promise<void>;
}

export interface RuntimeOptions {
  uid?: number;
  args?: string[];
  /** Put before the command that starts the runtime. */
  launch?: readonly string[];
  env?: NodeJS.ProcessEnv;
}

export async function startRuntime(o: RuntimeOptions = {}): Promise<TestRuntime> {
  const rootDir = mkdtempSync(join(tmpdir(), 'sbx-'));
  if (o.uid !== undefined) chownSync(rootDir, o.uid, o.uid);
  const l = layout(rootDir);
  let child: ChildProcess | undefined;
  let output = '';
  const clients: Cri[] = [];
  const connect = (): Cri => {
    const cri = createGrpcCri({
      endpoint: `unix://${l.socket}`,
      log: quiet,
      clock: {
        wallMs: () => Date.now(),
        monoMs: () => performance.now(),
        setTimeout: (fn, ms) => setTimeout(fn, ms),
        clearTimeout: (id) => clearTimeout(id as NodeJS.Timeout),
      },
    });
    clients.push(cri);
    return cri;
  };
  const t: TestRuntime = {
    rootDir,
    cri: connect(),
    pid: () => child?.pid ?? 0,
    log: () => output,
    async start() {
      const [file = '', ...words] = [...(o.launch ?? []), process.execPath, ENTRY, '--root-dir', rootDir, ...(o.args ?? [])];
      const started = spawn(file, words, {
        cwd: '/',
        detached: true,
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, ...o.env },
        ...(o.launch !== undefined || o.uid === undefined ? {} : { uid: o.uid, gid: o.uid }),
      });
      child = started;
      started.stderr.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8');
      });
      await eventually(`the runtime serves ${l.socket}: ${output}`, async () => {
        if (started.exitCode !== null) throw new Error(`the runtime ended with ${started.exitCode}: ${output}`);
        return (await answers(l.socket)) || undefined;
      });
      t.cri.reconnect();
    },
    async kill() {
      const victim = child;
      if (victim === undefined) return;
      const gone = new Promise((done) => victim.once('exit', done));
      victim.kill('SIGKILL');
      await gone;
    },
    async close() {
      // Also after a failed test: whatever state it left, the pods are to go.
      if (!(await answers(l.socket))) await t.start();
      const c = calls(t.cri);
      const { items } = await c.call('ListPodSandbox', {});
      await Promise.all(items.map((s) => c.call('RemovePodSandbox', { podSandboxId: s.id })));
      for (const cri of clients) cri.close();
      const ending = child;
      if (ending !== undefined && ending.exitCode === null) {
        const gone = new Promise((done) => ending.once('exit', done));
        ending.kill('SIGTERM');
        await gone;
      }
      rmSync(rootDir, { recursive: true, force: true });
    },
  };
  try {
    await t.start();
  } catch (error) {
    for (const cri of clients) cri.close();
    rmSync(rootDir, { recursive: true, force: true });
    throw error;
  }
  return t;
}

/** Host pids of every container's processes and shim by container id, found by the mark alone. */
export function markedAll(): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const p of scanProcesses()) {
    if (p.state === 'Z') continue;
    let id: string | undefined;
    try {
      id = new RegExp(`(?:^|\\0)${MARK}=([0-9a-f]+)`).exec(readFileSync(`/proc/${p.pid}/environ`, 'latin1'))?.[1];
    } catch {
      // Gone since the listing, or not ours to read.
    }
    if (id !== undefined)
      found.set(
        id,
        [...(found.get(id) ?? []), p.pid].sort((a, b) => a - b),
      );
  }
  return found;
}
export const marked = (containerId: string): number[] => markedAll().get(containerId) ?? [];

/** CRI log lines, parsed; fails on a line that is none. */
export function logLines(path: string): { at: string; stream: string; tag: string; text: string }[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const m = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (stdout|stderr) (F|P) (.*)$/.exec(line);
      if (m === null) throw new Error(`not a CRI log line: ${JSON.stringify(line)}`);
      return { at: m[1] ?? '', stream: m[2] ?? '', tag: m[3] ?? '', text: m[4] ?? '' };
    });
}
