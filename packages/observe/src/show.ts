/** `actorlet observe --show-kubelet`: says what an observer finds of the kubelet of this machine, and ends. Starts nothing, changes nothing. */
import { boot, processIo } from '@actorlet/kubelet/boot/boot.ts';
import { findTheKubelet } from './found/step.ts';

/** The exit code. */
export function showKubelet(argv: readonly string[]): Promise<number> {
  const nothing = (): never => {
    throw new Error('--show-kubelet starts nothing');
  };
  return boot(argv, process.env, { io: processIo(), wiring: { createPorts: nothing, createNode: nothing }, steps: [findTheKubelet] });
}
