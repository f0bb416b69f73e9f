/** What both sides of a recording agree on: how arguments are told apart, and what of them is shown to people. */
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from './entries.ts';

/** Ports that are no part of a recording: nothing that the tree decides comes from them, or they have their own way of it. */
export const OWN_WAY: ReadonlySet<string> = new Set(['clock', 'rng', 'entropy', 'yield', 'log', 'metrics', 'handling']);

/** Functions of the tree whose answer the outside needs at once. */
export const ANSWERS_AT_ONCE: ReadonlySet<string> = new Set(['admit', 'list', 'allocatable', 'get', '@@asyncIterator']);

/** A replay compares digests of this length; two different arguments share one with a chance of 2^-48. */
const DIGEST_CHARS = 12;
const BRIEF_CHARS_MAX = 160;
/** Members of a request that say which thing it is about, and are no secret. */
const BRIEF_KEYS = ['verb', 'path', 'name', 'namespace', 'uid', 'pod_sandbox_id', 'container_id', 'image', 'host', 'port'] as const;

export function shortDigest(digest: (text: string) => string, json: Json): string {
  return digest(JSON.stringify(json)).slice(0, DIGEST_CHARS);
}

/** For people: names and paths among the arguments. Values that may be secret are left out. */
export function briefOf(json: Json): string {
  const words: string[] = [];
  const see = (value: Json, deep: number): void => {
    if (typeof value === 'string' && deep === 1) words.push(value.slice(0, BRIEF_CHARS_MAX));
    else if (Array.isArray(value)) for (const item of value as readonly Json[]) see(item, deep + 1);
    else if (isRecord(value) && value.$ === undefined) {
      for (const key of BRIEF_KEYS)
        if (typeof value[key] === 'string' || typeof value[key] === 'number') words.push(`${key}=${value[key]}`);
      for (const key of ['metadata', 'config']) if (isRecord(value[key])) see(value[key] as Json, deep + 1);
    }
  };
  see(json, 0);
  return words.join(' ').slice(0, BRIEF_CHARS_MAX);
}

/** In place of a digest of arguments that {@link isSpelled}. */
export const SPELLED = '=';
/** Whether {@link briefOf} shows all of these arguments: one text, as most calls of the disk have. */
export function isSpelled(args: Json): boolean {
  if (!Array.isArray(args) || args.length !== 1) return false;
  const [only] = args as readonly Json[];
  return typeof only === 'string' && only.length <= BRIEF_CHARS_MAX;
}

/** Jitter makes fractions, which JSON would write in full. */
export function timerMs(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}

export function stepOf(e: Extract<SupervisionEvent, { kind: 'transition' }>): {
  path: string;
  from: string;
  to: string;
  event: string;
  reason: string;
} {
  return { path: e.path, from: e.from ?? '', to: e.to ?? '', event: e.event ?? '', reason: e.reason ?? '' };
}

/** Bodies of answers have figures of the process in them: they are not compared. */
export function withoutBody(json: Json): Json {
  return isRecord(json) && json.status !== undefined && json.body !== undefined ? { ...(json as Record<string, Json>), body: null } : json;
}

export function configJson(config: NodeConfig): Json {
  const { flags, config: kubelet } = config;
  return { flags, config: kubelet, gates: config.gates.list() } as unknown as Json;
}

/** @throws on what {@link configJson} never wrote. */
export function configOf(json: Json): NodeConfig {
  const { flags, config, gates } = json as unknown as Pick<NodeConfig, 'flags' | 'config'> & {
    gates: ReturnType<NodeConfig['gates']['list']>;
  };
  const by = new Map(gates.map((gate) => [gate.name, gate.enabled]));
  return {
    flags,
    config,
    gates: {
      enabled(name) {
        const enabled = by.get(name);
        if (enabled === undefined) throw new Error(`the recording knows no feature gate ${name}`);
        return enabled;
      },
      list: () => gates,
    },
  };
}

/** Numbers between 0 and 1 from a seed (mulberry32): jitter only, never keys. */
export function seeded(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
