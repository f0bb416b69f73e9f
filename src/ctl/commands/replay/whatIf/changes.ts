/** What an experiment changes: `--set`, `--drop` and `--fault`, as people write them. */
import { CtlError, EXIT } from '../../../../admin/client.ts';
import type { NodeConfig } from '../../../../machines/config/config.ts';
import { isRecord } from '../../../../machines/shape/conform.ts';
import { parseGoDuration } from '../../../../machines/text/go/goDuration.ts';
import { didYouMean } from '../../../../machines/text/nearest.ts';
import { configOf } from '../../../../replay/border.ts';
import type { Json } from '../../../../replay/entries.ts';
import type { Script } from '../../../../replay/loose/script.ts';

const GATES = 'featureGates.';

/** The recorded configuration with `path=value` in it: fields as in the kubelet's file, gates as `featureGates.NAME`. */
export function configWith(recorded: Json, sets: readonly string[]): NodeConfig {
  const json = structuredClone(recorded) as { config: Record<string, unknown>; gates: { name: string; enabled: boolean }[] };
  for (const set of sets) {
    const [, path, text] = /^([\w.]+)=(.*)$/s.exec(set) ?? [];
    if (path === undefined || text === undefined) throw new CtlError(EXIT.usage, `--set ${set}: say it like syncFrequency=10s.`);
    if (path.startsWith(GATES)) setGate(json.gates, path.slice(GATES.length), text);
    else setField(json.config, { path, text });
  }
  return configOf(json as unknown as Json);
}

function setGate(gates: { name: string; enabled: boolean }[], name: string, text: string): void {
  const gate = gates.find((one) => one.name === name);
  if (gate === undefined)
    throw new CtlError(
      EXIT.usage,
      `--set: no feature gate ${name}${didYouMean(
        name,
        gates.map((one) => one.name),
      )}.`,
    );
  if (text !== 'true' && text !== 'false') throw new CtlError(EXIT.usage, `--set ${GATES}${name}: say true or false.`);
  gate.enabled = text === 'true';
}

function setField(config: Record<string, unknown>, { path, text }: { path: string; text: string }): void {
  const parts = path.split('.');
  let at = config;
  for (const part of parts.slice(0, -1)) {
    const next = Object.hasOwn(at, part) ? at[part] : undefined;
    if (!isRecord(next)) throw noSuch(path, part, at);
    at = next;
  }
  const last = parts.at(-1) ?? '';
  if (!Object.hasOwn(at, last)) throw noSuch(path, last, at);
  at[last] = valueIn(text, at[last]);
}

function noSuch(path: string, part: string, at: object): CtlError {
  return new CtlError(EXIT.usage, `--set ${path}: the configuration has no ${part} there${didYouMean(part, Object.keys(at))}.`);
}

/** Durations are milliseconds in a recording. */
function valueIn(text: string, was: unknown): unknown {
  const duration = typeof was === 'number' || was === null ? parseGoDuration(text) : undefined;
  if (duration !== undefined) return duration;
  if (typeof was === 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export interface Dropped {
  /** UIDs. */
  readonly pods: readonly string[];
  readonly inputs: ReadonlySet<number>;
}

/** `pod=NAMESPACE/NAME`, `port=NAME` (its events), `kind=CODE` (inputs of this kind that nobody asked for). */
export function droppedBy(drops: readonly string[], o: { script: Script; uidsOf(pod: string): readonly string[] }): Dropped {
  const pods: string[] = [];
  const inputs = new Set<number>();
  for (const drop of drops) {
    const [, by, name = ''] = /^(pod|port|kind)=(.+)$/.exec(drop) ?? [];
    const found = by === 'pod' ? o.uidsOf(name) : by === 'port' ? eventsOf(o.script, name) : by === 'kind' ? ofKind(o.script, name) : null;
    if (found === null) throw new CtlError(EXIT.usage, `--drop ${drop}: say pod=NAMESPACE/NAME, port=NAME or kind=killed.`);
    if (found.length === 0) throw new CtlError(EXIT.usage, `--drop ${drop}: the recording has nothing of it.`);
    for (const one of found) {
      if (typeof one === 'string') pods.push(one);
      else inputs.add(one);
    }
  }
  return { pods, inputs };
}

/** Events that came through the functions which the tree gave to this port, and out of its streams. */
function eventsOf({ asked, settled, called }: Script, port: string): number[] {
  const own = asked.filter((ask) => ask.name.startsWith(`${port}.`));
  const streamed = own.filter((ask) => ask.name.endsWith('.next')).flatMap((ask) => settled.get(ask.call ?? -1)?.order ?? []);
  const back = own.flatMap(({ insides: { from, to } }) => Array.from({ length: to - from }, (_, i) => called.get(from + i) ?? []).flat());
  return [...streamed, ...back.map((call) => call.order)];
}

function ofKind({ called, done }: Script, kind: string): number[] {
  if (kind === 'called') return [...called.values()].flat().map((call) => call.order);
  return done.filter(({ input }) => input[0] === kind && input[0] !== 'told').map((one) => one.order);
}
