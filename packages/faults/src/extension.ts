/** Fault injection of a node: an actor, its interceptors in front of the ports, and `/inject` of the admin socket. */

import type { AdminRoutes } from '@actorlet/kubelet/actors/edge/admin.ts';
import type { Extension, ExtensionHost } from '@actorlet/kubelet/actors/extension.ts';
import { SIGNAL_FACTS } from '@actorlet/kubelet/machines/config/evictionSignals.ts';
import { thresholdsOf } from '@actorlet/kubelet/machines/reclaim/eviction/thresholds.ts';
import { ActiveFaults } from './injector/activeFaults.ts';
import { injectorSpec } from './injector/injector.ts';
import { interceptPorts } from './injector/interceptors/ports.ts';
import { type FaultsAtWork, faultRoute } from './injector/route.ts';

/** At work where the node was started with `--actorlet-fault-injection`. Elsewhere it answers that it is off. */
export function faultInjection({ config, facts: { nodeName }, outside, ...host }: ExtensionHost): Extension {
  if (!config.flags.faultInjection) return { routes: routesOf(null) };
  const activeFaults = new ActiveFaults(outside.rng);
  const { staticPodURL: staticPodUrl } = config.config;
  outside.log.warn(
    { flag: '--actorlet-fault-injection' },
    'FAULT INJECTION IS ALLOWED: whoever may use the admin socket can make this node fail. Never on a node that matters',
  );
  const injector = injectorSpec({
    activeFaults,
    nodeName,
    httpSource: staticPodUrl !== '',
    looksAtMemory: thresholdsOf(config.config).thresholds.some((t) => SIGNAL_FACTS[t.signal].reading === 'memory'),
    state: () => host.tree().state(),
    kill: (path, by) => host.tree().kill(path, by),
    tap: (tap) => host.tree().tap(tap),
    record: host.record,
  });
  return {
    actors: { foundation: [injector] },
    ports: (ports) => interceptPorts(ports, { activeFaults, nodeName, staticPodUrl }),
    routes: routesOf(activeFaults),
    faults: activeFaults,
  };
}

const routesOf =
  (faults: FaultsAtWork | null): AdminRoutes =>
  (ctx) => ({ below: { '/inject': (req) => faultRoute(ctx, req, faults) } });
