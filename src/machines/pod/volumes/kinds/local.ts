/** `local` of a PersistentVolume: a directory or a device of this node, which a claim stands for. */

import { built, refused } from '../../../result.ts';
import { isRecord } from '../../../shape/conform.ts';
import { textOf } from '../../../shape/lenient.ts';
import type { PersistentKind } from '../kind.ts';
import { pathProblem } from './hostPath.ts';

export interface Local {
  kind: 'local';
  path: string;
  /** What has to be there. */
  type: 'Directory' | 'BlockDevice';
}

export const local: { persistent: PersistentKind<Local> } = {
  persistent: {
    field: 'local',
    named: 'local',
    mountOptions: false,
    decode: (spec, { volume }) => {
      const path = textOf(isRecord(spec.local) ? spec.local.path : '');
      const wrong = pathProblem(path, volume);
      if (wrong !== null) return refused(wrong);
      return built({ kind: 'local', path, type: spec.volumeMode === 'Block' ? 'BlockDevice' : 'Directory' });
    },
  },
};
