/** The host's resolver configuration. It is read for each sandbox: networks come, and change, while the node runs. */

import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import { parseResolvConf } from '../../../../machines/pods/workers/config/dns.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import type { HostFs } from '../../../../ports/ports.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

const RESOLV_CONF_BYTES_MAX = 1 << 20;

/** Rejects where the file cannot be read, or is malformed. */
export async function readHostDns(fs: Pick<HostFs, 'readFile'>, path: string): Promise<NonNullable<NodeFacts['hostDns']>> {
  return parseResolvConf(new TextDecoder().decode(await fs.readFile(path, { bytesMax: RESOLV_CONF_BYTES_MAX })));
}

/** A file that cannot be read now counts as it was when the node started. */
export async function presentHostDns(
  { ports: { fs }, log }: Pick<ActorCtx, 'ports' | 'log'>,
  { resolvConf: file = '', hostDns }: Pick<NodeFacts, 'resolvConf' | 'hostDns'>,
): Promise<NodeFacts['hostDns']> {
  if (file === '') return hostDns;
  try {
    return await readHostDns(fs, file);
  } catch (error) {
    // Where it was unreadable at the start, that was reported then.
    const err = messageOf(error);
    if (hostDns !== null) log.warn({ err, file }, 'the resolver configuration cannot be read; the sandbox gets what it said at the start');
    return hostDns;
  }
}
