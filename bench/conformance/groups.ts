/** The specs of Kubernetes' own end-to-end tests that say something about one node, in groups. Pure. */
import { createHash } from 'node:crypto';

export interface Group {
  name: string;
  has(spec: string): boolean;
}

/** They change the machine for all others, or take longer than all others together. */
const APART = /\[(?:Serial|Disruptive|Slow|Flaky)\]/;
/** What no gate of this release opens by default. */
const OFF = /\[Alpha\]|\[Feature:OffByDefault\]|\[Deprecated\]/;
const CONFORMANCE = /\[(?:Node)?Conformance\]/;
const FEATURE = /\[Feature:|\[FeatureGate:/;
/** Drivers whose volumes one node makes by itself; those of others ask for a cloud, a server or images of their own. */
const LOCAL_DRIVER = /\[Driver: (?:emptydir|hostPath|hostPathSymlink|local)\]/;
const DRIVER = /\[Driver: /;
const CLOUD = /\[Driver: (?:azure-disk|azure-file|cinder|vsphere|pd\.csi\.storage\.gke\.io)\]/;
/** They start a server in a pod, whose image has no stand-in, and wait five minutes for it. */
const SERVER = /\bNFS\b/;

/** The name of a spec that `e2e_node.test` alone has begins with this. */
export const OF_NODE_TESTS = 'e2e_node: ';
/** Measurements and fillings of a disk, which a machine that has other work is not for. */
const HEAVY = /\[Benchmark\]|\[Flaky\]|\[Feature:Eviction\]|Node Performance Testing|Resource-usage|Density/;

const of = (sig: string, ...tests: readonly ((spec: string) => boolean)[]) => ({
  has: (spec: string): boolean => !isOfNodeTests(spec) && spec.includes(`[${sig}]`) && tests.every((test) => test(spec)),
});
const is =
  (pattern: RegExp) =>
  (spec: string): boolean =>
    pattern.test(spec);
const not =
  (pattern: RegExp) =>
  (spec: string): boolean =>
    !pattern.test(spec);

/** The first that has a spec counts. */
export const GROUPS: readonly Group[] = [
  { name: 'node conformance', ...of('sig-node', is(CONFORMANCE), not(APART), not(OFF)) },
  { name: 'storage conformance', ...of('sig-storage', is(CONFORMANCE), not(APART), not(OFF)) },
  { name: 'node, others', ...of('sig-node', not(FEATURE), not(APART), not(OFF)) },
  { name: 'storage, others', ...of('sig-storage', not(FEATURE), not(DRIVER), not(APART), not(OFF)) },
  { name: 'node, features', ...of('sig-node', not(APART), not(OFF)) },
  { name: 'node, serial and slow', ...of('sig-node', not(OFF)) },
  { name: 'storage, drivers of one node', ...of('sig-storage', is(LOCAL_DRIVER), not(APART), not(OFF), not(FEATURE)) },
  { name: 'storage, CSI hostpath', ...of('sig-storage', is(/\[Driver: csi-hostpath\]/), not(APART), not(OFF), not(FEATURE)) },
  { name: 'apps conformance', ...of('sig-apps', is(CONFORMANCE), not(APART), not(OFF)) },
  { name: 'network conformance', ...of('sig-network', is(CONFORMANCE), not(APART), not(OFF)) },
  {
    name: 'other conformance',
    has: (spec) => !isOfNodeTests(spec) && is(CONFORMANCE)(spec) && not(APART)(spec) && not(OFF)(spec) && not(/\[sig-storage\]/)(spec),
  },
  { name: 'storage, serial and slow', ...of('sig-storage', not(CLOUD), not(OFF), is(APART), not(DRIVER)) },
  { name: 'e2e_node', has: (spec) => isOfNodeTests(spec) && not(APART)(spec) && not(OFF)(spec) && not(HEAVY)(spec) },
  { name: 'e2e_node, serial', has: (spec) => isOfNodeTests(spec) && is(APART)(spec) && not(OFF)(spec) && not(HEAVY)(spec) },
];

export function isOfNodeTests(spec: string): boolean {
  return spec.startsWith(OF_NODE_TESTS);
}

export function groupOf(spec: string): string | undefined {
  return SERVER.test(spec) ? undefined : GROUPS.find((group) => group.has(spec))?.name;
}

/** In the order of the groups; within a group in that of a digest, so that each slice has something of each driver and pattern. */
export function inOrder(specs: readonly string[], groups: readonly string[]): string[] {
  return GROUPS.filter(({ name }) => groups.length === 0 || groups.includes(name)).flatMap(({ name }) =>
    specs
      .filter((spec) => groupOf(spec) === name)
      .map((spec) => ({ spec, digest: createHash('sha256').update(spec).digest('hex') }))
      .sort((a, b) => (a.digest < b.digest ? -1 : 1))
      .map(({ spec }) => spec),
  );
}
