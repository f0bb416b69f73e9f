/** The file format of checkpoints: one line of JSON around a document, with a format number and a checksum. Pure. */
import { messageOf } from '../text/errors.ts';

/** Raised when a reader of the older format could misread the newer. */
const CHECKPOINT_FORMAT = 1;
/** A checkpoint is small; beyond this a put is refused rather than written. */
export const CHECKPOINT_BYTES_MAX = 8 * 1024 * 1024;
const NAME = /^[a-z][a-zA-Z0-9-]{0,62}$/;

export function isCheckpointName(name: string): boolean {
  return NAME.test(name);
}

/** `sha256Hex` comes from the Entropy port. Throws when `value` is not JSON (a cycle, a bigint, undefined). */
export function encodeCheckpoint(name: string, value: unknown, sha256Hex: (text: string) => string): string {
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new Error(`checkpoint ${name}: the value is not JSON`);
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
  if (typeof file !== 'object' || file === null || !('format' in file) || typeof file.format !== 'number')
    return corrupt('no format number');
  if (file.format > CHECKPOINT_FORMAT)
    return { ok: false, kind: 'newer', why: `format ${file.format}, this program reads up to ${CHECKPOINT_FORMAT}` };
  if (!('name' in file) || file.name !== name) return corrupt('it holds the document of another name');
  if (!('value' in file) || typeof file.value !== 'string' || !('sha256' in file)) return corrupt('value or checksum is missing');
  if (file.sha256 !== sha256Hex(`${name}\n${file.value}`)) return corrupt('the checksum does not match');
  return { ok: true, value: JSON.parse(file.value) as unknown };
}
