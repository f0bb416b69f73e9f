/** The packet filter of the host, as a port: iptables for IPv4, ip6tables for IPv6. */

import type { IpFamily } from '../../machines/services/iptables/families.ts';

export interface IptablesResult {
  /**
   * The program's exit code. 0: done. 1: refused, also "is there already" and "is not there". 4: somebody else holds the lock.
   * -1: it did not end in time and was killed.
   */
  code: number;
  /** The end of what it said on its error output. */
  words: string;
}

export interface Iptables {
  /** Rejects where the program cannot be run. */
  run(family: IpFamily, args: readonly string[], signal: AbortSignal): Promise<IptablesResult>;
}
