/** The file format of checkpoints: one line of JSON around a document, with a format number and a checksum. Pure. */
import { isRecord } from '../shape/conform.ts';
import { fnv1a32 } from '../text/checksum.ts';
import { messageOf } from '../text/errors.ts';
import { ACTUATED, ALLOCATED } from './messages.ts';

/** Raised when a reader of the older format could misread the newer. */
const CHECKPOINT_FORMAT = 1;
/** A checkpoint is small; beyond this a put is refused rather than written. */
export const CHECKPOINT_BYTES_MAX = 8 * 1024 * 1024;
const NAME = /^[a-z][a-zA-Z0-9-]{0,62}$/;

export const isKubelets = (name: string): boolean => name === ALLOCATED || name === ACTUATED;

export function isCheckpointName(name: string): boolean {
  return NAME.test(name) || isKubelets(name);
}

/** `sha256Hex` comes from the Entropy port. Throws when `value` is not JSON (a cycle, a bigint, undefined). */
export function encodeCheckpoint(name: string, value: unknown, sha256Hex: (text: string) => string): string {
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new Error(`checkpoint ${name}: the value is not JSON`);
  if (isKubelets(name)) return JSON.stringify({ data: json, checksum: kubeletsChecksum(json) });
  return `${JSON.stringify({ format: CHECKPOINT_FORMAT, name, sha256: sha256Hex(`${name}\n${json}`), value: json })}\n`;
}

export type CheckpointRead = { ok: true; value: unknown } | { ok: false; kind: 'corrupt' | 'newer'; why: string };

/** Reads a file back; a torn, altered or misnamed one is `corrupt`, one of a later format is `newer`. */
export function decodeCheckpoint(name: string, text: string, sha256Hex: (text: string) => string): CheckpointRead {
  const corrupt = (why: string): CheckpointRead => ({ ok: false, kind: 'corrupt', why });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    return corrupt(`not JSON (${messageOf(error)})`);
  }
  if (!isRecord(file)) return corrupt('it is no object');
  if (isKubelets(name)) {
    if (typeof file.data !== 'string') return corrupt('it holds no data');
    return file.checksum === kubeletsChecksum(file.data) ? documentOf(file.data) : corrupt(UNLIKE);
  }
  if (typeof file.format !== 'number') return corrupt('no format number');
  if (file.format > CHECKPOINT_FORMAT)
    return { ok: false, kind: 'newer', why: `format ${file.format}, this program reads up to ${CHECKPOINT_FORMAT}` };
  if (file.name !== name) return corrupt('it holds the document of another name');
  if (typeof file.value !== 'string' || !('sha256' in file)) return corrupt('value or checksum is missing');
  return file.sha256 === sha256Hex(`${name}\n${file.value}`) ? documentOf(file.value) : corrupt(UNLIKE);
}
const UNLIKE = 'the checksum does not match';
function documentOf(json: string): CheckpointRead {
  try {
    return { ok: true, value: JSON.parse(json) as unknown };
  } catch (error) {
    return { ok: false, kind: 'corrupt', why: `the value is not JSON (${messageOf(error)})` };
  }
}
const kubeletsChecksum = (json: string): number => fnv1a32(`(string)${json}`);
