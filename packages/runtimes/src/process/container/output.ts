/** The output of one container, from its FIFOs into its log. */
import type { Layout, StoredContainer } from '../store/store.ts';
import { type LogFile, type LogPump, openLogFile, pumpFifo } from './logs.ts';

/** How much of stderr the message of a failed start quotes. */
const START_ERRORS_CHARS_MAX = 1024;
/** crun 1.8 with a terminal often says no more of a command that cannot be executed. */
const NO_WORDS = 'read FD: connection closed';

export type Tap = (stream: 'stdout' | 'stderr', chunk: Buffer) => void;

export class Output {
  readonly #row: StoredContainer;
  readonly #layout: Layout;
  readonly #warn: (message: string) => void;
  #log: LogFile | undefined;
  #pumps: LogPump[] = [];
  #startErrors = '';
  readonly #taps = new Set<Tap>();

  constructor(row: StoredContainer, o: { layout: Layout; warn(message: string): void }) {
    this.#row = row;
    this.#layout = o.layout;
    this.#warn = o.warn;
  }

  /** While `isStarting`, stderr is also kept for {@link startErrors}. */
  attach(isStarting: () => boolean): void {
    const { id, logPath } = this.#row;
    const log = openLogFile(logPath === '' ? '/dev/null' : logPath, this.#warn);
    this.#log = log;
    const raw = (stream: 'stdout' | 'stderr') => (chunk: Buffer) => {
      for (const tap of this.#taps) tap(stream, chunk);
    };
    const out = pumpFifo(this.#layout.container(id, 'out'), { stream: 'stdout', raw: raw('stdout'), emit: (chunk) => log.write(chunk) });
    // A terminal has one output: crun writes the last of it to its own stderr.
    const second = this.#row.plan.oci?.input?.tty === true ? 'stdout' : 'stderr';
    const err = pumpFifo(this.#layout.container(id, 'err'), {
      stream: second,
      raw: raw(second),
      emit: (chunk) => {
        if (isStarting() && this.#startErrors.length < START_ERRORS_CHARS_MAX) this.#startErrors += chunk.toString('utf8');
        log.write(chunk);
      },
    });
    this.#pumps = [out, err];
    log.onPressure = (pause) => {
      for (const p of this.#pumps) p.pause(pause);
    };
  }

  /** `tap` is given all output from now on, as it is read. Gives what undoes it. */
  tap(tap: Tap): () => void {
    this.#taps.add(tap);
    return () => void this.#taps.delete(tap);
  }

  /** What the shim or the command wrote to stderr during the start, in one line. */
  startErrors(): string {
    const said = this.#startErrors
      .split('\n')
      .map((l) => l.replace(/^\S+ std(?:out|err) [FP] /, ''))
      .filter((l) => l !== '')
      .join('; ');
    const { oci } = this.#row.plan;
    return said === NO_WORDS && oci !== undefined
      ? `exec: ${JSON.stringify(oci.process.args[0])} is not in the image, or is no program`
      : said;
  }

  /** Settles when no process holds the FIFOs any more. */
  async ended(): Promise<void> {
    await Promise.all(this.#pumps.map((p) => p.ended));
  }

  /** Everything that is in the FIFOs now has been read. */
  async drained(): Promise<void> {
    await Promise.all(this.#pumps.map((p) => p.drained()));
  }

  async flush(): Promise<void> {
    await this.#log?.flush();
  }

  async reopen(): Promise<void> {
    await this.#log?.reopen();
  }

  async detach(): Promise<void> {
    for (const p of this.#pumps) p.close();
    this.#pumps = [];
    await this.#log?.close();
    this.#log = undefined;
  }
}
