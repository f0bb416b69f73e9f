/** `dra_manager_state`, and which devices of a claim a container gets. */
import { describe, expect, it } from 'vitest';
import { decodeClaims, encodeClaims } from '../../src/machines/allocation/claims/checkpoint.ts';
import { cdiDevices, claimHealth, dynamicResources } from '../../src/machines/allocation/claims/share.ts';
import { type ClaimRecord, claimKey, type PreparedDevice } from '../../src/machines/allocation/claims/types.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { crc32 } from '../../src/machines/text/checksum.ts';

const device = (name: string, more: Partial<PreparedDevice> = {}): PreparedDevice => ({
  ...{ pool: 'pool', device: name, shareId: null, requests: [], cdiIds: [`vendor.com/gpu=${name}`] },
  ...more,
});
const record = (more: Partial<ClaimRecord> = {}): ClaimRecord => ({
  ...{ namespace: 'ns', name: 'claim', uid: 'uid-1', pods: new Set(['pod-1']), prepared: false },
  drivers: new Map([['gpu.vendor.com', [device('a', { requests: ['r'], shareId: 's' }), device('b')]]]),
  ...more,
});
const records = (...all: ClaimRecord[]) => new Map(all.map((r) => [claimKey(r), r]));
const CONTAINER = { name: 'main', image: 'i', resources: { claims: [{ name: 'gpu', request: 'r' }] } };
const POD = {
  metadata: { name: 'p', namespace: 'ns', uid: 'pod-1' },
  spec: { containers: [CONTAINER], resourceClaims: [{ name: 'gpu', resourceClaimName: 'claim' }] },
  status: {},
} as unknown as Pod;

describe('dra_manager_state', () => {
  it('has the sum that CRC-32 gives', () => {
    expect(crc32('123456789')).toBe(0xcbf43926);
    expect(crc32('')).toBe(0);
  });

  it('is read as it was written, hostile names too', () => {
    const odd = record({ name: '__proto__', pods: new Set(['__proto__', 'b']), drivers: new Map([['__proto__', []]]) });
    expect(decodeClaims(encodeClaims([record(), odd]))).toEqual(records(record(), odd));
    expect(encodeClaims([])).toContain('\\"kind\\":\\"DRACheckpoint\\"');
  });

  it.each([
    ['an empty list', { ClaimInfoStateList: null }, 0],
    ['no list', {}, 0],
    ['entries that are none', { ClaimInfoStateList: [1, null, { ClaimName: 7, PodUIDs: [], DriverState: { d: { Devices: null } } }] }, 1],
    ['names in another case', { claiminfostatelist: [{ claimuid: 'u', claimname: 'n', namespace: 's' }] }, 1],
  ])('of %s is read', (_, data, size) => {
    const text = JSON.stringify(data);
    expect(decodeClaims(JSON.stringify({ Data: text, Checksum: crc32(text) })).size).toBe(size);
  });

  it.each([['{'], ['{}'], ['{"Data":"{}","Checksum":1}'], ['null']])('that says %s is not believed', (text) => {
    expect(() => decodeClaims(text)).toThrow();
  });
});

describe('a container', () => {
  it('gets the devices of its requests, and those of all', () => {
    expect(cdiDevices(records(record()), POD, CONTAINER)).toEqual({ ok: true, value: ['vendor.com/gpu=a', 'vendor.com/gpu=b'] });
    const other = { ...CONTAINER, resources: { claims: [{ name: 'gpu', request: 'other' }] } };
    expect(cdiDevices(records(record()), POD, other)).toEqual({ ok: true, value: ['vendor.com/gpu=b'] });
    expect(cdiDevices(records(record()), POD, { name: 'plain', image: 'i' })).toEqual({ ok: true, value: [] });
    expect(cdiDevices(records(), POD, CONTAINER)).toEqual({ ok: false, message: 'ResourceClaim claim is not prepared' });
  });

  it('is shown with whole claims in the pod resources API', () => {
    expect(dynamicResources(records(record()), POD, CONTAINER)).toMatchObject([
      { claimName: 'claim', claimNamespace: 'ns', claimResources: [{ deviceName: 'a', shareId: 's' }, { deviceName: 'b' }] },
    ]);
  });

  it('shows the health of its devices until it is out of date', () => {
    const said = { pool: 'pool', device: 'a', health: 'Healthy', message: '', timeoutMs: 1_000, atWallMs: 0 } as const;
    const health = new Map([['gpu.vendor.com', new Map([['pool/a', said]])]]);
    const at = (nowWallMs: number) =>
      claimHealth({ records: records(record()), health, nowWallMs }, POD, CONTAINER)[0]?.resources.map((r) => r.health);
    expect(at(1_000)).toEqual(['Healthy', 'Unknown']);
    expect(at(1_001)).toEqual(['Unknown', 'Unknown']);
  });
});
