/** Ports whose events are left out: their streams stay open and say nothing. */
import type { Otherwise } from '@actorlet/replay/src/lenient/lenient.ts';

const STREAMS = new Map<string, (args: readonly unknown[]) => unknown>([
  ['cri.hints', ([signal]) => nothing(signal as AbortSignal)],
  ['sys.watchDir', () => ({ [Symbol.dispose]() {} })],
]);

/** @param ports Their names. Watches of the API server are its own matter. */
export function silenced(ports: ReadonlySet<string>): Otherwise {
  return (name, args) => {
    const stream = ports.has(name.slice(0, name.indexOf('.'))) ? STREAMS.get(name) : undefined;
    return stream === undefined ? undefined : { result: stream(args) };
  };
}

async function* nothing(signal: AbortSignal): AsyncGenerator<never, void, undefined> {
  if (!signal.aborted) await new Promise((ended) => signal.addEventListener('abort', ended, { once: true }));
}
