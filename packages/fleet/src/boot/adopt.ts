/** What a fleet finds in the API when it starts, and takes away when it ends: its own nodes, and nobody else's. */

import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { toApiPod } from '@actorlet/kubelet/machines/pods/sources/apiPod.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { FLEET_LABEL } from '../file.ts';
import type { Fleet } from '../fleet.ts';
import { type Asking, asked } from '../watches/asking.ts';
import { items } from './api/lists.ts';
import { UsageError } from './args.ts';

const NAMES_SHOWN = 5;
const REMOVED_AT_ONCE = 16;
/** A fleet that ends waits no longer for an API server that is silent. */
const REMOVE_MS = 10_000;
const LOOK_MS = 60_000;

/**
 * Nodes of this fleet that are there have the pods that they had. @throws UsageError where nodes of these names are there that this
 * fleet did not make, Error where the API server cannot be asked.
 */
export async function adopt(fleet: Fleet, name: string, { kube, signal }: Asking): Promise<void> {
  const looking = { kube, signal: AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]) };
  try {
    const there = await fleetsOfNodes(looking);
    const names = fleet.members.map((m) => m.name).filter((of) => there.has(of));
    const others = names.filter((of) => there.get(of) !== name);
    if (others.length > 0) throw new UsageError(taken(others, name));
    if (names.length > 0) fleet.hold(await podsOf(new Set(names), looking));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new Error(`the API server ${kube.server} cannot be asked for nodes and pods: ${messageOf(error)}`, { cause: error });
  }
}

function taken(others: readonly string[], fleet: string): string {
  const shown = others.slice(0, NAMES_SHOWN).join(', ');
  const more = others.length > NAMES_SHOWN ? ', ...' : '';
  return `${others.length === 1 ? '1 node is' : `${others.length} nodes are`} there that the fleet ${fleet} did not make: ${shown}${more}; choose other names of nodes`;
}

/** By name of node; '': of none. */
async function fleetsOfNodes(o: Asking): Promise<Map<string, string>> {
  const fleets = new Map<string, string>();
  for await (const item of items({ path: '/api/v1/nodes', query: {} }, o)) {
    const { name, labels } = isRecord(item.metadata) ? item.metadata : {};
    const fleet = isRecord(labels) ? labels[FLEET_LABEL] : undefined;
    if (typeof name === 'string') fleets.set(name, typeof fleet === 'string' ? fleet : '');
  }
  return fleets;
}

async function podsOf(nodes: ReadonlySet<string>, o: Asking): Promise<Map<string, Pod[]>> {
  const pods = new Map<string, Pod[]>();
  for await (const item of items({ path: '/api/v1/pods', query: { fieldSelector: 'spec.nodeName!=' } }, o)) {
    const node = isRecord(item.spec) ? item.spec.nodeName : undefined;
    if (typeof node !== 'string' || !nodes.has(node)) continue;
    const pod = toApiPod(item);
    if (pod === null) continue;
    const list = pods.get(node);
    if (list === undefined) pods.set(node, [pod]);
    else list.push(pod);
  }
  return pods;
}

/**
 * Deletes these nodes; gives how many there were. The first that the API server does not delete ends it. @throws Error with how many
 * are left, and the API server's words.
 */
export async function removeNodes(names: readonly string[], o: Asking): Promise<number> {
  let [done, removed] = [0, 0];
  const left = [...names];
  const work = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const gone = await asked({ verb: 'DELETE', path: `/api/v1/nodes/${name}` }, o, { timeoutMs: REMOVE_MS });
      done += 1;
      if (gone !== null) removed += 1;
    }
  };
  const works = Array.from({ length: REMOVED_AT_ONCE }, () =>
    work().catch((error: unknown) => {
      left.length = 0;
      throw error;
    }),
  );
  const failed = (await Promise.allSettled(works)).find((it) => it.status === 'rejected');
  if (failed === undefined) return removed;
  throw new Error(`${names.length - done} of ${names.length} nodes were not removed from the API: ${messageOf(failed.reason)}`, {
    cause: failed.reason,
  });
}
