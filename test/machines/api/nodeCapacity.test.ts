/** What the node has, and what of it pods may use. `golden/node/node.test.ts` has what is kept back. */
import { describe, expect, it } from 'vitest';
import { cpuListSize, type HostResources, nodeResources, overReserved } from '../../../src/machines/api/node/nodeCapacity.ts';
import { DEFAULT_EVICTION_HARD } from '../../../src/machines/config/defaults.ts';
import type { ReservationConfig } from '../../../src/machines/config/reservations.ts';

const GI = 1024 ** 3;
const host = (o: Partial<HostResources> = {}): HostResources => ({
  cpus: 4,
  memoryBytes: 8 * GI,
  storageBytes: 100 * GI,
  hugePages: {},
  ...o,
});
const config = (o: Partial<ReservationConfig> = {}): ReservationConfig => ({
  maxPods: 110,
  podsPerCore: 0,
  kubeReserved: {},
  systemReserved: {},
  reservedSystemCPUs: '',
  evictionHard: {},
  ignoreEviction: false,
  ...o,
});

describe('capacity and allocatable', () => {
  it('are written in Ki where the amount is a whole number of them and of no larger unit', () => {
    const odd = host({ memoryBytes: 16_393_236 * 1024, storageBytes: 61_255_492 * 1024 });
    expect(nodeResources(odd, config()).capacity).toMatchObject({ memory: '16393236Ki', 'ephemeral-storage': '61255492Ki' });
    expect(nodeResources(host({ memoryBytes: 2047 }), config()).capacity.memory).toBe('2047');
  });
  it('are none where more is kept back than there is, which is said as the kubelet says it', () => {
    const all = { cpu: '4', memory: '8Gi', 'ephemeral-storage': '100Gi' };
    expect(overReserved(host(), config({ systemReserved: all }))).toEqual([]);
    expect(overReserved(host(), config({ systemReserved: all, kubeReserved: { cpu: '1m' }, evictionHard: DEFAULT_EVICTION_HARD }))).toEqual(
      [
        'Resource "cpu" has a reservation of 4001m but capacity of 4. Expected capacity >= reservation.',
        'Resource "memory" has a reservation of 8292Mi but capacity of 8Gi. Expected capacity >= reservation.',
        'Resource "ephemeral-storage" has a reservation of 110Gi but capacity of 100Gi. Expected capacity >= reservation.',
      ],
    );
    expect(overReserved(host({ storageBytes: null }), config({ kubeReserved: { 'ephemeral-storage': '1Ti' } }))).toEqual([]);
    expect(overReserved(host(), config({ evictionHard: { 'memory.available': '9Gi' }, ignoreEviction: true }))).toEqual([]);
  });
  it('count listed CPUs', () => {
    expect([cpuListSize('0-3,7'), cpuListSize('1, 1-2'), cpuListSize('5')]).toEqual([5, 2, 1]);
  });
});
