/** What the status of a pod says of its resources as a whole (KEP-5419). Pure. */

import type { ResourceRequirements } from '../../kube/podTable.ts';
import { addQuantities, canonicalQuantity } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { RESIZABLE } from './amounts.ts';
import { heldLimit, podTotal } from './resources.ts';

export interface ShownResources {
  /** What it asks for and is held to, without its overhead; absent: neither. */
  resources?: ResourceRequirements;
  /** What it was granted, its overhead included; absent: it asks for nothing. */
  allocatedResources?: Record<string, Quantity>;
}

/** Worked out once per pod: each of its statuses says it. */
export function shownResources(pod: Pod): ShownResources {
  const known = REMEMBERED.get(pod) ?? workedOut(pod);
  REMEMBERED.set(pod, known);
  return known;
}
const REMEMBERED = new WeakMap<Pod, ShownResources>();

function workedOut(pod: Pod): ShownResources {
  const { spec } = pod;
  const own = spec.resources ?? {};
  const requests = {
    ...list(Object.keys(own.requests ?? {}), (r) => own.requests?.[r]),
    ...list(RESIZABLE, (r) => podTotal(pod, 'requests', r)),
  };
  const limits = { ...list(Object.keys(own.limits ?? {}), (r) => own.limits?.[r]), ...list(RESIZABLE, (r) => heldLimit(pod, r)) };
  const resources = { ...some({ limits }), ...some({ requests }) };
  const all = [spec, ...spec.containers, ...(spec.initContainers ?? [])].flatMap((c) => Object.keys(c.resources?.requests ?? {}));
  const allocatedResources = list([...new Set([...all, ...Object.keys(spec.overhead ?? {})])].sort(), (r) => {
    const parts = [podTotal(pod, 'requests', r), spec.overhead?.[r]].filter((q) => q !== undefined);
    return parts.length === 0 ? undefined : addQuantities(parts);
  });
  return { ...some({ resources }), ...some({ allocatedResources }) };
}

function list<R extends string>(names: readonly R[], of: (r: R) => Quantity | undefined): Record<string, Quantity> {
  return Object.fromEntries(
    names.flatMap((r) => {
      const amount = of(r);
      return amount === undefined ? [] : [[r, canonicalQuantity(amount)]];
    }),
  );
}

/** Without what is empty. */
function some<T extends Record<string, object>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => Object.keys(value).length > 0)) as Partial<T>;
}
