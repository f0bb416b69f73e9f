/** Objects of one resource, by namespace and name, with an index for each field that a selector asked for. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { fieldOf, type Pin } from './kubeSelectors.ts';

export class KubeTable {
  readonly #objects: Map<string, KubeObject>;
  /** By field and value: keys of the objects. An index is made when its field is asked for the first time. */
  readonly #indexes = new Map<string, Map<string, Set<string>>>();

  constructor(objects: Iterable<readonly [string, KubeObject]> = []) {
    this.#objects = new Map(objects);
  }

  copy(): KubeTable {
    return new KubeTable(this.#objects);
  }

  get(key: string): KubeObject | undefined {
    return this.#objects.get(key);
  }

  set(key: string, object: KubeObject): void {
    const before = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const [field, index] of this.#indexes) {
      const [was, is] = [before === undefined ? undefined : fieldOf(before, field), fieldOf(object, field)];
      if (was === is) continue;
      if (was !== undefined) remove(index, was, key);
      add(index, is, key);
    }
  }

  delete(key: string): void {
    const before = this.#objects.get(key);
    if (before === undefined) return;
    this.#objects.delete(key);
    for (const [field, index] of this.#indexes) remove(index, fieldOf(before, field), key);
  }

  /** Sorted by key. `pin`: only objects whose field has that value. */
  list(pin?: Pin): KubeObject[] {
    const keys = [...(pin === undefined ? this.#objects.keys() : (this.#indexOf(pin.field).get(pin.value) ?? []))].sort();
    return keys.flatMap((key) => this.#objects.get(key) ?? []);
  }

  #indexOf(field: string): Map<string, Set<string>> {
    const there = this.#indexes.get(field);
    if (there !== undefined) return there;
    const index = new Map<string, Set<string>>();
    for (const [key, object] of this.#objects) add(index, fieldOf(object, field), key);
    this.#indexes.set(field, index);
    return index;
  }
}

function add(index: Map<string, Set<string>>, value: string, key: string): void {
  const keys = index.get(value);
  if (keys === undefined) index.set(value, new Set([key]));
  else keys.add(key);
}

function remove(index: Map<string, Set<string>>, value: string, key: string): void {
  const keys = index.get(value);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(value);
}
