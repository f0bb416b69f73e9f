/** The part of a container's resources that can change while it runs: requests and limits of cpu and memory. */
import { replacing } from '../../data/own.ts';
import type { Container } from '../../kube/podTable.ts';
import { compareQuantity, parseQuantity, quantityToInteger, quantityToMilli } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';

export const RESIZABLE = ['cpu', 'memory'] as const;
export type Resizable = (typeof RESIZABLE)[number];
type Some = Partial<Record<Resizable, Quantity>>;

/** Quantities as the pod writes them. */
export interface Amounts {
  readonly requests: Readonly<Some>;
  readonly limits: Readonly<Some>;
}
const KINDS = ['requests', 'limits'] as const;

function some(of: Readonly<Record<string, Quantity | undefined>> | undefined): Some {
  return Object.fromEntries(RESIZABLE.flatMap((r) => (of?.[r] === undefined ? [] : [[r, of[r]]])));
}
export function amountsOf({ resources }: Pick<Container, 'resources'>): Amounts {
  return { requests: some(resources?.requests), limits: some(resources?.limits) };
}
export function asksForNothing({ requests, limits }: Amounts): boolean {
  return Object.keys(requests).length + Object.keys(limits).length === 0;
}

/** The container with these amounts; its other resources are left as they are. */
export function withAmounts<C extends Pick<Container, 'resources'>>(container: C, amounts: Amounts): C {
  const changed = new Map<string, unknown>();
  for (const kind of KINDS) {
    const kept = Object.entries(container.resources?.[kind] ?? {}).filter(([name]) => !(RESIZABLE as readonly string[]).includes(name));
    const all = { ...Object.fromEntries(kept), ...amounts[kind] };
    changed.set(kind, Object.keys(all).length === 0 ? undefined : all);
  }
  return { ...container, resources: replacing(container.resources ?? {}, changed) };
}

/** The same amounts, however written; of one resource, or of both. */
export function sameAmounts(a: Amounts, b: Amounts, only?: Resizable): boolean {
  const equal = (x: Quantity | undefined, y: Quantity | undefined): boolean =>
    x === undefined || y === undefined ? x === y : compareQuantity(x, y) === 0;
  return RESIZABLE.every((r) => (only !== undefined && only !== r) || KINDS.every((kind) => equal(a[kind][r], b[kind][r])));
}

/** `base` with one resource of `of`. */
export function taking(base: Amounts, of: Amounts, resource: Resizable): Amounts {
  const one = (kind: (typeof KINDS)[number]): Some => some({ ...base[kind], [resource]: of[kind][resource] });
  return { requests: one('requests'), limits: one('limits') };
}

export const NONE = Number.POSITIVE_INFINITY;
/** Milli-CPUs or bytes. */
export function amountIn(quantity: Quantity | undefined, resource: Resizable): number {
  return resource === 'cpu' ? quantityToMilli(quantity) : quantityToInteger(quantity);
}
/** None is more than any. */
export function limitOf({ limits }: Amounts, resource: Resizable): number {
  return amountIn(limits[resource], resource) || NONE;
}

/** As it is written on a container when it is made, so that a later node agent knows what is in force. */
export function writeAmounts(amounts: Amounts): string {
  return JSON.stringify({ requests: some(amounts.requests), limits: some(amounts.limits) });
}
/** Amounts from a container's annotation. Null: nothing was written, or nothing that can be read. */
export function readAmounts(text: string | undefined): Amounts | null {
  if (text === undefined || text === '') return null;
  try {
    return amountsFrom(JSON.parse(text));
  } catch {
    return null;
  }
}
/** Amounts from plain data; null where that is no such thing. */
export function amountsFrom(value: unknown): Amounts | null {
  if (typeof value !== 'object' || value === null) return null;
  const read = (kind: (typeof KINDS)[number]): Some | null => {
    const of: unknown = (value as Record<string, unknown>)[kind] ?? {};
    if (typeof of !== 'object' || of === null) return null;
    const entries = Object.entries(of).filter(([name]) => (RESIZABLE as readonly string[]).includes(name));
    return entries.every(([, q]) => typeof q === 'string' || typeof q === 'number') &&
      entries.every(([, q]) => parseQuantity(q as Quantity) !== undefined)
      ? (Object.fromEntries(entries) as Some)
      : null;
  };
  const [requests, limits] = [read('requests'), read('limits')];
  return requests === null || limits === null ? null : { requests, limits };
}

/** In place of a container's name or id: the pod as a whole. */
export const WHOLE_POD = '';
export const NO_AMOUNTS: Amounts = { requests: {}, limits: {} };

/** Containers whose resources may change while they run: all but ephemeral ones. */
export function resizableContainers(pod: Pod): Container[] {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
}
/** Of each of them, and of the pod as a whole. */
export function samePodAmounts(a: Pod, b: Pod): boolean {
  const others = new Map(resizableContainers(b).map((c) => [c.name, amountsOf(c)]));
  return (
    sameAmounts(amountsOf(a.spec), amountsOf(b.spec)) &&
    resizableContainers(a).every((c) => sameAmounts(amountsOf(c), others.get(c.name) ?? NO_AMOUNTS))
  );
}
