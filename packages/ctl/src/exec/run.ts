/** `actorctl exec`: runs an offered command over its runtime's own protocol, with or without a terminal. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { ExecFlags, ExecIo } from './types.ts';

/** Before anything is asked of the node. @throws CtlError where `-it` has no terminal to work with. */
export function checkTerminal(io: ExecIo, { stdin, tty }: ExecFlags): void {
  if (tty && stdin && io.terminal?.input !== true) {
    throw new CtlError(EXIT.usage, 'exec: -t needs a terminal, and standard input is none. Leave -t out to pass input on.');
  }
}
