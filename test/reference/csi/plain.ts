/** Calls and events without what differs from run to run, so that those of two node agents can be compared. */
import { TOKENS_KEY } from '../../../src/machines/services/volumes/csi/volume.ts';
import type { TestDriver } from '../../volumes/csiDriver.ts';

/** Asked as often as an agent likes. */
const QUESTIONS = ['NodeGetCapabilities', 'NodeGetInfo', 'GetInfo', 'NotifyRegistrationStatus'];

function isEmpty(value: unknown): boolean {
  if (value === '' || value === null || value === undefined || value === false) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
/** `block` is empty and counts. A number of 0 is written as text. */
function isKept([key, value]: readonly [string, unknown]): boolean {
  if (key === 'block') return value !== null && value !== undefined;
  return !isEmpty(value) && !(key === 'limitBytes' && value === '0');
}
/** What a field has by default is not on the wire. Of tokens, only whom they are for. */
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare);
  if (typeof value !== 'object' || value === null) return value;
  const { [TOKENS_KEY]: tokens, ...rest } = value as Record<string, unknown>;
  if (tokens !== undefined) return bare({ ...rest, tokens: Object.keys(JSON.parse(String(tokens))) });
  const kept = Object.entries(value)
    .map(([key, v]) => [key, bare(v)] as const)
    .filter(isKept);
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function plainCalls(calls: TestDriver['calls'], o: { rootDir: string; uid: string }): (readonly [string, object])[] {
  const plain = calls
    .filter(({ method }) => !QUESTIONS.includes(method))
    .map(({ method, request }) => [method, bare(JSON.parse(plainText(JSON.stringify(request), o))) as object] as const);
  return plain.filter((call, at) => JSON.stringify(call) !== JSON.stringify(plain[at - 1]));
}

export function publishesIn(calls: readonly { method: string }[]): number {
  return calls.filter(({ method }) => method === 'NodePublishVolume').length;
}

function plainText(text: string, { rootDir, uid }: { rootDir: string; uid: string }): string {
  return text
    .replaceAll(rootDir, 'ROOT')
    .replaceAll(uid, 'UID')
    .replaceAll(/csi-[0-9a-f]{64}/g, 'HANDLE')
    .replaceAll(/[0-9a-f]{64}/g, 'HASH');
}

/** A volume behind a claim is called by its own name, or by its name in the pod. */
function plainMessage(message: string): string {
  return message
    .replaceAll(/"(pv-[^"]*|disk)"/g, '"VOLUME"')
    .replaceAll(/"\/tmp\/[^"]*"/g, '"PATH"')
    .replaceAll(/\/tmp\/\S*/g, 'PATH');
}

interface Events {
  items: { reason: string; message: string; type?: string; involvedObject: { kind: string } }[];
}
/** About volumes alone. */
const ABOUT = /^(FailedMount|FailedMapVolume|FailedAttachVolume|SuccessfulMountVolume|VolumeResize|FileSystemResize|FailedResize)/;
export function plainEvents({ items }: Events): string[] {
  const found = items
    .filter(({ reason, involvedObject }) => ABOUT.test(reason) && ['Pod', 'PersistentVolumeClaim'].includes(involvedObject.kind))
    .map(({ reason, message, involvedObject }) => `${involvedObject.kind} ${reason}: ${plainMessage(message)}`);
  return [...new Set(found)].sort();
}
