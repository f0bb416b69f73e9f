/** packaging/observe: rights that only read, of what the tree asks the API for, and volumes that nothing is written through. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { certificatesPath } from '@actorlet/kubelet/actors/services/certificates/client.ts';
import type { kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

const folder = join(import.meta.dirname, '../../../packaging/observe');
const documents = (name: string): Record<string, unknown>[] =>
  parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map((d) => d.toJS() as Record<string, unknown>);

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}
const rulesOf = (name: string): Rule[] => documents(name).flatMap(({ rules }) => (rules ?? []) as Rule[]);

/** `group/resource verb`. */
const rights = (rules: readonly Rule[]): string[] =>
  rules
    .flatMap((r) => r.apiGroups.flatMap((g) => r.resources.flatMap((resource) => r.verbs.map((verb) => `${g}/${resource} ${verb}`))))
    .sort();

const WATCHED = ['get', 'list', 'watch'] as const;
type Read = readonly [group: string, resource: string, verbs: readonly string[]] | 'written alone' | 'everybody may';

/** What the tree reads at each path. A path that is not in here does not compile. */
const READS = {
  pods: ['', 'pods', WATCHED],
  pod: ['', 'pods', ['get']],
  podStatus: 'written alone',
  podsIn: 'written alone',
  nodes: ['', 'nodes', ['list', 'watch']],
  node: ['', 'nodes', ['get']],
  nodeStatus: 'written alone',
  services: ['', 'services', ['list', 'watch']],
  claim: ['', 'persistentvolumeclaims', ['get']],
  persistentVolume: ['', 'persistentvolumes', ['get']],
  eventsIn: 'written alone',
  event: 'written alone',
  secret: ['', 'secrets', WATCHED],
  configMap: ['', 'configmaps', WATCHED],
  serviceAccount: ['', 'serviceaccounts', ['get']],
  token: 'written alone',
  leasesIn: ['coordination.k8s.io', 'leases', ['list', 'watch']],
  lease: ['coordination.k8s.io', 'leases', ['get']],
  runtimeClass: ['node.k8s.io', 'runtimeclasses', ['get']],
  csiDrivers: ['storage.k8s.io', 'csidrivers', ['get', 'list']],
  csiDriver: ['storage.k8s.io', 'csidrivers', ['get']],
  csiNodes: ['storage.k8s.io', 'csinodes', ['list']],
  csiNode: ['storage.k8s.io', 'csinodes', ['get']],
  volumeAttachment: ['storage.k8s.io', 'volumeattachments', ['get']],
  resourceClaim: ['resource.k8s.io', 'resourceclaims', ['get']],
  // Removed at a start by the kubelet alone.
  resourceSlices: 'written alone',
  version: 'everybody may',
} as const satisfies Record<keyof typeof kubePath, Read>;

const CERTIFICATE_READS = {
  trustBundles: ['certificates.k8s.io', 'clustertrustbundles', WATCHED],
  requests: ['certificates.k8s.io', 'podcertificaterequests', WATCHED],
  requestsIn: 'written alone',
} as const satisfies Record<keyof typeof certificatesPath, Read>;

/** What finding the kubelet asks for beside the tree. */
const FOUND: Read[] = [['', 'nodes/configz', ['get']]];

test('the roles allow what the tree reads, all of it, and nothing else', () => {
  const reads: Read[] = [...Object.values(READS), ...Object.values(CERTIFICATE_READS), ...FOUND];
  const needed = new Set(reads.flatMap((r) => (typeof r === 'string' ? [] : r[2].map((verb) => `${r[0]}/${r[1]} ${verb}`))));
  expect([...rights(rulesOf('rbac.yaml')), ...rights(rulesOf('secrets.yaml'))].sort()).toEqual([...needed].sort());
});

test('no role allows a write, a token, or the port of the kubelet through the API server', () => {
  for (const right of [...rights(rulesOf('rbac.yaml')), ...rights(rulesOf('secrets.yaml'))]) {
    expect(right).toMatch(/ (?:get|list|watch)$/);
    expect(right).not.toMatch(/\*|nodes\/proxy|\/token|pods\/./);
  }
  expect(rights(rulesOf('rbac.yaml')).join()).not.toContain('secrets');
});

test('the pod has two capabilities, reads the node alone, and makes no folder of it', () => {
  const [daemonSet] = documents('daemonset.yaml');
  const pod = (daemonSet as { spec: { template: { spec: PodSpec } } }).spec.template.spec;
  const [container] = pod.containers;
  for (const { securityContext } of [...pod.initContainers, ...pod.containers])
    expect(securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
  expect(container?.securityContext).toMatchObject({ privileged: false });
  expect(container?.securityContext.capabilities).toEqual({ drop: ['ALL'], add: ['SYS_CHROOT', 'DAC_READ_SEARCH'] });
  for (const { name, hostPath } of pod.volumes.filter((v) => v.hostPath !== undefined)) {
    expect(container?.volumeMounts.find((m) => m.name === name)?.readOnly, name).toBe(true);
    expect(hostPath?.type, name).toBe('Directory');
  }
});

interface Mounting {
  securityContext: { capabilities: object };
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
}
interface PodSpec {
  initContainers: Mounting[];
  containers: Mounting[];
  volumes: { name: string; hostPath?: { path: string; type: string } }[];
}
