/** Volumes of a fleet: the driver that it plays, and what goes wrong when volumes are attached. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { dnsSubdomain } from '@actorlet/kubelet/machines/kube/names.ts';
import { type Delay, delayIn } from '../delay.ts';
import { fieldsIn } from '../fields.ts';
import { STORAGE, VOLUME_FAULT } from '../table.ts';

export interface StorageSpec {
  /** Of its StorageClass. */
  name: string;
  driver: string;
  binding: 'Immediate' | 'WaitForFirstConsumer';
  /** That a node takes; 0: no limit. */
  volumesMax: number;
  provision: Delay;
  attach: Delay;
}
/** Which volumes; every list that is there must match. Of texts `*` is any text. */
export interface VolumeFault {
  fault: 'attach-fails' | 'attach-hangs';
  storageClasses?: readonly string[];
  volumes?: readonly string[];
  /** NAMESPACE/NAME. */
  claims?: readonly string[];
  /** That the driver fails with. */
  message: string;
}

const AT_ONCE: Delay = { fromMs: 0, toMs: 0 };
/** As the limit of the API server. */
const DRIVER_MAX = 63;
const MESSAGE = 'rpc error: code = Internal desc = the volume cannot be attached: the fleet file says so';

export function storageIn(storage: MapReader): StorageSpec {
  const { name, driver = `${name}.csi.actorlet.dev`, ...own } = fieldsIn(storage, STORAGE, { name: '' });
  const wrong = name === '' ? null : dnsSubdomain(name);
  if (wrong !== null) storage.wrong('name', wrong);
  const wrongDriver = driver.length > DRIVER_MAX ? `must have at most ${DRIVER_MAX} characters` : dnsSubdomain(driver);
  if (wrong === null && name !== '' && wrongDriver !== null)
    storage.wrong(storage.has('driver') ? 'driver' : 'name', `${wrongDriver}, is ${driver}`);
  const [provision, attach] = [delayIn(storage, 'provision') ?? AT_ONCE, delayIn(storage, 'attach') ?? AT_ONCE];
  storage.finish();
  return { name, driver, ...own, provision, attach };
}

/** Names and drivers are unique. */
export function checkStorage(entries: readonly MapReader[], storage: readonly StorageSpec[]): void {
  for (const field of ['name', 'driver'] as const) {
    const values = storage.map((of) => of[field]);
    for (const [i, value] of values.entries()) {
      if (value !== '' && values.indexOf(value) < i) entries[i]?.wrong(field, `is the same as that of storage[${values.indexOf(value)}]`);
    }
  }
}

/** Null: what is wrong with it was told. */
export function volumeFaultIn(map: MapReader): VolumeFault | null {
  const { fault, message = MESSAGE, ...which } = fieldsIn(map, VOLUME_FAULT);
  if (fault === undefined) return null;
  if (fault !== 'attach-fails' && map.has('message')) map.wrong('message', 'belongs to attach-fails');
  for (const claim of which.claims ?? [])
    if (!claim.includes('/')) map.wrong('claims', `must be NAMESPACE/NAME, is ${JSON.stringify(claim)}`);
  return { fault, message, ...which };
}
