/** What an experiment changes: `--set`, `--drop` and `--fault`, as people write them. */
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { decodeMerged } from '@actorlet/kubelet/boot/config/decode.ts';
import { applyDefaults } from '@actorlet/kubelet/boot/config/merge.ts';
import { getPath, isTree, type Tree, withPath } from '@actorlet/kubelet/boot/config/paths.ts';
import { runnable } from '@actorlet/kubelet/boot/config/runnable.ts';
import { validate } from '@actorlet/kubelet/boot/config/validate.ts';
import type { GateState, NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { createFeatureGates, gateRefusals } from '@actorlet/kubelet/machines/config/gates.ts';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import { configOf } from '@actorlet/replay/src/border.ts';
import type { Json } from '@actorlet/replay/src/entries.ts';
import type { Script } from '@actorlet/replay/src/lenient/script.ts';

const GATES = 'featureGates.';

/** The recorded configuration with `path=value` in it: fields and values as in the kubelet's file, gates as `featureGates.NAME`. */
export function configWith(recorded: Json, sets: readonly string[]): NodeConfig {
  const json = structuredClone(recorded) as unknown as { config: Tree; gates: GateState[] };
  for (const set of sets) {
    const [, path, text] = /^([\w.]+)=(.*)$/s.exec(set) ?? [];
    if (path === undefined || text === undefined) throw new CtlError(EXIT.usage, `--set ${set}: say it like syncFrequency=10s.`);
    if (path.startsWith(GATES)) setGate(json.gates, path.slice(GATES.length), text);
    else json.config = withPath(json.config, path, decodedField(json.config, { path, text }));
  }
  const config = configOf(json as unknown as Json);
  // What is wrong with the recorded one was so when its daemon ran.
  const before = problemsOf(configOf(recorded));
  const found = problemsOf(config).filter((problem) => !before.includes(problem));
  if (found.length > 0) throw new CtlError(EXIT.usage, `--set ${sets.join(' --set ')}: ${found.join('; ')}.`);
  return config;
}

/** Why the daemon would refuse to start, or start with something else. */
function problemsOf({ flags, config, gates: recorded }: NodeConfig): string[] {
  const set = recorded.list().filter((gate) => gate.enabled !== gate.default);
  const made = createFeatureGates(Object.fromEntries(set.map((gate) => [gate.name, gate.enabled])));
  const { gates } = made;
  const problems = [
    ...runnable({ config, flags, gates }).warnings,
    ...validate({ flags, config, gates, origins: new Map(), given: new Map() }),
  ];
  return [...gateRefusals(made).map(({ what }) => what), ...problems.map(({ where, what }) => `${where}: ${what}`)];
}

function setGate(gates: GateState[], name: string, text: string): void {
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

/** As the daemon reads it from a file: zero and null are the default, where the field has one. */
function decodedField(config: Tree, { path, text }: { path: string; text: string }): unknown {
  const plain = typeof fieldAt(config, path) === 'string' ? text : jsonOf(text);
  const { values, errors } = decodeMerged(withPath({}, path, plain), new Map());
  if (errors.length > 0) throw new CtlError(EXIT.usage, `--set ${path}=${text}: ${errors.map(({ what }) => what).join('; ')}.`);
  return getPath(applyDefaults(values), path);
}

function fieldAt(config: Tree, path: string): unknown {
  let at: unknown = config;
  for (const part of path.split('.')) {
    if (!isTree(at) || !Object.hasOwn(at, part)) {
      const near = isTree(at) ? didYouMean(part, Object.keys(at)) : '';
      throw new CtlError(EXIT.usage, `--set ${path}: the configuration has no ${part} there${near}.`);
    }
    at = at[part];
  }
  return at;
}

function jsonOf(text: string): unknown {
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
  readonly ports: ReadonlySet<string>;
}

/** `pod=NAMESPACE/NAME`, `port=NAME` (its events), `kind=CODE` (inputs of this kind that nobody asked for). */
export function droppedBy(
  drops: readonly string[],
  o: { script: Script; uidsOf(pod: string): readonly string[]; pods: readonly string[] },
): Dropped {
  const pods: string[] = [];
  const inputs = new Set<number>();
  const ports = new Set<string>();
  for (const drop of drops) {
    const [, by, name = ''] = /^(pod|port|kind)=(.+)$/.exec(drop) ?? [];
    const found = by === 'pod' ? o.uidsOf(name) : by === 'port' ? eventsOf(o.script, name) : by === 'kind' ? ofKind(o.script, name) : null;
    if (found === null) throw new CtlError(EXIT.usage, `--drop ${drop}: say pod=NAMESPACE/NAME, port=NAME or kind=killed.`);
    if (found.length === 0) {
      const pods = by === 'pod' ? ` It has the pods ${o.pods.join(', ')}.` : '';
      throw new CtlError(EXIT.usage, `--drop ${drop}: the recording has nothing of it.${pods}`);
    }
    if (by === 'port') ports.add(name);
    for (const one of found) {
      if (typeof one === 'string') pods.push(one);
      else inputs.add(one);
    }
  }
  return { pods, inputs, ports };
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
