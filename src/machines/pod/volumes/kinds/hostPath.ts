/** `hostPath`: a path of the node, named by a pod or by a PersistentVolume. */

import { type Built, built, refused } from '../../../result.ts';
import { partOf, textOf } from '../../../shape/lenient.ts';
import { type FieldRule, honoured } from '../../fieldRule.ts';
import type { InlineKind, PersistentKind } from '../kind.ts';
import { LOCAL_VOLUME } from './claim.ts';

export const HOST_PATH_TYPES = [
  '',
  'DirectoryOrCreate',
  'Directory',
  'FileOrCreate',
  'File',
  'Socket',
  'CharDevice',
  'BlockDevice',
] as const;
export type HostPathType = (typeof HOST_PATH_TYPES)[number];

export interface HostPath {
  kind: 'hostPath';
  path: string;
  type: HostPathType;
}

const TYPE_RULE: FieldRule = { path: 'hostPath.type', only: HOST_PATH_TYPES, refused: 'nobody can tell what has to be at the path' };

export const hostPath: { inline: InlineKind<HostPath>; persistent: PersistentKind<HostPath> } = {
  inline: {
    kind: 'hostPath',
    plugin: 'kubernetes.io~host-path',
    fields: { hostPath: decode },
    rules: [...honoured('hostPath.path'), TYPE_RULE],
    stands: 'elsewhere',
    foreign: true,
    refreshes: false,
    defaults: (content) => {
      content.type ??= '';
    },
    problems: ({ path: given }) => {
      const path = given === undefined ? '' : String(given);
      if (path === '') return [{ field: 'path', what: 'required' }];
      return path.split('/').includes('..') ? [{ field: 'path', what: "must not contain '..'" }] : [];
    },
    mounted: ({ path }) => ({ hostPath: path, readOnly: false, managed: false }),
  },
  persistent: {
    field: 'hostPath',
    named: 'hostPath',
    // Only the link to its device stands there.
    plugin: LOCAL_VOLUME,
    mountOptions: false,
    decode: (spec, { volume }) => {
      const source = partOf(spec, 'hostPath');
      const [path, type] = [textOf(source.path), textOf(source.type)];
      const wrong = pathProblem(path, volume);
      if (wrong !== null) return refused(wrong);
      if (!isHostPathType(type)) return refused(`hostPath.type "${type}" of PV ${volume} is not a type of hostPath`);
      return built({ kind: 'hostPath', path, type });
    },
  },
};

function decode(content: Record<string, unknown>): Built<HostPath> {
  const path = textOf(content.path);
  const type = textOf(content.type);
  if (!isWhole(path)) return refused(`hostPath.path "${path}" must be absolute, without ".."`);
  if (!isHostPathType(type)) return refused(`hostPath.type "${type}" is not a type of hostPath`);
  return built({ kind: 'hostPath', path, type });
}

function isWhole(path: string): boolean {
  return path.startsWith('/') && !path.split('/').includes('..');
}

/** What is wrong with the path of a PersistentVolume on this node; null: nothing. */
export function pathProblem(path: string, volume: string): string | null {
  return isWhole(path) ? null : `path "${path}" of PV ${volume} must be absolute, without ".."`;
}

function isHostPathType(value: string): value is HostPathType {
  return (HOST_PATH_TYPES as readonly string[]).includes(value);
}
