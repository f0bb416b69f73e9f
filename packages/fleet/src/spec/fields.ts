/** Fields of a table, read from one mapping. */

import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import type { ObjectOf, Shape, Typed } from '@actorlet/kubelet/machines/shape/shape.ts';
import { isScalar } from 'yaml';

type Table = Readonly<Record<string, Shape & Typed<unknown>>>;

/** Under their decoded names. A field that is wrong or missing is as in `stead`: the reader was told of it. */
export function fieldsIn<const F extends Table>(of: MapReader, table: F, stead: Partial<ObjectOf<F>> = {}): ObjectOf<F> {
  const read = Object.entries<Shape>(table).map(([name, shape]) => [shape.as ?? name, of.readOr(name, shape)] as const);
  return { ...stead, ...Object.fromEntries(read.filter(([, value]) => value !== undefined)) } as ObjectOf<F>;
}

/** A mapping of texts, such as labels, which may be empty: `node-role.kubernetes.io/worker: ''`. Empty where it is absent. */
export function textsOf(map: MapReader | undefined): Record<string, string> {
  if (map === undefined) return {};
  const texts = map.node.items.map(({ key, value }): [string, string] => {
    const name = String(key);
    if (!isScalar(value) || value.value !== '') return [name, map.text(name) ?? ''];
    // Asking makes the field known.
    map.get(name);
    return [name, ''];
  });
  return Object.fromEntries(texts);
}

/** Why the file of that name cannot be read; null: it can. */
export type Unreadable = (file: string) => string | null;

export function checkFiles(of: MapReader, o: { field: string; files: readonly string[]; unreadable: Unreadable }): void {
  for (const file of o.files) {
    const why = o.unreadable(file);
    if (why !== null) of.wrong(o.field, `${file} cannot be read: ${why}`);
  }
}
