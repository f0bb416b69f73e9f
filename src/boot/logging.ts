/** Logs: pino behind the Logger port. `text` is the kubelet's line format, `json` is pino's; secrets never come out. */
import pino from 'pino';
import type { LoggingConfig } from '../machines/config/config.ts';
import { put } from '../machines/data/own.ts';
import { oneLine } from '../machines/text/oneLine.ts';
import { MASKED, withShownUrls } from '../machines/text/shownUrl.ts';
import type { Logger } from '../ports/ports.ts';

/** Fields whose values are secrets, at the top of a line and one and two levels down. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  ...['env', 'envs', 'auth', 'authorization', 'token', 'password', 'secret', 'headers', 'staticPodURLHeader'],
]);

/** From this verbosity on, debug lines are written too. */
const DEBUG_VERBOSITY = 4;

/** Longest text in a line: a runtime, a plugin or an API server may send any amount. The configuration is longer, and ours. */
const TEXT_CHARS_MAX = 4_096;
/** Levels of objects in a line that are looked at; deeper ones are our own. */
const LEVELS = 3;

export interface LogSink {
  write(line: string): void;
}

/** One logger per node; there is no global one. Lines are written at once. */
export function createLogger(config: Pick<LoggingConfig, 'format' | 'verbosity'> & { pid: number }, sink: LogSink): Logger {
  const write = config.format === 'json' ? (line: string) => line : (line: string) => toText(line, config.pid);
  // Once, here: whatever is logged may hold what a pod or a runtime wrote.
  const destination = { write: (line: string) => sink.write(`${oneLine(write(line).replace(/\n$/, ''))}\n`) };
  const base = pino(
    {
      level: 'debug',
      base: null,
      timestamp: () => `,"ts":${Date.now()}`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: errorText, error: errorText },
    },
    destination,
  );
  return new VerbosityLogger(base, { debug: config.verbosity >= DEBUG_VERBOSITY });
}

/** One switch for a whole family of loggers: pino's children keep the level that they were made with. */
class VerbosityLogger implements Logger {
  readonly #pino: Pick<pino.Logger, 'debug' | 'info' | 'warn' | 'error' | 'child'>;
  readonly #on: { debug: boolean };
  constructor(base: pino.Logger, on: { debug: boolean }) {
    this.#pino = base;
    this.#on = on;
  }
  debug(fields: object, msg: string): void {
    if (this.#on.debug) this.#pino.debug(shown(fields), short(msg));
  }
  info(fields: object, msg: string): void {
    this.#pino.info(shown(fields), short(msg));
  }
  warn(fields: object, msg: string): void {
    this.#pino.warn(shown(fields), short(msg));
  }
  error(fields: object, msg: string): void {
    this.#pino.error(shown(fields), short(msg));
  }
  child(bindings: object): Logger {
    return new VerbosityLogger(this.#pino.child(shown(bindings)), this.#on);
  }
  setVerbosity(verbosity: number): void {
    this.#on.debug = verbosity >= DEBUG_VERBOSITY;
  }
}

function short(given: string): string {
  const text = withShownUrls(given);
  return text.length <= TEXT_CHARS_MAX ? text : `${text.slice(0, TEXT_CHARS_MAX)}... (${text.length} characters)`;
}

/**
 * Without secrets and long texts; the same object where it has neither. One walk does both: pino's own `redact` takes 27 paths apart and
 * copies each line, which was a twentieth of all that a burst allocates.
 */
function shown(fields: object, levels = LEVELS): object {
  let copy: Record<string, unknown> | unknown[] | undefined;
  for (const key of Object.keys(fields)) {
    const value = (fields as Record<string, unknown>)[key];
    const now = levels > 0 && SECRET_FIELDS.has(key) ? MASKED : shownValue(value, levels);
    if (now === value) continue;
    copy ??= Array.isArray(fields) ? [...(fields as unknown[])] : { ...fields };
    put(copy as Record<string, unknown>, key, now);
  }
  return copy ?? fields;
}

function shownValue(value: unknown, levels: number): unknown {
  if (typeof value === 'string') return short(value);
  if (value instanceof Error) return short(value.message);
  return typeof value === 'object' && value !== null && levels > 0 ? shown(value, levels - 1) : value;
}

function errorText(error: unknown): unknown {
  return error instanceof Error ? error.message : error;
}

const LETTERS: Readonly<Record<string, string>> = { debug: 'I', info: 'I', warn: 'W', error: 'E', fatal: 'F' };

/** klog pads the number of the process to so many characters. */
const PID_WIDTH = 7;

/** klog's header, `I1121 04:01:02.123000    1234 path] msg key=value`: the actor's path stands for klog's file and line. */
function toText(line: string, pid: number): string {
  const record: unknown = JSON.parse(line);
  if (typeof record !== 'object' || record === null) return line;
  const { level, ts, actor, msg, ...rest } = Object.fromEntries(Object.entries(record));
  const letter = LETTERS[String(level)] ?? 'I';
  const fields = Object.entries(rest).map(([key, value]) => ` ${key}=${fieldText(value)}`);
  return `${letter}${stamp(Number(ts))} ${String(pid).padStart(PID_WIDTH)} ${typeof actor === 'string' ? actor : 'boot'}] ${String(msg ?? '')}${fields.join('')}\n`;
}

function fieldText(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? 'undefined';
}

/** Local time, as klog prints it; the clock gives milliseconds, the last three digits are zero. */
function stamp(ms: number): string {
  const d = new Date(ms);
  const two = (n: number) => String(n).padStart(2, '0');
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, '0')}000`;
  return `${two(d.getMonth() + 1)}${two(d.getDate())} ${time}`;
}
