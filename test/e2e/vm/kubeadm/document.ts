/** docs/cluster/kubeadm.md, which tests follow. */
import { accessSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { program } from '../../lab/cluster/controlPlane.ts';
import { RULE_PROGRAMS } from './images.ts';

const PROGRAMS = ['kubeadm', 'kubelet', 'kubectl', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'] as const;

/** Why these tests cannot run: a program is not there. */
export const whyNot = ((): string | undefined => {
  try {
    for (const name of PROGRAMS) program(name);
    for (const path of RULE_PROGRAMS) accessSync(path);
    return undefined;
  } catch (error) {
    return String(error);
  }
})();

/** The shell blocks of the document, by the title above them, and `cluster.yaml`. */
export const blocks = ((): ReadonlyMap<string, readonly string[]> => {
  const found = new Map<string, string[]>();
  let title = '';
  const document = readFileSync(join(import.meta.dirname, '../../../../docs/cluster/kubeadm.md'), 'utf8');
  for (const part of document.matchAll(/^## (.+)$|^```(sh|yaml)\n([\s\S]*?)^```$/gm)) {
    const name = part[2] === 'yaml' ? 'cluster.yaml' : title;
    if (part[1] !== undefined) title = part[1];
    else found.set(name, [...(found.get(name) ?? []), part[3] ?? '']);
  }
  return found;
})();

export function scriptOf(title: string, index = 0): string {
  const script = blocks.get(title)?.[index];
  if (script === undefined) throw new Error(`docs/cluster/kubeadm.md has no block ${index} below "${title}"`);
  return script;
}
