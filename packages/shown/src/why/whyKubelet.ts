/** What another program, the kubelet of this node, has not done, and where this tree would do something else. Pure. */
import { disagreementText, notYet, standing } from '../observer/ledger.ts';
import type { WhyInput } from './whySources.ts';

export function kubeletLines(uid: string, { observer, nowMs }: Pick<WhyInput, 'observer' | 'nowMs'>): string[] {
  const lines = [
    ...notYet(observer, nowMs, { uid }),
    // What is missing is among what is not done yet.
    ...standing(observer).flatMap((d) => (d.uid === uid && d.sort !== 'missing' ? [disagreementText(d, nowMs)] : [])),
  ];
  return lines.length === 0 ? [] : ['Kubelet', ...lines.map((line) => `  ${line}`)];
}
