/**
 * `dra_manager_state`: which claims pods use and what drivers prepared, as the reference writes and reads it (its API version is
 * checkpoint.dra.kubelet.k8s.io/v1). Pure.
 */
import { isRecord } from '../../shape/conform.ts';
import { fieldOf as field, listOf, textOf } from '../../shape/lenient.ts';
import { crc32 } from '../../text/checksum.ts';
import { type ClaimRecord, claimKey, type PreparedDevice } from './types.ts';

/** Below the root directory. */
export const CLAIMS_FILE = 'dra_manager_state';
/** More than that is not read again, so it is not written either. */
export const CLAIMS_BYTES_MAX = 64 * 1024 * 1024;

export function encodeClaims(claims: Iterable<ClaimRecord>): string {
  const list = [...claims].map(({ uid, name, namespace, pods, drivers }) => ({
    ClaimUID: uid,
    ClaimName: name,
    Namespace: namespace,
    PodUIDs: Object.fromEntries([...pods].sort().map((pod) => [pod, {}])),
    DriverState: Object.fromEntries([...drivers].map(([driver, devices]) => [driver, { Devices: devices.map(encodeDevice) }])),
  }));
  const data = JSON.stringify({ kind: 'DRACheckpoint', apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1', ClaimInfoStateList: list });
  return JSON.stringify({ Data: data, Checksum: crc32(data) });
}

function encodeDevice({ pool, device, shareId, requests, cdiIds }: PreparedDevice) {
  return { PoolName: pool, DeviceName: device, ShareID: shareId, RequestNames: requests, CDIDeviceIDs: cdiIds };
}

/** What an earlier daemon left, by key. @throws Error on a file that is torn, or whose checksum says that it was changed. */
export function decodeClaims(text: string): Map<string, ClaimRecord> {
  const document: unknown = JSON.parse(text);
  const [data, told] = [field(document, 'Data'), field(document, 'Checksum')];
  if (data === undefined && field(document, 'version') === 'v1') throw new Error('it is written as kubelets before 1.32 wrote it');
  if (typeof data !== 'string') throw new Error('it holds no data');
  const sum = crc32(data);
  if (told !== sum) throw new Error(`its checksum is ${JSON.stringify(told)}, its content comes to ${sum}`);
  const claims = listOf(field(JSON.parse(data), 'ClaimInfoStateList')).map(decodeClaim);
  return new Map(claims.map((claim) => [claimKey(claim), claim]));
}

function decodeClaim(entry: unknown): ClaimRecord {
  const [pods, drivers] = [field(entry, 'PodUIDs'), field(entry, 'DriverState')];
  return {
    namespace: textOf(field(entry, 'Namespace')),
    name: textOf(field(entry, 'ClaimName')),
    uid: textOf(field(entry, 'ClaimUID')),
    pods: new Set(Object.keys(isRecord(pods) ? pods : {})),
    drivers: new Map(
      Object.entries(isRecord(drivers) ? drivers : {}).map(([driver, state]) => [
        driver,
        listOf(field(state, 'Devices')).map(decodeDevice),
      ]),
    ),
    prepared: false,
  };
}

function decodeDevice(entry: unknown): PreparedDevice {
  const shareId = field(entry, 'ShareID');
  return {
    pool: textOf(field(entry, 'PoolName')),
    device: textOf(field(entry, 'DeviceName')),
    shareId: typeof shareId === 'string' ? shareId : null,
    requests: listOf(field(entry, 'RequestNames')).map(textOf),
    cdiIds: listOf(field(entry, 'CDIDeviceIDs')).map(textOf),
  };
}
