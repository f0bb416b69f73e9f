/** What the node has, and what of it pods may use. */
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
  it('are the same where nothing is kept back', () => {
    const { capacity, allocatable } = nodeResources(host(), config());
    expect(capacity).toEqual({ cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '100Gi' });
    expect(allocatable).toEqual(capacity);
  });
  it('keep back what the system, the node agents and hard eviction need', () => {
    const { allocatable } = nodeResources(
      host(),
      config({
        systemReserved: { cpu: '100m', memory: '1Gi', pid: '1000' },
        kubeReserved: { cpu: '250m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
        evictionHard: DEFAULT_EVICTION_HARD,
      }),
    );
    expect(allocatable).toEqual({
      cpu: '3650m',
      memory: '6556Mi',
      pods: '110',
      'ephemeral-storage': '89Gi',
    });
  });
  it('leave eviction out where they are told to, and where the signal is switched off', () => {
    const evictionHard = { 'memory.available': '7.5%' };
    expect(nodeResources(host(), config({ evictionHard })).allocatable.memory).toBe(String(8 * GI - Math.ceil(0.6 * GI)));
    expect(nodeResources(host(), config({ evictionHard, ignoreEviction: true })).allocatable.memory).toBe('8Gi');
    expect(nodeResources(host(), config({ evictionHard: { 'memory.available': '100%' } })).allocatable.memory).toBe('8Gi');
  });
  it('take the number of listed CPUs over every other word on them (trap 13)', () => {
    const listed = config({ reservedSystemCPUs: '0,2', kubeReserved: { cpu: '1' }, systemReserved: { cpu: '1' } });
    expect(nodeResources(host(), listed).allocatable.cpu).toBe('2');
    expect([cpuListSize('0-3,7'), cpuListSize('1, 1-2'), cpuListSize('5')]).toEqual([5, 2, 1]);
  });
  it('take huge pages out of the memory that pods may use (trap 52)', () => {
    const { capacity, allocatable } = nodeResources(host({ hugePages: { '1Gi': GI, '2Mi': 0 } }), config());
    expect(capacity).toMatchObject({ memory: '8Gi', 'hugepages-1Gi': '1Gi', 'hugepages-2Mi': '0' });
    expect(allocatable).toMatchObject({ memory: '7Gi', 'hugepages-1Gi': '1Gi' });
  });
  it('are written in Ki where the amount is a whole number of them and of no larger unit', () => {
    const odd = host({ memoryBytes: 16_393_236 * 1024, storageBytes: 61_255_492 * 1024 });
    expect(nodeResources(odd, config()).capacity).toMatchObject({ memory: '16393236Ki', 'ephemeral-storage': '61255492Ki' });
    expect(nodeResources(host({ memoryBytes: 2047 }), config()).capacity.memory).toBe('2047');
  });
  it('are never below zero', () => {
    const { allocatable } = nodeResources(host(), config({ kubeReserved: { cpu: '5', memory: '9Gi', 'ephemeral-storage': '1Ti' } }));
    expect(allocatable).toMatchObject({ cpu: '0', memory: '0', 'ephemeral-storage': '0' });
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
  it('count pods by cores where that is less, and no storage that is not accounted for', () => {
    expect(nodeResources(host(), config({ podsPerCore: 10 })).capacity.pods).toBe('40');
    expect(nodeResources(host(), config({ podsPerCore: 100 })).capacity.pods).toBe('110');
    expect(nodeResources(host({ storageBytes: null }), config()).allocatable).not.toHaveProperty('ephemeral-storage');
  });
});
