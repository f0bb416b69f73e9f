/** Pods of the recorded answers of the reference's managers. */
import type { Container } from '../../../src/machines/kube/podTable.ts';
import type { Pod, Quantity } from '../../../src/machines/kube/types.ts';
import { container, pod } from '../pods/fixtures.ts';

/** Of each container a letter (c: regular, i: init, s: sidecar), and what it asks for. */
export function podOf(index: number, spec: readonly string[], amountsOf: (asked: string) => Record<string, Quantity>): Pod {
  const made = spec.map((text, i): [string, Container] => {
    const amounts = amountsOf(text.slice(1));
    const more = text[0] === 's' ? { restartPolicy: 'Always' as const } : {};
    return [text[0] ?? '', container(`c${i}`, { resources: { requests: amounts, limits: amounts }, ...more })];
  });
  const of = pod({
    initContainers: made.filter(([kind]) => kind !== 'c').map(([, c]) => c),
    containers: made.filter(([kind]) => kind === 'c').map(([, c]) => c),
  });
  return { ...of, metadata: { ...of.metadata, uid: `p${index}` } };
}
