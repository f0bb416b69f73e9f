/** Entry of the node daemon. */
import { createNode } from '../actors/node.ts';
import { boot, processIo } from './boot.ts';
import { createRealPorts } from './dependencies/realPorts.ts';

process.exit(
  await boot(process.argv.slice(2), process.env, {
    io: processIo(),
    wiring: { createPorts: createRealPorts, createNode },
  }),
);
