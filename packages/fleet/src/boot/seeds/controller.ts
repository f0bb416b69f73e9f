/** The controller under test as a process of its own, which is started again when it ends by itself, as a Deployment does. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import type { EndSignal } from '../../plane/messages.ts';
import type { ProgramNote } from '../../plane/programMachine.ts';
import type { Program } from '../../plane/programs.ts';
import { ProgramTree } from '../plane/programTree.ts';
import type { ClientProxy } from '../proxy/proxy.ts';

const END_TIMEOUT_MS = 10_000;
/** A shell around it: when this process ends, in whatever way, the input of the shell closes, and the whole group ends. */
const WATCHED = [
  'trap : TERM; exec 3<&0',
  '"$@" </dev/null 3<&- & child=$!',
  '(read -r _ <&3; kill -KILL 0) &',
  'wait $child; code=$?',
  // A signal to end interrupts the wait; the controller may take its time.
  'while kill -0 $child 2>/dev/null; do wait $child; code=$?; done',
  'exit $code',
].join('\n');
/** A busy machine is slow to start it. */
const FIRST_REQUEST_MS = 60_000;
const LOOK_EVERY_MS = 20;

export interface ControllerOptions {
  command: readonly string[];
  /** Of the proxy. */
  kubeconfig: string;
  /** What it prints goes there. */
  logFile: string;
  say(text: string): void;
}

class ControllerProgram implements Program {
  readonly name = 'controller';
  on = false;
  readonly #o: ControllerOptions;
  #child: ChildProcess | undefined;
  #ended: Promise<string> = Promise.resolve('it was not started');

  constructor(o: ControllerOptions) {
    this.#o = o;
  }

  note({ on = this.on, failure }: ProgramNote): void {
    this.on = on;
    if (typeof failure === 'string') this.#o.say(`${failure}; it starts again (log: ${this.#o.logFile})\n`);
  }

  async start(): Promise<void> {
    await this.end('SIGKILL');
    const log = openSync(this.#o.logFile, 'a', 0o600);
    try {
      const env = { ...process.env, KUBECONFIG: this.#o.kubeconfig };
      // A group of its own: what it starts ends with it.
      const child = startProcess('/bin/sh', ['-c', WATCHED, this.name, ...this.#o.command], {
        stdio: ['pipe', log, log],
        detached: true,
        env,
      });
      child.stdin?.on('error', () => {});
      this.#child = child;
      this.#ended = endOf(child);
    } finally {
      closeSync(log);
    }
  }

  async fails(): Promise<never> {
    throw new Error(`the controller ${await this.#ended}`);
  }

  async end(by: EndSignal): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.pid === undefined) return;
    signalGroup(child.pid, by);
    const late = setTimeout(() => child.pid !== undefined && signalGroup(child.pid, 'SIGKILL'), END_TIMEOUT_MS);
    await this.#ended;
    clearTimeout(late);
    signalGroup(child.pid, 'SIGKILL');
  }
}

function signalGroup(pid: number, signal: EndSignal): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // All of it has ended.
  }
}

/** Never rejects. */
async function endOf(child: ChildProcess): Promise<string> {
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    return signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`;
  } catch (error) {
    return `could not be started: ${messageOf(error)}`;
  }
}

export interface Controller {
  /** Resolves when it has asked the API server for something. @throws Error where it does not. */
  asks(proxy: ClientProxy | undefined, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Under a supervisor of its own. */
export function startController(o: ControllerOptions): Controller {
  const program = new ControllerProgram(o);
  const tree = new ProgramTree<Program>([program], { id: 'controller' });
  void tree.tryOn(program.name);
  return {
    async asks(proxy, signal) {
      const deadline = performance.now() + FIRST_REQUEST_MS;
      while (proxy?.calls.isEmpty === true && !signal.aborted) {
        if (performance.now() > deadline)
          throw new Error(
            `the controller asked for nothing within ${FIRST_REQUEST_MS / 1_000} s, with KUBECONFIG=${o.kubeconfig}; its log: ${o.logFile}`,
          );
        await wait(LOOK_EVERY_MS);
      }
    },
    async stop() {
      await tree.off(program.name, 'SIGTERM');
      await tree.stop();
    },
  };
}
