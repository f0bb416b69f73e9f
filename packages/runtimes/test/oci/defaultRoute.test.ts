/** A machine without a default route: pods get a loopback alone, since pasta would fail for each of them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { hasDefaultRoute } from '../../src/process/defaultRoute.ts';

const dir = mkdtempSync(join(tmpdir(), 'actorlet-routes-'));
afterAll(() => rmSync(dir, { recursive: true }));

const HEAD = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n';
const zeros = '0'.repeat(32);
function tables(four: string, six: string): string {
  writeFileSync(join(dir, 'route'), `${HEAD}${four}`);
  writeFileSync(join(dir, 'ipv6_route'), six);
  return dir;
}

describe('a default route', () => {
  it.each([
    ['of IPv4', 'eth0\t00000000\t0202000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n', '', true],
    ['of IPv6', '', `${zeros} 00 ${zeros} 00 fe80000000000000000000000000dead 00000400 1 0 00000003     eth0\n`, true],
    ['is none where only the own subnet is reached', 'eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n', '', false],
    ['is none where half of all addresses are reached', 'tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n', '', false],
    ["is not the kernel's own of the loopback", '', `${zeros} 00 ${zeros} 00 ${zeros} ffffffff 1 0 00200200       lo\n`, false],
    ['is none that rejects', '', `${zeros} 00 ${zeros} 00 ${zeros} ffffffff 1 0 00200201     eth0\n`, false],
    ['is none where there is nothing', '', '', false],
  ])('%s', (_, four, six, found) => expect(hasDefaultRoute(tables(four, six))).toBe(found));

  it('is none where the kernel shows no tables', () => expect(hasDefaultRoute(join(dir, 'absent'))).toBe(false));
});
