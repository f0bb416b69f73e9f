/**
 * Config maps and secrets of the simulated cluster, what becomes of them, and pods that name them: in volumes, in projected
 * volumes beside a token, and in the environment. Each value of an object says which version of which object it is.
 */

import type { FaultSpec } from '@actorlet/faults/src/types.ts';
import { nodeName } from '@actorlet/world/src/paths.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../entries.ts';
import { type SimObject, type SimPod, versionText } from './subjects.ts';

/** Key that each version has. */
const STEADY_KEY = 'rev';
/** Prefix of the variables that are a whole config map. */
export const ENV_PREFIX = 'CM_';
/** Variable that is one value of a secret. */
export const ENV_SECRET = 'FROM_SECRET';
/** File of a projected volume that holds a token. */
export const TOKEN_FILE = 'token';
/** Shortest life of a token that an API server gives. */
const TOKEN_SECONDS = 600;

/** No volume of files and no variable is made of these. */
export const PULL_SECRETS = ['pull0', 'pull1'] as const;
export const CLAIMS = ['data0', 'data1'] as const;
/** Claim of a volume that a storage driver serves. */
export const DRIVER_CLAIM = 'disk0';
const CONFIG_MAPS = ['cm0', 'cm1', 'cm2'] as const;
const SECRETS = ['sec0', 'sec1'] as const;

/** Data of one version, by key: one key is always there, another only in every second version. */
export function dataOf(o: SimObject): Record<string, string> {
  return { [STEADY_KEY]: versionText(o), [`only-${o.rev % 2}`]: versionText(o) };
}

interface ManifestLike {
  spec: {
    containers: { volumeMounts?: object[]; env?: object[]; envFrom?: object[] }[];
    volumes?: object[];
  };
}

