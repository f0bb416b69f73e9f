/** A fleet of nodes with odd shapes, and what a twin of it must have of them. */
import { readFileSync } from 'node:fs';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { runFrom } from '../../src/boot/from/command.ts';

export const ODD = `
apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: production }
spec:
  groups:
    - name: big
      nodes:
        - { name: ip-10-0-0-7.example.com, providerID: 'aws:///z1/i-0abc123', labels: { kubernetes.io/hostname: ip-10-0-0-7, rack: r1 } }
        - { name: ip-10-0-0-8.example.com, providerID: 'aws:///z1/i-0abc124', labels: { example.com/machine: i-0abc124, rack: r1 } }
      labels: { node.kubernetes.io/instance-type: m7g.16xlarge, topology.kubernetes.io/zone: z1, node-role.kubernetes.io/worker: '' }
      taints: ['only=batch:NoSchedule', 'quiet:PreferNoSchedule']
      version: v1.34.1-eks-113cf36
      machine: { kernel: 6.1.155-176.282.amzn2023.aarch64, osImage: Amazon Linux 2023, arch: arm64 }
      capacity: { cpu: 64, memory: 259784Mi, pods: 737, ephemeral-storage: 83873772Ki, hugepages-2Mi: 512Mi, example.com/gpu: 4 }
      allocatable: { cpu: 63770m, memory: 251204Mi, ephemeral-storage: '76224326324' }
    - { name: small, count: 3, unschedulable: true, capacity: { cpu: 1, memory: 1999Mi, pods: 8, ephemeral-storage: 0 }, runtimeHandlers: [gvisor] }
`;

/** What a scheduler and an autoscaler look at. */
export function factsOf({ metadata, spec, status }: KubeObject) {
  const { capacity, allocatable, nodeInfo, runtimeHandlers } = status as Record<string, Record<string, unknown>>;
  const labels = Object.entries(metadata.labels as Record<string, string>).filter(
    ([key]) => !/hostname$|^actorlet|^example.com\/machine/.test(key),
  );
  const { kernelVersion, osImage, architecture, operatingSystem, kubeletVersion } = nodeInfo ?? {};
  const { taints, unschedulable } = spec as Record<string, unknown>;
  return JSON.stringify({
    ...{ labels: labels.sort(), capacity, allocatable, taints, unschedulable, runtimeHandlers },
    ...{ kernelVersion, osImage, architecture, operatingSystem, kubeletVersion },
  });
}

export async function fromInto(
  out: string,
  o: { dumps?: string[]; kubeconfig?: string; keepNames?: boolean },
): Promise<{ text: string; said: string }> {
  let said = '';
  const say = (text: string): void => {
    said += text;
  };
  const plain = { dumps: [], kubeconfig: '', keepNames: false, name: 'twin', seed: 1, out };
  await runFrom({ ...plain, ...o }, { say, signal: new AbortController().signal });
  return { text: readFileSync(out, 'utf8'), said };
}
