/** Open watches by what they are about, so that a change is shown to those alone that it concerns. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { fieldOf, type Pin } from '../kubeSelectors.ts';

/** A watch, as the index needs it. */
export interface Indexed {
  /** Watches are shown a change in this order, which is the order in which they were opened. */
  readonly order: number;
  readonly resource: string;
  /** A value that a field of its objects has; undefined: it may be about each object of the resource. */
  readonly pin: Pin | undefined;
}

interface OfResource<W> {
  all: Set<W>;
  /** By field and value. */
  pinned: Map<string, Map<string, Set<W>>>;
}

export class WatchIndex<W extends Indexed> {
  readonly #resources = new Map<string, OfResource<W>>();

  add(watch: W): void {
    const { resource, pin } = watch;
    const of = this.#resources.get(resource) ?? { all: new Set(), pinned: new Map() };
    this.#resources.set(resource, of);
    if (pin === undefined) {
      of.all.add(watch);
      return;
    }
    const values = of.pinned.get(pin.field) ?? new Map<string, Set<W>>();
    of.pinned.set(pin.field, values);
    const watches = values.get(pin.value) ?? new Set();
    values.set(pin.value, watches.add(watch));
  }

  delete(watch: W): void {
    const { resource, pin } = watch;
    const of = this.#resources.get(resource);
    if (pin === undefined) {
      of?.all.delete(watch);
      return;
    }
    const values = of?.pinned.get(pin.field);
    const watches = values?.get(pin.value);
    watches?.delete(watch);
    if (watches?.size === 0) values?.delete(pin.value);
    if (values?.size === 0) of?.pinned.delete(pin.field);
  }

  /** Those that an object may concern, as it is now or as it was before. Others do not select it. */
  concerned(resource: string, object: KubeObject, before: KubeObject | undefined): readonly W[] {
    const of = this.#resources.get(resource);
    if (of === undefined) return [];
    const found = [...of.all];
    let sorted = true;
    for (const [field, values] of of.pinned) {
      const is = fieldOf(object, field);
      const was = before === undefined ? is : fieldOf(before, field);
      for (const value of was === is ? [is] : [is, was]) {
        for (const watch of values.get(value) ?? []) {
          sorted &&= watch.order > (found.at(-1)?.order ?? -1);
          found.push(watch);
        }
      }
    }
    return sorted ? found : found.sort((a, b) => a.order - b.order);
  }
}
