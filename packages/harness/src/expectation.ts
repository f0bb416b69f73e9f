/** Expectations as a person writes them on a command line: `web phase=Running within 30s`. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { containersOf, isReady, type PodView } from './history.ts';
import { PHASES, type PodHandle, STAYS_DEFAULT_MS } from './pod.ts';

export interface Expectation {
  /** As it was written. */
  text: string;
  /** Name or `namespace/name`; '' for every pod of the run. */
  pod: string;
  /**
   * Resolves when it came true, rejects with what was seen instead. `fresh`: the pod was only just made, so what is to hold
   * `for TIME` may take 30 s to begin.
   */
  check(pod: PodHandle, o?: { fresh: boolean }): Promise<void>;
}

const EXPECTATION_HELP =
  '[POD] CONDITION [within TIME | for TIME]; CONDITION: phase=NAME[|NAME], ready, unready, gone, restarts=N (also >= <= > <), exit=CODE, reason=WORD, log~REGEXP; TIME: 500ms, 30s, 2m';
const WITHIN_DEFAULT_MS = 30_000;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

const SHAPE =
  /^(?:(?<pod>[a-z0-9][-a-z0-9./]*)\s+)??(?<what>(?:ready|unready|gone)(?=\s|$)|(?:phase|restarts|exit|reason|log)(?=[=<>~]).*?)(?:\s+(?<how>within|for)\s+(?<time>\S+))?$/s;

/** @throws Error that names what is wrong with the text. */
export function parseExpectation(text: string): Expectation {
  const fail = (why: string): never => {
    throw new Error(`expectation ${JSON.stringify(text)}: ${why}`);
  };
  const found = SHAPE.exec(text.trim())?.groups;
  if (found === undefined) return fail(`must be ${EXPECTATION_HELP}`);
  const { pod = '', what = '', how, time } = found;
  const ms = time === undefined ? WITHIN_DEFAULT_MS : parseTime(time);
  if (ms === undefined) return fail(`${JSON.stringify(time)} is no time such as 500ms, 30s or 2m`);
  const condition = parseCondition(what);
  if (typeof condition === 'string') return fail(condition);
  const { holds } = condition;
  if (how === undefined && condition.lasting === true && holds !== undefined) {
    const so = `have ${what}, and keep it`;
    return { text, pod, check: async (p) => void (await p.stays(so, holds, { forMs: STAYS_DEFAULT_MS, mayBegin: 'later' })) };
  }
  if (how !== 'for') return { text, pod, check: (p) => condition.within(p, ms) };
  if (holds === undefined) return fail(`${what} cannot be watched for a time; say within`);
  return {
    text,
    pod,
    async check(p, o) {
      if (o?.fresh === true) await condition.within(p, WITHIN_DEFAULT_MS);
      await p.stays(`keep ${what}`, holds, { forMs: ms });
    },
  };
}

/** Milliseconds of `500ms`, `1.5s`, `2m`; undefined for anything else. */
export function parseTime(text: string): number | undefined {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text);
  const unit = UNITS_MS[found?.[2] ?? ''];
  return found === null || unit === undefined ? undefined : Number(found[1]) * unit;
}

interface Condition {
  within(pod: PodHandle, timeoutMs: number): Promise<void>;
  holds?(pod: PodView): boolean;
  /** About a state to stay in (`phase=`, `restarts=0`), not one to reach: a glimpse of it at the start proves nothing. */
  readonly lasting?: boolean;
}

function parseCondition(what: string): Condition | string {
  if (what === 'gone') return { within: (p, timeoutMs) => p.gone({ timeoutMs }) };
  if (what === 'ready') return { within: async (p, timeoutMs) => void (await p.ready({ timeoutMs })), holds: isReady };
  if (what === 'unready') return { within: async (p, timeoutMs) => void (await p.unready({ timeoutMs })), holds: (p) => !isReady(p) };
  const [, name = '', op = '', value = ''] = /^([a-z]+)(>=|<=|=|>|<|~)(.*)$/s.exec(what) ?? [];
  switch (name + (name === 'restarts' && op !== '~' ? '' : op)) {
    case 'phase=':
      return phaseIs(value);
    case 'restarts':
      return countIs(op, value);
    case 'exit=':
      return /^\d+$/.test(value)
        ? generic(what, (p) => ends(p).some((e) => e.exitCode === Number(value)))
        : `${JSON.stringify(value)} is no exit code`;
    case 'reason=':
      return value === '' ? 'reason= needs a word such as CrashLoopBackOff' : generic(what, (p) => reasons(p).includes(value));
    case 'log~':
      return logHas(value);
    default:
      return `${JSON.stringify(what)} is no condition; it must be ${EXPECTATION_HELP}`;
  }
}

function generic(what: string, holds: (p: PodView) => boolean): Condition {
  return { within: async (p, timeoutMs) => void (await p.where(`have ${what}`, holds, { timeoutMs })), holds };
}

function phaseIs(value: string): Condition | string {
  const names = value.split('|');
  const wanted = PHASES.filter((p) => names.includes(p));
  const wrong = names.find((n) => !PHASES.some((p) => p === n));
  if (wrong !== undefined) return `${JSON.stringify(wrong)} is no phase; phases are ${PHASES.join(', ')}`;
  return {
    within: async (p, timeoutMs) => void (await p.phase(wanted, { timeoutMs })),
    holds: (p) => wanted.some((w) => w === p.phase),
    lasting: true,
  };
}

function countIs(op: string, value: string): Condition | string {
  if (!/^\d+$/.test(value)) return `restarts${op} needs a whole number`;
  const n = Number(value);
  const fits = {
    '=': (r: number) => r === n,
    '>=': (r: number) => r >= n,
    '<=': (r: number) => r <= n,
    '>': (r: number) => r > n,
    '<': (r: number) => r < n,
  }[op];
  if (fits === undefined) return `restarts${op} is no comparison`;
  // Restarts are only ever added: a bound from below that holds once holds for good.
  return { ...generic(`restarts${op}${n}`, (p) => fits(p.restarts)), lasting: !op.startsWith('>') };
}

function logHas(value: string): Condition | string {
  try {
    const pattern = new RegExp(value, 'm');
    return { within: async (p, timeoutMs) => void (await p.logged(pattern, { timeoutMs })) };
  } catch (error) {
    return messageOf(error);
  }
}

const ends = (p: PodView) => containersOf(p).flatMap((c) => [c.state.terminated, c.lastState.terminated].filter((t) => t !== undefined));
const reasons = (p: PodView): string[] =>
  [
    p.pod.status?.reason,
    ...containersOf(p).flatMap((c) => [c.state.waiting?.reason, c.state.terminated?.reason, c.lastState.terminated?.reason]),
  ].filter((r) => r !== undefined);
