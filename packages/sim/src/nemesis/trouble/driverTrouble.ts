/**
 * What becomes of a node's storage driver while faults rain: it is slow to act or to answer, refuses, does what it then says
 * it did not, does not listen, goes and comes back, is started over.
 */

import type { CsiMethod } from '@actorlet/kubelet/machines/wire/csi.ts';
import { DRIVER_SOCKET } from '@actorlet/world/src/paths.ts';
import { burstsOfKinds, type Trouble, type TroubleOptions } from './faultBursts.ts';

const KINDS = ['slow', 'slow-answer', 'fails', 'fails', 'lost', 'lost', 'deaf', 'away', 'anew'] as const;
type Kind = (typeof KINDS)[number];
const METHODS: readonly CsiMethod[] = [
  'NodeStageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeUnstageVolume',
  'NodeGetCapabilities',
  'NodeGetInfo',
];
/** Between two kinds of trouble, and how long each lasts. */
const EVERY_MS = { min: 500, max: 6_000 } as const;
const FOR_MS = { min: 500, max: 15_000 } as const;
const SLOW_MS = 8_000;
/** Answers that say that there was no effect, and some that leave it open. */
const FINAL = [3, 13] as const;
const OPEN = [4, 10, 14] as const;

export function driverTrouble(o: TroubleOptions): Trouble {
  const { node, rng } = o;
  const { drivers, disk } = node;
  const driver = drivers.sockets.get(DRIVER_SOCKET);
  const ordinary = { latencyMs: drivers.latencyMs, answerMs: drivers.answerMs, fault: drivers.fault };

  // A driver that is started over may be of a version that cannot do as much.
  const capabilities = rng.fork('capabilities');

  const listens = (down: boolean): void => {
    if (driver !== undefined) driver.down = down;
  };
  const comes = (): void => {
    listens(false);
    driver?.capabilities.add('EXPAND_VOLUME');
    if (!disk.has(DRIVER_SOCKET)) disk.putSocket(DRIVER_SOCKET);
  };
  const restore = (): void => {
    Object.assign(drivers, ordinary);
    comes();
  };
  const refuse = (effect: boolean): void => {
    const method = rng.chance(0.3) ? undefined : rng.pick(METHODS);
    const probability = rng.chance(0.5) ? 1 : rng.next();
    const code = rng.pick(!effect && rng.chance(0.5) ? FINAL : OPEN) ?? 14;
    const chance = rng.fork('chance');
    drivers.fault = (_, called) =>
      (method ?? called) === called && chance.chance(probability) ? { code, details: 'injected failure', effect } : undefined;
  };
  const wrong: Readonly<Record<Kind, () => void>> = {
    slow: () => {
      drivers.latencyMs = () => rng.between(0, SLOW_MS);
    },
    'slow-answer': () => {
      drivers.answerMs = () => rng.between(1, SLOW_MS);
    },
    fails: () => refuse(false),
    lost: () => refuse(true),
    deaf: () => listens(true),
    away: () => {
      listens(true);
      disk.drop(DRIVER_SOCKET);
    },
    anew: () => {
      disk.putSocket(DRIVER_SOCKET);
      if (capabilities.chance(0.5)) driver?.capabilities.delete('EXPAND_VOLUME');
    },
  };
  return burstsOfKinds(o, { everyMs: EVERY_MS, forMs: FOR_MS, kinds: KINDS, wrong, restore });
}
