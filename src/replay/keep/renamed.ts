/** The lines of a recording in their order, under other names. */
import type { Entropy } from '../../ports/ports.ts';
import { shortDigest } from '../border.ts';
import { entryOfLine, lineOf } from '../check.ts';
import type { Entry, Header, Json } from '../entries.ts';
import type { Edit } from '../loose/edit.ts';

/** Digests of what a tree says under the new names, and those of then. */
export class Digests {
  readonly all: Record<string, string> = {};
  readonly #edit: Edit;
  readonly #hashes: Pick<Entropy, 'md5Hex' | 'sha256Hex'>;

  constructor(edit: Edit, hashes: Pick<Entropy, 'md5Hex' | 'sha256Hex'>) {
    this.#edit = edit;
    this.#hashes = hashes;
  }

  /** Of a replay under the old names. */
  digested(by: 'md5Hex' | 'sha256Hex', json: Json, digest: string): void {
    const renamed = this.#edit.into(json);
    const now = typeof renamed === 'string' ? this.#hashes[by](renamed) : shortDigest(this.#hashes[by], renamed);
    if (now !== digest) this.all[now] = digest;
  }
}

/** @param digests Of the same lines under the old names. */
export function renamedLines(lines: readonly string[], edit: Edit, digests: Digests): string[] {
  const [first = '', ...rest] = lines;
  const header = { ...(edit.into(JSON.parse(first) as Json) as unknown as Header), digests: digests.all };
  return [JSON.stringify(header), ...rest.map((line) => renamedLine(line, edit))];
}

function renamedLine(line: string, edit: Edit): string {
  const entry = entryOfLine(line);
  if (entry === null) return line;
  if (entry[0] === 'body') return lineOf(['body', JSON.stringify(edit.into(JSON.parse(entry[1]) as Json))]);
  const [code, ...values] = entry as readonly Json[];
  const [what, ...more] = values;
  // Names of ports are none of a pod.
  const renamed = code === 'ask' ? [what, ...(edit.into(more as Json) as Json[])] : (edit.into(values as Json) as Json[]);
  return lineOf([code, ...renamed] as unknown as Entry);
}
