/** Which drivers of dynamic resources may register, and which interface is spoken with them. In the words of the reference. Pure. */

import { DRA_SERVICES, type DraDriver, type DraService } from '../../allocation/claims/messages.ts';
import { type Built, built, refused } from '../../result.ts';
import type { PluginInfo } from '../../wire/csi.ts';

/** The type that such a plugin registers with. */
export const DRA_PLUGIN = 'DRAPlugin';
/** A path from the root, or its URL. A connection to anything else cannot even be made. */
const SOCKET = /^(?:unix:(?:\/\/)?)?\/\P{Cc}+$/u;

/** The first service that it names and this node speaks. Several instances of one driver may register, each at a socket of its own. */
export function admitDraDriver(
  { name, endpoint: said, supportedVersions }: PluginInfo,
  { socket, others }: { socket: string; others: readonly Pick<DraDriver, 'driver' | 'endpoint'>[] },
): Built<Omit<DraDriver, 'stamp'>> {
  const endpoint = said === '' ? socket : said;
  const invalid = `invalid supported gRPC versions of DRA driver plugin ${name} at endpoint ${endpoint}`;
  if (name === '') return refused(`the DRA driver at ${endpoint} names itself not`);
  if (!SOCKET.test(endpoint))
    return refused(`the endpoint ${JSON.stringify(endpoint)} of DRA driver plugin ${name} is no path of a socket`);
  if (supportedVersions.length === 0) return refused(`${invalid}: empty list of supported gRPC services (aka supported versions)`);
  const service = supportedVersions.find((v): v is DraService => (DRA_SERVICES as readonly string[]).includes(v));
  if (service === undefined) {
    const [theirs, ours] = [supportedVersions, DRA_SERVICES].map((list) => `[${list.map((v) => JSON.stringify(v)).join(' ')}]`);
    return refused(`${invalid}: none of services supported by the plugin (${theirs}) are supported by the kubelet (${ours})`);
  }
  if (others.some((o) => o.driver === name && o.endpoint === endpoint))
    return refused(`endpoint ${endpoint} already registered for DRA driver plugin ${name}`);
  return built({ driver: name, endpoint, service });
}
