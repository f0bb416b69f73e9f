/** What a container is given of the node's devices: those of plugins, then those of volumes. */

import { deviceRequests } from '../../../machines/allocation/devices/allocate.ts';
import { devicesAddr, NO_SHARE, type PluginShare } from '../../../machines/allocation/devices/messages.ts';
import type { Container } from '../../../machines/kube/podTable.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { volumeDevices } from './volumes.ts';

/** A plugin may take its time to allocate, as in the reference; asked again after this, its answer is waited for. */
const ANSWER_MS = 600_000;

/** Nobody is asked where nothing is asked for, or there is no device manager: then it is a resource that others count. */
async function pluginDevices(
  { registry, ports }: Pick<ActorCtx, 'registry' | 'ports'>,
  { pod, container }: { pod: Pod; container: Container },
  signal: AbortSignal,
): Promise<Built<PluginShare>> {
  if (ports.devicePlugins === undefined || deviceRequests(container).length === 0) return built(NO_SHARE);
  const question = (replyTo: ReplyTo<Built<PluginShare>>) => ({ type: 'devices.start' as const, pod, container, replyTo });
  const answer = await registry.ask(devicesAddr, question, { timeoutMs: ANSWER_MS, signal });
  return answer.kind === 'reply' ? answer.value : refused(`the device manager did not answer: ${answer.reason}; it is asked again`);
}

export async function containerDevices(
  ctx: Pick<ActorCtx, 'registry' | 'ports'>,
  of: { pod: Pod; container: Container },
  signal: AbortSignal,
): Promise<Built<PluginShare>> {
  const plugin = await pluginDevices(ctx, of, signal);
  if (!plugin.ok) return plugin;
  const volumes = await volumeDevices(ctx.registry, of, signal);
  return volumes.ok ? built({ ...plugin.value, devices: [...plugin.value.devices, ...volumes.value] }) : volumes;
}
