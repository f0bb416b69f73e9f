/** Which addresses a node has (boot-and-node 9.5). */
import { describe, expect, it } from 'vitest';
import { type AddressFacts, chooseNodeIPs } from '../../../src/machines/api/node/nodeAddresses.ts';

const ROUTES4 = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth1\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
`;
const ZEROS = '0'.repeat(32);
const GATEWAY6 = `fd${'0'.repeat(29)}1`;
const ROUTES6 = `fd000000000000000000000000000000 40 ${ZEROS} 00 ${ZEROS} 00000100 00000001 00000000 00000001 docker0
${ZEROS} 00 ${ZEROS} 00 ${ZEROS} ffffffff 00000001 00000000 00200200       lo
${ZEROS} 00 ${ZEROS} 00 ${GATEWAY6} 00000400 00000002 00000000 00000003     eth1
`;
const facts = (o: Partial<AddressFacts> = {}): AddressFacts => ({
  nodeIPs: [],
  nodeName: 'n1',
  resolved: [],
  addresses: [
    { ip: '172.17.0.1', family: 4, interface: 'docker0' },
    { ip: 'fd00:1::1', family: 6, interface: 'docker0' },
    { ip: '192.0.2.7', family: 4, interface: 'wlan0' },
    { ip: '192.0.2.8', family: 4, interface: 'eth1' },
    { ip: 'fd00:2::8', family: 6, interface: 'eth1' },
    { ip: '10.9.9.9', family: 4, interface: 'lo' },
  ],
  routes4: ROUTES4,
  routes6: ROUTES6,
  ...o,
});

describe('the address of a node', () => {
  it.each<[string, Partial<AddressFacts>, string[]]>([
    ['is the one of its default route of the lowest metric, not of its first interface', {}, ['192.0.2.8']],
    ['is what --node-ip names', { nodeIPs: ['192.0.2.7', 'fd00:2::8'] }, ['192.0.2.7', 'fd00:2::8']],
    ['is of IPv4 where --node-ip is 0.0.0.0', { nodeIPs: ['0.0.0.0'] }, ['192.0.2.8']],
    ['is of IPv6 where --node-ip is ::', { nodeIPs: ['::'] }, ['fd00:2::8']],
    [
      'is of the other family where there is none of the one asked for',
      { nodeIPs: ['::'], routes6: '', addresses: facts().addresses.filter((a) => a.family === 4) },
      ['192.0.2.8'],
    ],
    ['is its name where that is an address', { nodeName: '198.51.100.1' }, ['198.51.100.1']],
    ['is that of its name, where it is one of this machine', { resolved: ['127.0.1.1', '203.0.113.1', '172.17.0.1'] }, ['172.17.0.1']],
    ['is that of its name in the family asked for', { nodeIPs: ['::'], resolved: ['192.0.2.7', 'FD00:1:0::1'] }, ['fd00:1::1']],
    [
      'lies on the loopback interface where that of the default route has none',
      {
        addresses: [
          { ip: '172.17.0.1', family: 4, interface: 'docker0' },
          { ip: '10.9.9.9', family: 4, interface: 'lo' },
        ],
      },
      ['10.9.9.9'],
    ],
    ['is the first one where there is no default route', { routes4: '', routes6: '' }, ['172.17.0.1']],
    ['is not there on a machine without any', { addresses: [] }, []],
  ])('%s', (_, o, chosen) => {
    expect(chooseNodeIPs(facts(o))).toEqual(chosen);
  });
});
