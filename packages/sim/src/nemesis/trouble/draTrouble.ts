/**
 * What becomes of a node's drivers of dynamic resources while faults rain: they are slow or hang, refuse, fail a claim, do what they
 * do not answer, answer for another claim or not at all, list 10,000 devices, die, go away and come back, register twice.
 */
import type { Health } from '@actorlet/kubelet/machines/allocation/claims/types.ts';
import type { SimDraFault } from '@actorlet/world/src/plugins/dra.ts';
import { DRA_TYPE, draSocket, preparedDevices } from '@actorlet/world/src/plugins/machineDra.ts';
import { faultBursts, type Trouble, type TroubleOptions } from './faultBursts.ts';

const KINDS = [
  'slow',
  'hangs',
  'refuses',
  'fails',
  'lost',
  'done',
  'wrong',
  'none',
  'many',
  'dies',
  'away',
  'anew',
  'twice',
  'sick',
  'deaf',
] as const;
type Kind = (typeof KINDS)[number];
/** Between two kinds of trouble, and how long each lasts. */
const EVERY_MS = { min: 300, max: 4_000 } as const;
const FOR_MS = { min: 500, max: 12_000 } as const;
/** `away` at times lasts longer than the grace of ResourceSlices. */
const SLOW_MS = 8_000;
const MANY = 10_000;
const HEALTH: readonly Health[] = ['Healthy', 'Unhealthy', 'Unknown'];

export function draTrouble(o: TroubleOptions): Trouble {
  const { node, rng, clock } = o;
  const { dra, drivers, disk } = node;
  const names = node.tuning.claims?.drivers ?? [];
  const ordinary = { latencyMs: dra.latencyMs, fault: dra.fault };

  const listens = (socket: string, up: boolean): void => {
    const driver = drivers.sockets.get(socket);
    if (driver !== undefined) driver.down = !up;
    if (up) dra.back(socket);
    else dra.die(socket);
  };
  const leaves = (socket: string): void => {
    listens(socket, false);
    if (disk.has(socket)) disk.drop(socket);
  };
  const restore = (): void => {
    Object.assign(dra, ordinary);
    for (const name of names) {
      const socket = draSocket(name);
      const driver = dra.sockets.get(socket);
      if (driver !== undefined) driver.devices = ({ uid }) => preparedDevices(name, uid);
      if (driver?.down === true) listens(socket, true);
      if (!disk.has(socket)) disk.putSocket(socket);
      leaves(secondOf(name));
      drivers.sockets.delete(secondOf(name));
      dra.sockets.delete(secondOf(name));
    }
  };
  const met = (draw: () => SimDraFault): void => {
    const probability = rng.chance(0.5) ? 1 : rng.next();
    const chance = rng.fork('chance');
    dra.fault = () => (chance.chance(probability) ? draw() : undefined);
  };
  const wrong: Readonly<Record<Kind, (name: string) => void>> = {
    slow: () => {
      dra.latencyMs = () => rng.between(0, SLOW_MS);
    },
    hangs: () => {
      dra.latencyMs = () => Number.POSITIVE_INFINITY;
    },
    refuses: () => met(() => ({ kind: 'refuse', details: 'injected failure' })),
    fails: () => met(() => ({ kind: 'error', error: 'injected failure' })),
    lost: () => met(() => ({ kind: 'lost', effect: false })),
    done: () => met(() => ({ kind: 'lost', effect: true })),
    wrong: () => met(() => ({ kind: 'answer', answer: () => ({ other: { devices: [], error: '' } }) })),
    none: () => met(() => ({ kind: 'answer', answer: () => ({}) })),
    many: (name) => {
      const driver = dra.sockets.get(draSocket(name));
      if (driver !== undefined) driver.devices = ({ uid }) => preparedDevices(name, uid, MANY);
    },
    dies: (name) => listens(draSocket(name), false),
    away: (name) => leaves(draSocket(name)),
    anew: (name) => disk.putSocket(draSocket(name)),
    twice: (name) => second(node, name),
    sick: (name) => tell(o, name),
    deaf: (name) => dra.endHealth(draSocket(name), 'the driver ended it'),
  };
  return faultBursts({
    rng,
    clock,
    everyMs: EVERY_MS,
    forMs: FOR_MS,
    strike() {
      const kind = rng.pick(KINDS) ?? 'fails';
      const name = rng.pick(names) ?? '';
      o.on(`${name} ${kind}`);
      restore();
      wrong[kind](name);
      return restore;
    },
    heal: restore,
  });
}

const secondOf = (name: string): string => draSocket(`${name}-2`);

/** Another process of the same driver: what one has prepared the other knows. */
function second({ dra, drivers, disk, tuning }: TroubleOptions['node'], name: string): void {
  const socket = secondOf(name);
  const first = dra.sockets.get(draSocket(name));
  if (first === undefined) return;
  drivers.add(socket, { name, type: DRA_TYPE, versions: [...(tuning.claims?.versions ?? [])] });
  dra.add(socket, { ...first, down: false });
  disk.putSocket(socket);
}

function tell({ node: { dra }, rng }: TroubleOptions, name: string): void {
  const at = draSocket(name);
  const { health = null, prepared = [] } = dra.sockets.get(at) ?? {};
  const devices = [...prepared].map((uid) => ({
    ...{ pool: 'node', device: `${uid}-0`, message: 'told' },
    ...{ health: rng.pick(HEALTH) ?? 'Unknown', timeoutMs: 1_000 + rng.int(30_000) },
  }));
  if (health !== null) dra.tell(at, devices);
}
