/** Whether this machine has a way out: pasta copies the pod's network from the interface of a default route. */
import { readFileSync } from 'node:fs';

const UP = 0x1;
const REJECT = 0x200;

/** By the tables that the kernel shows; `dir` is for tests. */
export function hasDefaultRoute(dir = '/proc/self/net'): boolean {
  const rows = (name: string): string[][] => {
    try {
      return readFileSync(`${dir}/${name}`, 'latin1')
        .split('\n')
        .map((line) => line.trim().split(/\s+/));
    } catch {
      // A kernel without that family of addresses.
      return [];
    }
  };
  const leads = (name: string | undefined, flags: string | undefined): boolean => {
    const bits = Number.parseInt(flags ?? '', 16);
    return name !== undefined && name !== 'lo' && (bits & UP) !== 0 && (bits & REJECT) === 0;
  };
  const four = rows('route').some((r) => r[1] === '00000000' && r[7] === '00000000' && leads(r[0], r[3]));
  const six = rows('ipv6_route').some((r) => /^0{32}$/.test(r[0] ?? '') && r[1] === '00' && leads(r[9], r[8]));
  return four || six;
}
