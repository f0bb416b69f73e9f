/** `topologyManagerPolicy` with its scope and options. Pure. */
import type { NodeConfig } from '../../config/config.ts';
import type { NumaNode } from '../numaNode.ts';
import { type OptionMistake, parseBool } from '../policyOptions.ts';
import type { NumaMap, TopologyPolicy } from './merge.ts';

/** What the topology manager works by; null under policy none. */
export interface TopologyPlan {
  policy: Exclude<TopologyPolicy, 'none'>;
  scope: 'container' | 'pod';
  map: NumaMap;
}

const CLOSEST = 'prefer-closest-numa-nodes';
const MAX_NODES = 'max-allowable-numa-nodes';
/** Most nodes, from the reference: with more there are too many sets of them. */
const NODES_MAX = 8;

interface TopologyOptions {
  closest: boolean;
  nodesMax: number;
}

/** With what is wrong with them, in the reference's words. */
export function readTopologyOptions(options: Readonly<Record<string, string>>): { options: TopologyOptions; mistakes: OptionMistake[] } {
  const read: TopologyOptions = { closest: false, nodesMax: NODES_MAX };
  const mistakes: OptionMistake[] = [];
  for (const [option, text] of Object.entries(options)) {
    const wrong = (what: string): number => mistakes.push({ option, what });
    if (option === CLOSEST) {
      const value = parseBool(text);
      if (value === null) wrong(`bad value for option "${option}": strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
      else read.closest = value;
    } else if (option === MAX_NODES) {
      const value = /^[+-]?\d{1,9}$/.test(text) ? Number(text) : null;
      if (value === null)
        wrong(`unable to convert policy option to integer "${option}": strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`);
      else if (value < NODES_MAX) wrong(`the minimum value of "${option}" should not be less than ${NODES_MAX}`);
      else read.nodesMax = value;
    } else wrong(`unknown Topology Manager Policy option: "${option}"`);
  }
  return { options: read, mistakes };
}

/** @throws in the reference's words where the policy cannot be on this machine. */
export function topologyPlan({ config: c }: NodeConfig, nodes: readonly NumaNode[]): TopologyPlan | null {
  const { topologyManagerPolicy: policy, topologyManagerScope: scope } = c;
  if (policy === 'none') return null;
  const { options, mistakes } = readTopologyOptions(c.topologyManagerPolicyOptions);
  const [mistake] = mistakes;
  if (mistake !== undefined) throw new Error(`topologyManagerPolicyOptions: ${mistake.what}`);
  if (options.closest && nodes.some((node) => node.distances === null))
    throw new Error('topologyManagerPolicyOptions: cannot discover NUMA topology: error getting NUMA distances from cadvisor');
  if (nodes.length > options.nodesMax)
    throw new Error(`topologyManagerPolicy: unsupported on machines with more than ${options.nodesMax} NUMA Nodes`);
  const distances = options.closest ? new Map(nodes.map(({ id, distances: of }) => [id, of ?? []])) : null;
  return { policy, scope, map: { nodes: nodes.map((node) => node.id), distances } } as TopologyPlan;
}
