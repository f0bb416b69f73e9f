/** Bundles of facts about deaths: an actor that keeps them, and `/death` of the admin socket. */
import { liveMoment } from '@actorlet/kubelet/actors/edge/answers/liveMoment.ts';
import type { Extension, ExtensionHost } from '@actorlet/kubelet/actors/extension.ts';
import { podGroup } from '@actorlet/kubelet/machines/allocation/cgroups/names.ts';
import { deathsSpec } from './deaths.ts';
import { deathRoute } from './route.ts';

export function deathBundles({ config: { config: c, flags }, facts, inspect }: ExtensionHost): Extension {
  const { secrets, usage } = inspect;
  const { rootDir } = flags;
  const routes: Extension['routes'] = (ctx) => ({ get: { '/death': (req) => deathRoute(ctx, { rootDir, req }) } });
  // A recording of an older release says nothing of deaths.
  if (secrets === undefined || !(flags.deathsMax > 0)) return { routes };
  const deaths = deathsSpec({
    ...{ rootDir, secrets, usage },
    moment: ({ registry, ports }) => liveMoment({ registry, inspect, clock: ports.clock, faults: null }),
    podLogsDir: c.podLogsDir,
    max: flags.deathsMax,
    bytesMax: flags.deathsMaxKib * 1024,
    logLines: flags.deathsLogLines,
    stuckAfterMs: flags.deathsStuckAfter,
    recording: flags.record,
    podGroup: (pod) => podGroup(c, facts.cgroupDriver, pod),
  });
  return { routes, actors: { reclaim: [deaths] }, deaths: true };
}
