/** Volumes of old plugins come to what the translation of Kubernetes 1.36.2 makes of them: its answers are in `inTree.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inlineVolume, MIGRATED_PLUGINS, translated } from '../../../src/machines/pod/volumes/kinds/inTree/inTree.ts';
import { IN_TREE_PLUGINS } from '../../../src/machines/pod/volumes/kinds/inTree/plugins.ts';
import { INLINE_KINDS } from '../../../src/machines/pod/volumes/kinds.ts';

type Fields = Record<string, unknown>;
interface Case {
  pv?: Fields;
  volume?: Fields & { name: string };
  /** Of the pod. */
  ns?: string;
  /** Of the translated PersistentVolume; absent with neither: it is none of an old plugin. */
  spec?: Fields;
  error?: string;
}
const { plugins, cases } = JSON.parse(readFileSync(join(import.meta.dirname, 'inTree.json'), 'utf8')) as {
  plugins: string[];
  cases: Case[];
};

/** Go writes empty fields where they have no `omitempty`, and leaves them out elsewhere. The attributes of a volume are all written. */
function pruned(value: unknown, attributes = false): unknown {
  if (Array.isArray(value)) return value.map((v) => pruned(v));
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value)
    .map(([key, v]) => [key, pruned(v, key === 'volumeAttributes')] as const)
    .filter(([, v]) => !isEmpty(v) && (attributes || v !== ''));
  return Object.fromEntries(kept);
}
function isEmpty(v: unknown): boolean {
  if (v === undefined || v === null || v === false) return true;
  return typeof v === 'object' && Object.keys(v).length === 0;
}

function ours({ pv, volume, ns = '' }: Case): unknown {
  if (pv !== undefined) return translated(pv);
  const field = Object.keys(volume ?? {}).find((key) => IN_TREE_PLUGINS.some((p) => p.field === key));
  if (volume === undefined || field === undefined) return { ok: true, value: {} };
  // The namespace of a pod is never empty.
  return inlineVolume({ field, content: volume[field] as Fields }, { name: volume.name, namespace: ns || 'default' });
}

const WORDS = 'failed to translate in-tree pv to CSI: ';
/** What the URL parser of Go says after this is its own. */
const OWN_WORDS = /(Invalid disk name \([\s\S]*?\)): [\s\S]*/;

describe('volumes of old plugins', () => {
  it('are those that the reference translates', () => {
    expect(MIGRATED_PLUGINS).toEqual([...plugins].sort());
    const fields = INLINE_KINDS.flatMap((kind) => Object.keys(kind.fields));
    for (const { field } of IN_TREE_PLUGINS) expect(fields).toContain(field);
  });

  it(`come to the same, ${cases.length} of them`, () => {
    for (const one of cases) {
      const { pv, volume, spec, error } = one;
      const about = JSON.stringify(pv ?? volume);
      const result = ours(one) as { ok: boolean; value: { spec?: Fields }; message: string };
      if (error !== undefined) {
        expect(result.ok, about).toBe(false);
        expect(result.message.replace(OWN_WORDS, '$1'), about).toBe(`${WORDS}${error}`.replace(OWN_WORDS, '$1'));
      } else {
        expect(result, about).toMatchObject({ ok: true });
        // What is none of an old plugin stays as it is.
        expect(pruned(result.value.spec), about).toEqual(pruned(spec ?? pv?.spec));
      }
    }
  });
});
