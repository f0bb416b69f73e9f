/** What metrics of changes of resources count. In the words of the reference. Pure. */

import { compareQuantity, isZeroQuantity } from '../../kube/quantity.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { amountsOf, RESIZABLE, type Resizable, resizableContainers } from '../../pod/resources/amounts.ts';

type Operation = 'add' | 'remove' | 'increase' | 'decrease';
export interface AskedChange {
  resource: Resizable;
  requirement: 'requests' | 'limits';
  operation: Operation;
}

/** Of each container, each resource and requirement for itself. */
export function askedChanges(before: Pod, after: Pod): AskedChange[] {
  if (before.spec === after.spec) return [];
  const old = new Map(resizableContainers(before).map((c) => [c.name, amountsOf(c)]));
  return resizableContainers(after).flatMap((container) => {
    const [was, now] = [old.get(container.name), amountsOf(container)];
    if (was === undefined) return [];
    return RESIZABLE.flatMap((resource) =>
      (['requests', 'limits'] as const).flatMap((requirement) => {
        const operation = operationOf(was[requirement][resource] ?? 0, now[requirement][resource] ?? 0);
        return operation === null ? [] : [{ resource, requirement, operation }];
      }),
    );
  });
}

function operationOf(was: Quantity, now: Quantity): Operation | null {
  if (isZeroQuantity(now)) return isZeroQuantity(was) ? null : 'remove';
  if (isZeroQuantity(was)) return 'add';
  const difference = compareQuantity(now, was);
  return difference === 0 ? null : difference < 0 ? 'decrease' : 'increase';
}
