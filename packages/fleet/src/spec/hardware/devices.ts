/** Devices of the nodes of a group, for dynamic resource allocation. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { dnsSubdomain, qualifiedName } from '@actorlet/kubelet/machines/kube/names.ts';
import { parseQuantity } from '@actorlet/kubelet/machines/kube/quantity.ts';
import { isScalar } from 'yaml';
import { fieldsIn, textsOf } from '../fields.ts';
import { DEVICES, DRIVERS_MAX } from '../table.ts';

type Attribute = { string: string } | { int: number } | { bool: boolean };
export interface DevicesSpec {
  driver: string;
  count: number;
  attributes: Readonly<Record<string, Attribute>>;
  /** Quantities. */
  capacity: Readonly<Record<string, string>>;
}

/** As the API server has them. */
const DRIVER_MAX = 63;
const FIELDS_MAX = 32;
const TEXT_MAX = 64;

export function devicesIn(group: MapReader): DevicesSpec[] {
  const entries = group.maps('devices');
  if (entries.length > DRIVERS_MAX) group.wrong('devices', `has ${entries.length} entries, at most ${DRIVERS_MAX} are allowed`);
  const all = entries.slice(0, DRIVERS_MAX).map(deviceIn);
  for (const [i, { driver }] of all.entries()) {
    if (driver !== '' && all.findIndex((of) => of.driver === driver) < i) entries[i]?.wrong('driver', 'is that of another entry');
  }
  return all;
}

function deviceIn(entry: MapReader): DevicesSpec {
  const { driver, count } = fieldsIn(entry, DEVICES, { driver: '' });
  const wrong = driver === '' ? null : driver.length > DRIVER_MAX ? `must have at most ${DRIVER_MAX} characters` : dnsSubdomain(driver);
  if (wrong !== null) entry.wrong('driver', wrong);
  const [attributes, capacity] = [attributesIn(entry.map('attributes')), textsOf(entry.map('capacity'))];
  for (const [name, value] of Object.entries(capacity)) {
    if (parseQuantity(value) === undefined) entry.wrong('capacity', `${name} must be a quantity such as 80Gi, is ${JSON.stringify(value)}`);
  }
  const names = [...Object.keys(attributes), ...Object.keys(capacity)];
  for (const name of names) if (qualifiedName(name) !== null) entry.wrong('attributes', `${JSON.stringify(name)}: ${qualifiedName(name)}`);
  if (names.length > FIELDS_MAX) entry.wrong('attributes', `and capacity have ${names.length} entries, at most ${FIELDS_MAX} are allowed`);
  entry.finish();
  return { driver, count, attributes, capacity };
}

function attributesIn(map: MapReader | undefined): Record<string, Attribute> {
  const items = map?.node.items ?? [];
  return Object.fromEntries(
    items.flatMap(({ key, value }): [string, Attribute][] => {
      const name = String(key);
      map?.get(name);
      const of: unknown = isScalar(value) ? value.value : undefined;
      if (typeof of === 'boolean') return [[name, { bool: of }]];
      if (typeof of === 'number' && Number.isSafeInteger(of)) return [[name, { int: of }]];
      if (typeof of === 'string' && of.length <= TEXT_MAX) return [[name, { string: of }]];
      map?.wrong(name, `must be a whole number, true, false, or a text of at most ${TEXT_MAX} characters`);
      return [];
    }),
  );
}
