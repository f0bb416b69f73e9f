/** Kinds that mount(8) mounts here, and that have the same fields in a pod and in a PersistentVolume. */

import type { Built } from '../../../result.ts';
import { partOf } from '../../../shape/lenient.ts';
import { honoured } from '../../fieldRule.ts';
import type { InlineKind, PersistentKind } from '../kind.ts';

interface Mountable<S extends { kind: string }> extends Pick<InlineKind<S>, 'kind' | 'defaults' | 'problems'> {
  readonly fields: readonly string[];
  decode(content: Record<string, unknown>, options: readonly string[]): Built<S>;
  /** Files are given the label of their pod. */
  readonly labelled: boolean;
}

/** The options of mount(8), each once. */
export function mountOptions({ readOnly, mountOptions }: { readOnly: boolean; mountOptions: readonly string[] }): readonly string[] {
  return [...new Set([...mountOptions, ...(readOnly ? ['ro'] : [])])].sort();
}

export function mountable<S extends { kind: string; options: readonly string[] }>({
  kind,
  fields,
  decode,
  labelled,
  ...more
}: Mountable<S>): { inline: InlineKind<S>; persistent: PersistentKind<S> } {
  const plugin = `kubernetes.io~${kind}`;
  return {
    inline: {
      ...{ kind, plugin, stands: 'here', foreign: true, refreshes: false },
      fields: { [kind]: (content) => decode(content, content.readOnly === true ? ['ro'] : []) },
      rules: honoured(...fields.map((field) => `${kind}.${field}`)),
      mounted({ options }, dir) {
        const readOnly = options.includes('ro');
        return { hostPath: dir, readOnly, managed: labelled && !readOnly };
      },
      ...more,
    },
    persistent: {
      ...{ field: kind, named: kind, plugin, mountOptions: true },
      decode: (spec, of) => decode(partOf(spec, kind), mountOptions(of)),
    },
  };
}

const LUN_MAX = 255;
export const isLun = (lun: unknown): lun is number => Number.isInteger(lun) && Number(lun) >= 0 && Number(lun) <= LUN_MAX;
export const LUN_RANGE = `must be between 0 and ${LUN_MAX}`;
