/** A recorded value as data: its functions do nothing. */
import type { Json } from '@actorlet/replay/src/entries.ts';
import { revive } from '@actorlet/replay/src/values.ts';

const NO_FUNCTION = () => undefined;
export function plain(json: Json): unknown {
  return revive(json, { fn: () => NO_FUNCTION, promise: NO_FUNCTION, signal: () => new AbortController().signal });
}
