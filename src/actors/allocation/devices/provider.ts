/** The device manager as a provider of allocation. */
import { asksForDevices, deviceRequests } from '../../../machines/allocation/devices/allocate.ts';
import { devicesHealth, heldDevices } from '../../../machines/allocation/devices/held.ts';
import { devicesAddr, devicesView } from '../../../machines/allocation/devices/messages.ts';
import { type ContainerShare, NO_SHARE } from '../../../machines/allocation/messages.ts';
import { unclaimed, unclaimedContainer } from '../../../machines/pod/resources/claims.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import type { Provider } from '../provider.ts';
import { devicesSpec } from './devices.ts';

/** A plugin may take its time to allocate, as in the reference. */
const ANSWER_MS = 600_000;

export const devicesProvider: Provider = {
  address: devicesAddr,
  timeoutMs: ANSWER_MS,
  spec(config, { devicePlugins, cluster, host }) {
    if (!devicePlugins) return null;
    const nodes = config.config.topologyManagerPolicy === 'none' ? [] : (host.numaNodes?.() ?? []).map((node) => node.id);
    return devicesSpec({ rootDir: config.flags.rootDir, cluster, nodes });
  },
  wants: (pod) => asksForDevices(unclaimed(pod)),
  extendedResources: true,
  hints: true,
  /** Not asked where nothing is asked for, or there is no device manager: then it is a resource that others count. */
  async share({ registry, ports }, { pod, container: whole }, signal) {
    const container = unclaimedContainer(pod, whole);
    if (ports.devicePlugins === undefined || deviceRequests(container).length === 0) return built(NO_SHARE);
    const question = (replyTo: ReplyTo<Built<ContainerShare>>) => ({ type: 'devices.start' as const, pod, container, replyTo });
    const answer = await registry.ask(devicesAddr, question, { timeoutMs: ANSWER_MS, signal });
    return answer.kind === 'reply' ? answer.value : refused(`the device manager did not answer: ${answer.reason}; it is asked again`);
  },
  node: ({ registry, ports }) =>
    registry.read(devicesView)?.value ??
    (ports.devicePlugins === undefined ? { capacity: {}, allocatable: {}, recreated: false } : undefined),
  held(registry) {
    const known = registry.read(devicesView)?.value;
    return known === undefined ? undefined : heldDevices(known.ledger);
  },
  health({ registry }) {
    const known = registry.read(devicesView)?.value;
    return known && (({ pod, container }) => devicesHealth(known.ledger, pod.metadata.uid, container.name));
  },
};
