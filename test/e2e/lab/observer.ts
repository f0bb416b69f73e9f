/** `actorlet observe` as a process, beside the kubelet of a lab. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type AdminClient, adminClient } from '@actorlet/admin/src/client.ts';
import type { ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { until } from './ports.ts';

const project = join(import.meta.dirname, '..', '..', '..');
const run = promisify(execFile);
const READY_TIMEOUT_MS = 90_000;
const END_TIMEOUT_MS = 20_000;

export class Observer {
  /** The only one that it writes in. */
  readonly folder: string;
  readonly admin: AdminClient;
  readonly #out: string;
  readonly #program: readonly string[];
  #child: ChildProcess | undefined;
  #isBehind = false;

  /** `program`: in place of the checkout's own; `name`: of its folder, where there are several. */
  constructor(dir: string, { name = 'observe', program }: { name?: string; program?: readonly string[] } = {}) {
    this.folder = join(dir, name);
    this.#out = join(dir, `${name}.log`);
    this.#program = program ?? [join(project, 'bin/actorlet')];
    this.admin = adminClient(join(this.folder, 'actorlet.sock'), new AbortController().signal);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
  }

  /** `before`: a program that runs it (`strace ...`). It stands behind no other process of a machine that is full of tests, unless `args` say so. */
  async start(args: readonly string[], before: readonly string[] = []): Promise<void> {
    const out = openSync(this.#out, 'a');
    const [program = '', ...words] = [...before, ...this.#program, 'observe', `--observe-dir=${this.folder}`, '--nice=0', ...args];
    const child = spawn(program, words, { stdio: ['ignore', out, out] });
    closeSync(out);
    [this.#child, this.#isBehind] = [child, before.length > 0];
    await until(
      'the observer to answer',
      async () => {
        if (child.exitCode !== null) throw new Error(`the observer ended with ${child.exitCode}: ${this.log().slice(-4_000)}`);
        return this.ledger().catch(() => undefined);
      },
      { timeoutMs: READY_TIMEOUT_MS, everyMs: 100 },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.log().slice(-4_000)}`);
    });
  }

  get pid(): number | undefined {
    return this.#child?.exitCode === null ? this.#child.pid : undefined;
  }

  async ledger(): Promise<ObserverLedger> {
    return (await this.admin.json('/disagreements')) as ObserverLedger;
  }

  /** `actorctl` at its socket; rejects when its exit code is not 0. */
  async ctl(...args: string[]): Promise<string> {
    return (await run(join(project, 'bin/actorctl'), [...args, '--socket', join(this.folder, 'actorlet.sock')])).stdout;
  }

  log(): string {
    return readFileSync(this.#out, { encoding: 'utf8', flag: 'a+' });
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? null;
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    // The program that runs it ends with it.
    const [pid = ''] = this.#isBehind ? readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ') : [];
    if (pid === '') child.kill(signal);
    else process.kill(Number(pid), signal);
    const late = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
    const code = await ended;
    clearTimeout(late);
    return code;
  }
}
