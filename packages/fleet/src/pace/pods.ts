/**
 * The way of a node to the API server, with new pods taken as there is room. Thousands of pods that all begin at once would each
 * get so little of the thread that their requests end in timeouts, and begin again.
 */
import { INITIAL_EVENTS_END } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { resourceOf } from '../calls.ts';
import type { FleetTurns } from './turns.ts';

/** A watch that says nothing for longer counts as dead: well below the shortest silence that a node bears. */
const BOOKMARK_EVERY_MS = 10_000;

interface Pace {
  turns: Pick<FleetTurns, 'room' | 'asking'>;
  clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>;
}

export function pacedPods(kube: KubeApi, o: Pace): KubeApi {
  return {
    server: kube.server,
    request: (request, opts) => o.turns.asking(() => kube.request(request, opts)),
    watch: async (request, opts) => {
      const watch = await kube.watch(request, opts);
      if (!watch.ok || resourceOf(request.path) !== 'pods') return watch;
      const { sendInitialEvents, resourceVersion } = request.query ?? {};
      return {
        ok: true,
        lines: paced(watch.lines, { ...o, initial: sendInitialEvents === 'true', version: resourceVersion, signal: opts.signal }),
      };
    },
    closeConnections: (of) => kube.closeConnections(of),
    reload: async () => kube.reload?.(),
    close: () => kube.close(),
  };
}

/** `initial`: what is there already comes first, which is not held up. `version`: what was seen before. */
async function* paced(lines: AsyncIterable<string>, o: Pace & { initial: boolean; version: string | undefined; signal: AbortSignal }) {
  let { initial, version } = o;
  for await (const line of lines) {
    if (!initial && line.startsWith('{"type":"ADDED"')) {
      const room = o.turns.room();
      while (!(await within(room, o))) if (version !== undefined) yield bookmark(version);
    }
    if (initial && line.includes(INITIAL_EVENTS_END)) initial = false;
    version = /"resourceVersion":"(\d+)"/.exec(line)?.[1] ?? version;
    yield line;
  }
}

/** An abort ends the wait too; the reader of the watch checks the signal. */
async function within(room: Promise<void>, { clock, signal }: Pick<Pace, 'clock'> & { signal: AbortSignal }): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = clock.setTimeout(() => resolve(false), BOOKMARK_EVERY_MS);
  const come = (): void => resolve(true);
  void room.then(come);
  signal.addEventListener('abort', come, { once: true });
  if (signal.aborted) come();
  const came = await promise;
  signal.removeEventListener('abort', come);
  clock.clearTimeout(timer);
  return came;
}

function bookmark(resourceVersion: string): string {
  return JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Pod', apiVersion: 'v1', metadata: { resourceVersion } } });
}