/** The same pod with references to objects of its node; of some pods nothing is changed. `always`: of none. */
export function nameObjects(rng: SimRng, pod: SimPod, o: { node: number; always?: boolean }): SimPod {
  if (!rng.chance(0.6) && o.always !== true) return pod;
  const own = (names: readonly string[]) => `${rng.pick(names) ?? names[0]}-${nodeName(o.node)}`;
  const configMap = own(CONFIG_MAPS);
  const secret = own(SECRETS);
  const optional = rng.chance(0.2) ? { optional: true } : {};
  const manifest = structuredClone(pod.manifest) as ManifestLike;
  const volumes: { name: string; [source: string]: unknown }[] = [];
  const some = (probability: number): boolean => rng.chance(probability) || o.always === true;
  if (some(0.5)) volumes.push({ name: 'conf', configMap: { name: configMap, ...optional } });
  if (some(0.4)) volumes.push({ name: 'keys', secret: { secretName: secret, ...optional } });
  if (some(0.4)) {
    const items = [{ key: STEADY_KEY, path: 'joined/rev' }];
    const token = { path: TOKEN_FILE, expirationSeconds: TOKEN_SECONDS };
    volumes.push({
      name: 'joined',
      projected: {
        sources: [
          { configMap: { name: configMap, items, ...optional } },
          { secret: { name: secret, ...optional } },
          { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
          { serviceAccountToken: token },
        ],
      },
    });
  }
  const { spec } = manifest;
  const [first] = spec.containers;
  const last = spec.containers.at(-1);
  if (first === undefined || last === undefined) return pod;
  spec.volumes = [...(spec.volumes ?? []), ...volumes];
  first.volumeMounts = [...(first.volumeMounts ?? []), ...volumes.map((v) => ({ name: v.name, mountPath: `/${v.name}` }))];
  if (some(0.3)) last.envFrom = [{ prefix: ENV_PREFIX, configMapRef: { name: configMap, ...optional } }];
  if (some(0.3))
    last.env = [...(last.env ?? []), { name: ENV_SECRET, valueFrom: { secretKeyRef: { name: secret, key: STEADY_KEY, ...optional } } }];
  return {
    ...pod,
    manifest,
    objects: [
      { kind: 'configMap', name: configMap },
      { kind: 'secret', name: secret },
    ],
  };
}

/** One object as the schedule goes on: made, changed, removed, made again. */
export class ObjectLine {
  readonly kind: SimObject['kind'];
  readonly name: string;
  readonly #rng: SimRng;
  readonly #add: Add;
  #rev = 0;

  constructor(rng: SimRng, o: { kind: SimObject['kind']; name: string; add: Add }) {
    this.#rng = rng;
    this.#add = o.add;
    this.kind = o.kind;
    this.name = o.name;
  }
  put(at: number): void {
    const { kind, name } = this;
    this.#add(at, { kind: 'object.put', object: { kind, name, rev: this.#rev++, immutable: this.#rng.chance(0.12) } });
  }
  remove(at: number): void {
    this.#add(at, { kind: 'object.remove', object: { kind: this.kind, name: this.name } });
  }
}

/** Every config map and secret that drawn pods of a node may name. */
export function objectLines(rng: SimRng, o: { node: number; add: Add }): ObjectLine[] {
  return lines(rng, o, { configMap: CONFIG_MAPS, secret: SECRETS });
}

function lines(
  rng: SimRng,
  o: { node: number; add: Add },
  names: Readonly<Partial<Record<SimObject['kind'], readonly string[]>>>,
): ObjectLine[] {
  return (Object.keys(names) as SimObject['kind'][]).flatMap((kind) =>
    (names[kind] ?? []).map((base) => new ObjectLine(rng.fork(base), { kind, name: `${base}-${nodeName(o.node)}`, add: o.add })),
  );
}

function lineLife(mine: SimRng, { line, spanMs }: { line: ObjectLine; spanMs: number }): void {
  let at = mine.chance(0.8) ? 0 : mine.next() * spanMs * 0.5;
  line.put(at);
  const everyMs = mine.pick([3_000, 15_000, 60_000] as const) ?? 15_000;
  for (;;) {
    at += mine.between(100, 2 * everyMs);
    if (at >= spanMs) break;
    if (mine.chance(0.7)) line.put(at);
    else {
      line.remove(at);
      at += mine.chance(0.3) ? mine.between(0, 200) : mine.between(200, 15_000);
      line.put(at);
    }
  }
}

const OF_OBJECTS = ['configmaps', 'secrets', 'serviceaccounts/token'] as const;

/** What others do to the objects of a node, and what comes between the node and them. */
export function objectLife(rng: SimRng, o: { spanMs: number; node: number }, add: Add): void {
  for (const line of objectLines(rng, { node: o.node, add })) lineLife(rng.fork(line.name), { line, spanMs: o.spanMs });
  const beside = rng.fork('beside');
  for (const line of lines(beside, { node: o.node, add }, { pullSecret: PULL_SECRETS, claim: CLAIMS }))
    lineLife(beside.fork(line.name), { line, spanMs: o.spanMs });
  const trouble = rng.fork('trouble');
  if (!trouble.chance(0.5)) return;
  for (let i = 1 + trouble.int(4); i > 0; i--)
    add(trouble.next() * o.spanMs, objectTrouble(trouble), Math.round(trouble.between(500, 12_000)));
}

/** The claim that pods share whose volumes come of a driver. */
export function driverClaimLife(rng: SimRng, o: { spanMs: number; node: number }, add: Add): void {
  for (const line of lines(rng, { node: o.node, add }, { claim: [DRIVER_CLAIM] })) lineLife(rng.fork('life'), { line, spanMs: o.spanMs });
}

export function objectTrouble(rng: SimRng): FaultSpec {
  const select = { resources: [rng.pick(OF_OBJECTS) ?? 'secrets'] };
  if (rng.chance(0.3) && select.resources[0] !== 'serviceaccounts/token') {
    return {
      kind: 'api.watch',
      delayMs: 0,
      probability: 1,
      select,
      action: rng.pick(['silence', 'truncate', 'close'] as const) ?? 'close',
    };
  }
  return {
    kind: 'api.call',
    probability: rng.chance(0.5) ? 1 : rng.next(),
    select,
    action: rng.pick(['delay', 'error', 'error', 'lost-without-effect'] as const) ?? 'error',
    delayMs: Math.round(rng.between(10, 6_000)),
    status: rng.pick([403, 404, 429, 500, 503] as const) ?? 500,
  };
}
