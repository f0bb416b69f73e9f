/** The node daemon with its real ports. */

import { deathBundles } from '@actorlet/deaths/src/extension.ts';
import { faultInjection } from '@actorlet/faults/src/extension.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { createNode } from '../actors/node.ts';
import { boot, processIo } from './boot.ts';
import { createRealPorts } from './dependencies/realPorts.ts';

/** Resolves with the exit code. */
export function runDaemon(): Promise<number> {
  return boot(process.argv.slice(2), process.env, {
    io: processIo(),
    wiring: {
      createPorts: createRealPorts,
      createNode: (config, ports, options) =>
        createNode(config, ports, { ...options, extensions: [faultInjection, deathBundles, shownPages] }),
    },
  });
}
