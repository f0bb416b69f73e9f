/** Families of addresses, each with a packet filter of its own. */
export type IpFamily = 4 | 6;
export const FAMILIES: readonly IpFamily[] = [4, 6];
