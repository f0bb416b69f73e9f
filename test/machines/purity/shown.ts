/** What a person would see of each machine in each state that stories reach, with secrets planted in its context. */
import { projectSnapshot } from '@actorlet/inspect/src/project.ts';
import { type AnyMachineSnapshot, type InspectionEvent, StateMachine } from 'xstate';
import { SharedMap } from '../../../src/machines/data/sharedMap.ts';
import { projectionOf } from '../../../src/machines/xstate/projection.ts';

const PLANTED = 'hunter2-planted';
/** Of one machine and state. */
const SAMPLES = 3;
/** Bytes of one projection. */
const BYTES_MAX = 16_384;

/** Fields that hold nothing else than secrets, or what an author or a container says. */
const SECRET = /^(token|password|auth|identityToken|registryToken|output|pem|key)$/;
/** Fields whose texts are all secrets. */
const SECRETS = /^(data|binaryData|stringData|annotations|labels|args|command|credentials)$/;

/** A copy of the data in it: containers get environments, objects of the API annotations, secret fields the planted text. */
function planted(value: unknown, key: string, seen: Map<object, unknown>): unknown {
  if (typeof value === 'string') return SECRET.test(key) || SECRETS.test(key) ? PLANTED : value;
  if (typeof value !== 'object' || value === null) return value;
  const known = seen.get(value);
  if (known !== undefined) return known;
  if (Array.isArray(value) || value instanceof Set) {
    const copy = [...value].map((v) => planted(v, key, seen));
    return value instanceof Set ? new Set(copy) : copy;
  }
  const inside = (name: string): string => (SECRETS.test(key) ? key : name);
  if (value instanceof Map) return new Map([...value].map(([k, v]) => [k, planted(v, inside(typeof k === 'string' ? k : ''), seen)]));
  if (Object.getPrototypeOf(value) !== Object.prototype || 'getSnapshot' in value) return value;
  const out: Record<string, unknown> = {};
  seen.set(value, out);
  for (const [name, v] of Object.entries(value)) out[name] = planted(v, inside(name), seen);
  if ('image' in value && 'name' in value)
    Object.assign(out, { env: [{ name: 'PASSWORD', value: PLANTED }], args: [PLANTED], command: [PLANTED] });
  if ('type' in value && value.type === 'image.ensure')
    Object.assign(out, { credentials: { ok: true, auths: [{ auth: { username: 'u', password: PLANTED } }] } });
  if ('namespace' in value && 'name' in value && 'uid' in value) Object.assign(out, { annotations: { a: PLANTED } });
  return out;
}

/** How often something was planted: a test that plants nothing shows nothing. */
function count(value: unknown): number {
  return JSON.stringify(value, (_k, v: unknown) => (v instanceof Map || v instanceof Set ? [...v] : v)).split(PLANTED).length - 1;
}

export function recordShown() {
  const samples = new Map<string, number>();
  const wrong = new Set<string>();
  const effects = new Set<string>();
  let plantedIn = 0;
  const look = (id: string, state: string, snapshot: AnyMachineSnapshot): void => {
    for (const [key, value] of Object.entries(snapshot.context as object)) {
      for (const what of liveIn(value)) effects.add(`${id}: context.${key} ${what}`);
    }
    if (projectionOf(snapshot.machine) === null) {
      wrong.add(`${id} does not say what it shows`);
      return;
    }
    const context: unknown = planted(snapshot.context, '', new Map());
    const shown = projectSnapshot({ ...snapshot, context });
    const text = JSON.stringify(shown);
    const at = `${id} ${state}`;
    if (typeof shown !== 'object') wrong.add(`${at}: ${String(shown)}`);
    if (text.includes(PLANTED)) wrong.add(`${at} shows a secret: ${text}`);
    if (Buffer.byteLength(text) > BYTES_MAX) wrong.add(`${at} shows ${Buffer.byteLength(text)} bytes`);
    // What does not survive JSON is shown as its type.
    if (/\((function|object|undefined|live object|\d+ (items|entries))/.test(text)) wrong.add(`${at} shows what is no plain data: ${text}`);
    if (samples.get(at) === 1) plantedIn += Math.min(1, countSafely(context));
  };
  return {
    wrong,
    /** Fields of contexts that are no data. */
    effects,
    /** Machines and states in whose context something secret stood. */
    get planted() {
      return plantedIn;
    },
    see(e: InspectionEvent): void {
      if (e.type !== '@xstate.microstep' && e.type !== '@xstate.snapshot') return;
      const snapshot = e.snapshot as AnyMachineSnapshot;
      if (!(snapshot.machine instanceof StateMachine)) return;
      const { id } = snapshot.machine.root;
      for (const node of snapshot._nodes) {
        if (Object.keys(node.states).length > 0) continue;
        const state = node.path.join('.');
        const n = samples.get(`${id} ${state}`) ?? 0;
        if (n >= SAMPLES) continue;
        samples.set(`${id} ${state}`, n + 1);
        look(id, state, snapshot);
      }
    },
  };
}

/** What is no data in a value: functions, actors, signals and other objects that live, by the way to them. */
export function liveIn(value: unknown, way = '', seen = new Set<unknown>()): string[] {
  if (typeof value === 'function') return [`${way} (function)`];
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  const inside = (entries: Iterable<readonly [unknown, unknown]>): string[] =>
    [...entries].flatMap(([key, v]) => liveIn(v, `${way}.${String(key)}`, seen));
  if (value instanceof Error || value instanceof Date || ArrayBuffer.isView(value)) return [];
  if (Array.isArray(value) || value instanceof Set) return [...value].flatMap((v) => liveIn(v, `${way}[]`, seen));
  if (value instanceof Map || value instanceof SharedMap) return [...value.values()].flatMap((v) => liveIn(v, `${way}{}`, seen));
  const proto: unknown = Object.getPrototypeOf(value);
  if (proto === Object.prototype || proto === null) return inside(Object.entries(value));
  return [`${way} (${value.constructor.name})`];
}

function countSafely(context: unknown): number {
  try {
    return count(context);
  } catch {
    // Live objects may hold cycles.
    return 0;
  }
}
