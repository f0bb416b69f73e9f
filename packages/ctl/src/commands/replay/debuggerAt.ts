/** Node's debugger, opened at a moment of a replay. */
import { open, url } from 'node:inspector';
import { runInThisContext } from 'node:vm';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';

const PORT_MAX = 65_535;

/** `[HOST:]PORT`. What it gives waits for a debugger the first time, and breaks. */
export function debuggerAt(address: string): () => void {
  const [, host = '127.0.0.1', port = ''] = /^(?:(.*):)?(\d{0,5})$/.exec(address) ?? [];
  if (!/^\d+$/.test(port) || Number(port) > PORT_MAX) throw new CtlError(EXIT.usage, `--inspect-brk ${address}: say it like 9229.`);
  return () => {
    if (url() === undefined) open(Number(port), host, true);
    runInThisContext('debugger');
  };
}
