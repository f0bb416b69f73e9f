/** The lines of a recording in their order, under other names. */
import type { Entropy } from '@actorlet/kubelet/ports/ports.ts';
import { shortDigest } from '../border.ts';
import { entryOfLine, lineOf } from '../check.ts';
import type { Entry, Header, Json, Now } from '../entries.ts';
import type { Edit } from '../lenient/edit.ts';

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
  return lineOf(renamedEntry(entry, edit));
}

/** Its code, and what else the recording or a machine calls so, is no name. */
export function renamedEntry<T extends Exclude<Entry, readonly ['body', string]>>(entry: T, edit: Edit): T {
  const into = (json: Json): Json => edit.into(json);
  const renamed = (of: Exclude<Entry, readonly ['body', string]>): Entry => {
    switch (of[0]) {
      case 'told':
      case 'answer':
        return of;
      case 'ask': {
        const [code, name, digest, now, ...brief] = of;
        const then = typeof now === 'string' ? now : (into(now as Json) as unknown as Now);
        return [code, name, digest, then, ...(brief as readonly string[]).map(into)] as unknown as Entry;
      }
      case 'by':
        return [of[0], into(of[1]) as string, of[2]];
      case 'said':
        return [of[0], of[1], into(of[2])];
      case 'shown':
        return [of[0], of[1], into(of[2]) as string, ...(of.slice(3) as [string])];
      case 'step': {
        const [code, path, from, to, event, reason] = of;
        return [code, into(path) as string, from, to, event, into(reason) as string];
      }
      default: {
        const [code, ...values] = of as readonly Json[];
        return [code, ...(into(values as Json) as Json[])] as unknown as Entry;
      }
    }
  };
  return renamed(entry) as T;
}
