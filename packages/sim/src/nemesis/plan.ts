/** The schedule of a run that was not given one: of its scenario, or of its seed. */

import { keptPairs } from '@actorlet/world/src/identity/identity.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { SimOptions } from '../result.ts';
import { drawSchedule } from './draw.ts';
import type { Fault } from './faults.ts';
import { scenarioSchedule } from './scenario.ts';

export function planned(
  o: Pick<SimOptions, 'faults' | 'scenario'>,
  x: { rng: SimRng; nodes: readonly SimNode[]; minutes: number; pods: number },
): readonly Fault[] {
  const { rng, nodes, minutes, pods } = x;
  const size = {
    ...(o.faults === undefined ? {} : { faults: o.faults }),
    minutes,
    pods,
    nodes: nodes.length,
    http: nodes.map((n) => n.tuning.http),
    api: nodes.map((n) => n.tuning.api),
    identity: nodes.map((n) => ({
      certificates: keptPairs(n.tuning.certificates).length > 0,
      edge: n.tuning.edge !== null,
      serving: keptPairs(n.tuning.certificates).includes('serving'),
    })),
    oneManifest: nodes.map((n) => n.tuning.oneManifest),
    packetFilters: nodes.map((n) => n.tuning.packetFilter),
    kernels: nodes.map((n) => n.tuning.kernel !== null),
    network: nodes.map((n) => n.tuning.network !== null),
    podIdentities: nodes.map((n) => n.tuning.podIdentities),
    drivers: nodes.map((n) => n.tuning.driver !== null),
    devices: nodes.map((n) => n.tuning.devices?.plugins.map((p) => p.resource) ?? []),
    claims: nodes.map((n) => n.tuning.claims !== null),
    cpus: nodes.map((n) => n.tuning.cpus),
    evicts: nodes.map((n) => n.tuning.eviction !== null),
    splitDisks: nodes.map((n) => n.tuning.splitDisks),
  };
  return o.scenario === undefined
    ? drawSchedule(rng, size)
    : scenarioSchedule(o.scenario, { ...size, rng, names: nodes.map((n) => n.name) });
}
