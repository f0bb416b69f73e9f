/** `local` of a PersistentVolume: a directory or a device of this node, which a claim stands for. */

import { built, refused } from '../../../result.ts';
import { isRecord } from '../../../shape/conform.ts';
import { textOf } from '../../../shape/lenient.ts';
import type { PersistentKind } from '../kind.ts';
import { LOCAL_VOLUME } from './claim.ts';
import { pathProblem } from './hostPath.ts';
import { mountOptions } from './mountable.ts';

export interface Local {
  kind: 'local';
  path: string;
  /** Containers are given the device itself. */
  block: boolean;
  /** Type of the file system that an empty device is given. */
  fsType: string;
  /** Options of mount(8). */
  options: readonly string[];
}

export const local: { persistent: PersistentKind<Local> } = {
  persistent: {
    field: 'local',
    named: 'local',
    plugin: LOCAL_VOLUME,
    mountOptions: true,
    decode: (spec, { volume, ...of }) => {
      const source = isRecord(spec.local) ? spec.local : {};
      const path = textOf(source.path);
      const wrong = pathProblem(path, volume);
      if (wrong !== null) return refused(wrong);
      const options = mountOptions(of);
      return built({ kind: 'local', path, block: spec.volumeMode === 'Block', fsType: textOf(source.fsType) || 'ext4', options });
    },
  },
};
