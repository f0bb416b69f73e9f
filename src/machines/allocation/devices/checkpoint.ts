/**
 * `kubelet_internal_checkpoint`: who holds which devices, and which resources there were, as the reference writes and reads
 * it, so that the kubelet can take the node over again (resources 2.1, 2.5). Pure.
 */

import { fieldOf as field, textOf, textsOf } from '../../shape/lenient.ts';
import { fnv1a32 } from '../../text/checksum.ts';
import { type Allocation, type ContainerResponse, type DeviceLedger, NO_NODE } from './types.ts';
import { decodeResponse, encodeResponse } from './wire.ts';

export const CHECKPOINT_FILE = 'kubelet_internal_checkpoint';

interface Entry {
  PodUID: string;
  ContainerName: string;
  ResourceName: string;
  DeviceIDs: Readonly<Record<string, readonly string[]>>;
  /** Base64. */
  AllocResp: string | null;
}
export interface CheckpointData {
  PodDeviceEntries: readonly Entry[] | null;
  RegisteredDevices: Readonly<Record<string, readonly string[]>> | null;
}

const toBytes = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const toBase64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''));

function dumpList(list: readonly string[] | null): string {
  return list === null ? '<nil>' : `[${list.join(' ')}]`;
}
function dumpMap(entries: readonly (readonly [string, readonly string[]])[] | null): string {
  return entries === null ? '<nil>' : `map[${entries.map(([key, list]) => `${key}:${dumpList(list)}`).join(' ')}]`;
}
function dumpEntry(e: Entry): string {
  const nodes = Object.entries(e.DeviceIDs).sort(([a], [b]) => Number(a) - Number(b));
  const bytes = e.AllocResp === null ? '<nil>' : `[${toBytes(e.AllocResp).join(' ')}]`;
  return (
    `{PodUID:(string)${e.PodUID} ContainerName:(string)${e.ContainerName} ResourceName:(string)${e.ResourceName} ` +
    `DeviceIDs:(checkpoint.DevicesPerNUMA)${dumpMap(nodes)} AllocResp:([]uint8)${bytes}}`
  );
}

/** Checksum of the data as it is in the file, lists in their order. */
export function checkpointSum(data: CheckpointData): number {
  const entries = data.PodDeviceEntries === null ? '<nil>' : `[${data.PodDeviceEntries.map(dumpEntry).join(' ')}]`;
  const registered =
    data.RegisteredDevices === null ? null : Object.entries(data.RegisteredDevices).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return fnv1a32(
    `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)${entries} ` +
      `RegisteredDevices:(map[string][]string)${dumpMap(registered)}}`,
  );
}

export function encodeCheckpoint(ledger: Pick<DeviceLedger, 'allocations' | 'resources'>): string {
  const entries = ledger.allocations.map((a) => ({
    PodUID: a.uid,
    ContainerName: a.container,
    ResourceName: a.resource,
    DeviceIDs: a.devices,
    AllocResp: toBase64(encodeResponse(a.response)),
  }));
  const resources = [...ledger.resources].sort(([a], [b]) => (a < b ? -1 : 1));
  const data: CheckpointData = {
    PodDeviceEntries: entries.length === 0 ? null : entries,
    RegisteredDevices: Object.fromEntries(resources.map(([name, { healthy }]) => [name, [...healthy].sort()])),
  };
  return JSON.stringify({ Data: data, Checksum: checkpointSum(data) });
}

/** What an earlier daemon left. @throws Error on a file that is torn, or whose checksum says that it was changed. */
export function decodeCheckpoint(text: string): { allocations: Allocation[]; resources: string[] } {
  const document: unknown = JSON.parse(text);
  const data = readData(field(document, 'Data'));
  const [told, sum] = [field(document, 'Checksum'), checkpointSum(data)];
  // Sums of the older layout were over types that are no more.
  if (told !== sum && !isOlder(document)) throw new Error(`its checksum is ${JSON.stringify(told)}, its content comes to ${sum}`);
  const allocations = (data.PodDeviceEntries ?? []).map((e) => ({
    uid: e.PodUID,
    container: e.ContainerName,
    resource: e.ResourceName,
    devices: e.DeviceIDs,
    response: decodeResponse(toBytes(e.AllocResp ?? '')),
  }));
  return { allocations, resources: Object.keys(data.RegisteredDevices ?? {}).sort() };
}

/** The same record with other responses of plugins. @throws as {@link decodeCheckpoint} */
export function withResponses(text: string, change: (response: ContainerResponse) => ContainerResponse): string {
  decodeCheckpoint(text);
  const data = readData(field(JSON.parse(text), 'Data'));
  const changed = (e: Entry): Entry =>
    e.AllocResp === null ? e : { ...e, AllocResp: toBase64(encodeResponse(change(decodeResponse(toBytes(e.AllocResp))))) };
  const now: CheckpointData = { ...data, PodDeviceEntries: data.PodDeviceEntries?.map(changed) ?? null };
  return JSON.stringify({ Data: now, Checksum: checkpointSum(now) });
}

function nullable(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
function lists(value: unknown): Record<string, string[]> {
  // The layout of older nodes: devices without their places.
  if (Array.isArray(value)) return value.length === 0 ? {} : { [NO_NODE]: textsOf(value) };
  return Object.fromEntries(Object.entries(typeof value === 'object' && value !== null ? value : {}).map(([k, v]) => [k, textsOf(v)]));
}
function isOlder(document: unknown): boolean {
  const entries = field(field(document, 'Data'), 'PodDeviceEntries');
  return Array.isArray(entries) && entries.some((e) => Array.isArray(field(e, 'DeviceIDs')));
}
function readData(data: unknown): CheckpointData {
  if (typeof data !== 'object' || data === null) throw new Error('it holds no data');
  const [entries, registered] = [field(data, 'PodDeviceEntries'), field(data, 'RegisteredDevices')];
  return {
    PodDeviceEntries: Array.isArray(entries)
      ? entries.map((e) => ({
          PodUID: textOf(field(e, 'PodUID')),
          ContainerName: textOf(field(e, 'ContainerName')),
          ResourceName: textOf(field(e, 'ResourceName')),
          DeviceIDs: lists(field(e, 'DeviceIDs')),
          AllocResp: nullable(field(e, 'AllocResp')),
        }))
      : null,
    RegisteredDevices: typeof registered === 'object' && registered !== null ? lists(registered) : null,
  };
}
