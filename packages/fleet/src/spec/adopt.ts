/** Nodes that others make, and that a fleet gives kubelets. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { parseLabelSelector } from '@actorlet/kubelet/machines/kube/read/labelSelector.ts';
import { type Delay, delayIn } from './delay.ts';
import { fieldsIn } from './fields.ts';
import { checkName } from './groups.ts';
import { ADOPT, ADOPT_NODES, REFUSE } from './table.ts';

export interface AdoptSpec {
  name: string;
  /** Every one that is there must match. */
  selector?: string;
  names?: readonly string[];
  providerIDs?: readonly string[];
  /** Whose shape nodes have that no group has the instance type of. */
  group?: string;
  registration: Delay;
  refuse: readonly RefuseSpec[];
}
interface RefuseSpec {
  as: 'noCapacity' | 'dead' | 'late';
  /** Either that part, drawn; or these, in the order in which they are adopted, from 1. */
  share?: number;
  order?: readonly number[];
  by: Delay;
}

const AT_ONCE: Delay = { fromMs: 0, toMs: 0 };

export function decodeAdopt(adopt: MapReader, groups: readonly string[]): AdoptSpec {
  const { name, group } = fieldsIn(adopt, ADOPT, { name: '' });
  if (name !== '') checkName(adopt, name);
  if (group !== undefined && !groups.includes(group))
    adopt.wrong('group', `there is no group ${JSON.stringify(group)}; known: ${groups.join(', ')}`);
  const registration = delayIn(adopt, 'registration') ?? AT_ONCE;
  const which = adopt.map('nodes');
  if (which === undefined && !adopt.has('nodes')) adopt.wrong('nodes', 'is missing; it says which nodes are adopted');
  const nodes = which === undefined ? {} : fieldsIn(which, ADOPT_NODES);
  if (which !== undefined) {
    if (Object.keys(nodes).length === 0) which.wrong('', `is empty; it needs ${Object.keys(ADOPT_NODES).join(', ')}`);
    const wrong = nodes.selector === undefined ? undefined : parseLabelSelector(nodes.selector);
    if (typeof wrong === 'string') which.wrong('selector', `cannot be read at ${JSON.stringify(wrong)}`);
    which.finish();
  }
  const refuse = adopt.maps('refuse').map(refuseIn);
  const shares = refuse.reduce((sum, { share = 0 }) => sum + share, 0);
  if (shares > 1) adopt.wrong('refuse', `has shares of ${shares} together, at most 1 is allowed`);
  adopt.finish();
  return { name, ...nodes, ...(group === undefined ? {} : { group }), registration, refuse };
}

function refuseIn(refuse: MapReader): RefuseSpec {
  const { as = 'dead', share, order } = fieldsIn(refuse, REFUSE, { as: 'dead' });
  if ((share === undefined) === (order === undefined)) refuse.wrong('', 'needs share or order, and not both');
  const by = delayIn(refuse, 'by');
  if (as === 'late' && by === undefined && !refuse.has('by')) refuse.wrong('by', 'is missing; late needs how much later');
  if (as !== 'late' && refuse.has('by')) refuse.wrong('by', 'belongs to late');
  refuse.finish();
  return { as, ...(share === undefined ? {} : { share }), ...(order === undefined ? {} : { order }), by: by ?? AT_ONCE };
}
