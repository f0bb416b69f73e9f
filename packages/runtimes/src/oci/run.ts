/** Runs a program to its end: bounded in time and in what is kept of its words. */
import { startProcess } from '@actorlet/process/src/startProcess.ts';

const OUTPUT_BYTES_MAX = 8 * 1024 * 1024;
const WORDS_CHARS_MAX = 2000;

export interface RunOptions {
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  signal?: AbortSignal | undefined;
  /** Called every {@link WATCH_EVERY_MS}; a text ends the program, and is the reason. */
  watch?(): string | null;
}
const WATCH_EVERY_MS = 100;

export class ProgramError extends Error {
  /** The program was ended by its watch, whose words these are. */
  readonly watched: boolean;
  /** The end of all that it wrote to stderr. */
  readonly stderr: string;
  constructor(words: string, watched: boolean, stderr = '') {
    super(words);
    this.name = 'ProgramError';
    this.watched = watched;
    this.stderr = stderr;
  }
}

/** Its output. @throws ProgramError with what it wrote to stderr, when it fails, is ended by `watch`, or the signal aborts. */
export function runProgram(file: string, args: readonly string[], o: RunOptions = {}): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = startProcess(file, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: o.env ?? process.env,
      cwd: o.cwd ?? '/',
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let words = '';
    let ended: string | null = null;
    const end = (why: string): void => {
      ended ??= why;
      // Its own process group: helpers of it end too.
      if (child.pid !== undefined) killGroup(child.pid);
    };
    const onAbort = (): void => end('the caller cancelled it');
    const timer = setInterval(() => {
      const why = o.watch?.() ?? null;
      if (why !== null) end(why);
    }, WATCH_EVERY_MS);
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > OUTPUT_BYTES_MAX) end(`it wrote more than ${OUTPUT_BYTES_MAX} bytes`);
      else chunks.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      words = `${words}${chunk.toString('utf8')}`.slice(-WORDS_CHARS_MAX);
    });
    const settle = (code: number | null, error?: Error): void => {
      clearInterval(timer);
      o.signal?.removeEventListener('abort', onAbort);
      if (ended !== null) reject(new ProgramError(ended, true));
      else if (error !== undefined) reject(new ProgramError(error.message, false));
      else if (code === 0) resolve(Buffer.concat(chunks));
      else reject(new ProgramError(lastWords(words) || `${file} ended with ${code ?? 'a signal'}`, false, words));
    };
    child.once('error', (error) => settle(null, error));
    child.once('close', (code) => settle(code));
    o.signal?.addEventListener('abort', onAbort, { once: true });
    if (o.signal?.aborted === true) onAbort();
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** skopeo and umoci write `time="…" level=fatal msg="…"`; others plain lines. */
function lastWords(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const last = lines.findLast((line) => /level=(?:fatal|error)|^⨯|[Ee]rror/.test(line)) ?? lines.at(-1) ?? '';
  const quoted = /msg="((?:[^"\\]|\\.)*)"/.exec(last)?.[1];
  return (quoted === undefined ? last : quoted.replace(/\\(.)/g, '$1')).replace(/^[⨯•\s]+/, '').trim();
}
