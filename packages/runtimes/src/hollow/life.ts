/**
 * The scripted life of a hollow container: what it does when pulled, started, left alone and told to stop; and the
 * small language in which a pod annotation says so. Pure.
 */
import { CODE, RuntimeRefusal } from '../shared/model.ts';

export interface HollowLife {
  /** How long RunPodSandbox takes. Default 0. */
  sandboxDelayMs: number;
  /** Non-empty: RunPodSandbox fails with these words. */
  sandboxError: string;
  /** How long PullImage takes. Default 0. */
  pullDelayMs: number;
  /** Non-empty: PullImage fails with these words (gRPC code 2). */
  pullError: string;
  /** How long StartContainer takes. Default 0. */
  startDelayMs: number;
  /** Non-empty: StartContainer fails with these words and leaves the container exited with 128. */
  startError: string;
  /** Time from start to exit; null = until stopped. Default null. */
  runMs: number | null;
  /** Exit code after `runMs`. Default 0. */
  exitCode: number;
  /** CRI reason of that exit, e.g. `OOMKilled`; '' = by exit code. */
  exitReason: string;
  /** Ends on the stop signal. False: a stop takes its whole grace and ends in 137. Default true. */
  obeysTerm: boolean;
  /** Time from the stop signal to the exit. Default 0. */
  termDelayMs: number;
  /** Exit code after the stop signal. Default 143. */
  termExitCode: number;
  /** What ExecSync answers. Default 0. */
  execExitCode: number;
  execDelayMs: number;
  /** What its writable layer is said to hold while it runs, in bytes. Default 0. */
  writtenBytes: number;
  /** It writes a line into its log so often; null: at its start and its end alone. Default null. */
  logEveryMs: number | null;
  /** Run time and delays are lengthened by up to this share of themselves, by the seeded rng. Default 0. */
  jitter: number;
}

export const DEFAULT_LIFE: Readonly<HollowLife> = Object.freeze({
  sandboxDelayMs: 0,
  sandboxError: '',
  pullDelayMs: 0,
  pullError: '',
  startDelayMs: 0,
  startError: '',
  runMs: null,
  exitCode: 0,
  exitReason: '',
  obeysTerm: true,
  termDelayMs: 0,
  termExitCode: 143,
  execExitCode: 0,
  execDelayMs: 0,
  writtenBytes: 0,
  logEveryMs: null,
  jitter: 0,
});

/** Pod annotation for every container of the pod; with `.NAME` appended, for that container alone. */
export const HOLLOW_ANNOTATION = 'actorlet.dev/hollow';

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function durationMs(text: string): number | null {
  const m = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text);
  const unit = UNIT_MS[m?.[2] ?? ''];
  return m === null || unit === undefined ? null : Number(m[1]) * unit;
}

type Setter = (life: Partial<HollowLife>, value: string) => boolean;
function ms(field: 'sandboxDelayMs' | 'pullDelayMs' | 'startDelayMs' | 'termDelayMs' | 'execDelayMs'): Setter {
  return (life, value) => {
    const d = durationMs(value);
    if (d === null) return false;
    life[field] = d;
    return true;
  };
}
function code(field: 'exitCode' | 'termExitCode' | 'execExitCode'): Setter {
  return (life, value) => {
    if (!/^\d{1,3}$/.test(value) || Number(value) > 255) return false;
    life[field] = Number(value);
    return true;
  };
}
function words(field: 'sandboxError' | 'pullError' | 'startError' | 'exitReason'): Setter {
  return (life, value) => {
    life[field] = value;
    return value !== '';
  };
}
const KEYS: Readonly<Record<string, Setter>> = {
  sandboxDelay: ms('sandboxDelayMs'),
  sandboxError: words('sandboxError'),
  pullDelay: ms('pullDelayMs'),
  pullError: words('pullError'),
  startDelay: ms('startDelayMs'),
  startError: words('startError'),
  run: (life, value) => {
    const d = value === 'forever' ? null : durationMs(value);
    if (d === null && value !== 'forever') return false;
    life.runMs = d;
    return true;
  },
  exit: code('exitCode'),
  reason: words('exitReason'),
  term: (life, value) => {
    if (value === 'ignore' || value === 'obey') {
      life.obeysTerm = value === 'obey';
      return true;
    }
    return ms('termDelayMs')(life, value);
  },
  termExit: code('termExitCode'),
  exec: code('execExitCode'),
  execDelay: ms('execDelayMs'),
  writes: (life, value) => {
    if (!/^\d{1,15}$/.test(value)) return false;
    life.writtenBytes = Number(value);
    return true;
  },
  logEvery: (life, value) => {
    const d = durationMs(value);
    life.logEveryMs = d;
    return d !== null && d > 0;
  },
  jitter: (life, value) => {
    const n = Number(value);
    if (!(n >= 0 && n <= 1)) return false;
    life.jitter = n;
    return true;
  },
};

/**
 * Reads `startDelay=200ms,run=5s,exit=1`; several lives separated by `;` are used by restart attempt, the last one
 * repeating: `run=1s,exit=1;run=forever` fails once and then stays. `term=ignore` ignores the stop signal,
 * `term=300ms` takes that long to obey it. Throws {@link RuntimeRefusal} naming the key that is wrong.
 */
export function parseLife(text: string, attempt: number): Partial<HollowLife> {
  const lives = text.split(';');
  const chosen = lives[Math.min(attempt, lives.length - 1)] ?? '';
  const life: Partial<HollowLife> = {};
  for (const part of chosen.split(',')) {
    const word = part.trim();
    if (word === '') continue;
    const eq = word.indexOf('=');
    const key = eq < 0 ? word : word.slice(0, eq).trim();
    const value = eq < 0 ? '' : word.slice(eq + 1).trim();
    const set = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
    if (set === undefined) {
      throw new RuntimeRefusal(
        CODE.invalidArgument,
        `annotation ${HOLLOW_ANNOTATION}: unknown key ${JSON.stringify(key)}; known: ${Object.keys(KEYS).join(', ')}`,
      );
    }
    if (!set(life, value)) {
      throw new RuntimeRefusal(CODE.invalidArgument, `annotation ${HOLLOW_ANNOTATION}: bad value ${JSON.stringify(value)} for ${key}`);
    }
  }
  return life;
}

/** What the annotations of a pod or container say; `container` null: of the whole pod. */
export function annotatedLife(
  annotations: Readonly<Record<string, string>> | undefined,
  container: string | null,
  attempt: number,
): Partial<HollowLife> {
  const all = annotations?.[HOLLOW_ANNOTATION];
  const own = container === null ? undefined : annotations?.[`${HOLLOW_ANNOTATION}.${container}`];
  return {
    ...(all === undefined ? {} : parseLife(all, attempt)),
    ...(own === undefined ? {} : parseLife(own, attempt)),
  };
}
