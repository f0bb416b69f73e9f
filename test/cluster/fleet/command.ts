/** `actorlet fleet` as a process of a cluster test. */
import { type StartedProgram, startProgram } from '../../../packages/fleet/test/process.ts';

export { endPrograms as endFleetProcesses } from '../../../packages/fleet/test/process.ts';

export function startFleetProcess(...args: string[]): StartedProgram {
  return startProgram('scripts/node', ['packages/fleet/src/boot/main.ts', 'fleet', ...args]);
}

export const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
