/** The list of managers whose charts serve, beside the charts of what they serve. */
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { claimMachine } from '../../src/machines/allocation/claims/claimMachine.ts';
import { claimsMachine } from '../../src/machines/allocation/claims/claimsMachine.ts';
import { admissionMachine } from '../../src/machines/allocation/coordinator/admissionMachine.ts';
import { coordinatorMachine } from '../../src/machines/allocation/coordinator/coordinatorMachine.ts';
import { devicesMachine } from '../../src/machines/allocation/devices/devicesMachine.ts';
import { endpointMachine } from '../../src/machines/allocation/devices/endpointMachine.ts';
import { statusMachine } from '../../src/machines/pods/status/statusMachine.ts';
import { objectMachine } from '../../src/machines/services/objects/objectMachine.ts';
import { objectsMachine } from '../../src/machines/services/objects/objectsMachine.ts';
import { tokenMachine, tokensMachine } from '../../src/machines/services/objects/tokensMachine.ts';
import { volumeMachine } from '../../src/machines/services/volumes/volumeMachine.ts';
import { volumesMachine } from '../../src/machines/services/volumes/volumesMachine.ts';

const SERVERS: readonly (readonly [manager: AnyStateMachine, each: string, of: AnyStateMachine | null])[] = [
  [statusMachine, '', null],
  [coordinatorMachine, 'pod that asks', admissionMachine],
  [objectsMachine, 'Secret or ConfigMap', objectMachine],
  [tokensMachine, 'token', tokenMachine],
  [volumesMachine, 'volume', volumeMachine],
  [devicesMachine, 'plugin', endpointMachine],
  [claimsMachine, 'claim', claimMachine],
];

function nodesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap((child) => nodesOf(child as AnyStateNode))];
}

/** Lasting or passing states without states of their own, and how many of all transitions name a state to go to. */
function counted({ root }: AnyStateMachine): { states: string[]; all: number; leading: number } {
  const nodes = nodesOf(root);
  const transitions = nodes.flatMap((n) => [...[...n.transitions.values()].flat(), ...(n.always ?? [])]);
  return {
    states: nodes.filter((n) => n !== root && Object.keys(n.states).length === 0).map((n) => n.path.join('.')),
    all: transitions.length,
    leading: transitions.filter((t) => t.target !== undefined).length,
  };
}

export function lives(): string {
  const rows = SERVERS.map(([manager, each, of]) => {
    const { states, all, leading } = counted(manager);
    const named = states.length === 0 ? 'none' : states.map((s) => `\`${s}\``).join(', ');
    const life = of === null ? '' : `${each}: \`${of.id}\`, ${counted(of).states.length} states`;
    return `| \`${manager.id}\` | ${named} | ${leading} of ${all} | ${life} |`;
  });
  return ['| chart | its states | transitions that lead to a state | a chart for each |', '|---|---|---|---|', ...rows].join('\n');
}
