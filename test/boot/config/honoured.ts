/** Fields and gates that this node acts on: tests hold them against what the code asks. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { fields, gates } = JSON.parse(readFileSync(join(import.meta.dirname, 'honoured.json'), 'utf8')) as Record<
  'fields' | 'gates',
  string[]
>;
/** Configuration paths this node acts on. Together with `UNIMPLEMENTED` they are all there are. */
export const HONOURED: readonly string[] = fields;
/** Gates of the kubelet that change what this node does, or what it accepts. A test compares them with what the code asks. */
export const HONOURED_GATES: readonly string[] = gates;

/** Fields whose default is not that of the kubelet. `reference`: the kubelet's, as JSON. */
export const DIFFERENT_DEFAULTS: readonly { path: string; reference: string; why: string }[] = [
  { path: 'failCgroupV1', reference: 'true', why: 'cgroup v1 is supported and tested here: a host that has it starts' },
];
