/** Files that the node reads, and paths of requests, of which parts are secret. */
import { withResponses } from '@actorlet/kubelet/machines/allocation/devices/checkpoint.ts';
import type { Door, Doors, Place } from './doors.ts';
import { parsedOf } from './encodings.ts';
import { pathText } from './requests.ts';

/** Variables and annotations that device plugins gave, in the node's record. */
export function devicesText(text: string, made: (value: string, at: Place) => string, doors: Pick<Doors, 'of'>): string {
  const each = (all: Readonly<Record<string, string>>, of: (key: string) => Door) =>
    Object.fromEntries(Object.entries(all).map(([key, value]) => [key, made(value, { key, door: of(key) })]));
  const noted = (all: object) => (key: string) => doors.of(key, all, { key: 'annotations', door: 'open' });
  try {
    return withResponses(text, (r) => ({
      ...r,
      envs: each(r.envs, () => 'secret'),
      annotations: each(r.annotations, noted(r.annotations)),
    }));
  } catch {
    // The tree believes such a record as little.
    return made(text, { key: '', door: 'secret' });
  }
}

/** A value of a pod's labels or annotations, or all of them, each in quotes on a line. */
export function downwardText(text: string, known: (value: string) => string | null): string {
  const line = (all: string): string => {
    const at = all.indexOf('="') + 1;
    const value = all.slice(at);
    return at === 0 ? all : all.slice(0, at) + (known(value) ?? value);
  };
  return known(text) ?? text.split('\n').map(line).join('\n');
}

/** Of each part apart: nothing of it is looked for elsewhere. */
export function partsText(door: 'folder' | 'bundle' | 'address', text: string, like: (part: string) => string): string {
  if (door === 'address') return pathText(text, like);
  return door === 'folder' ? folderText(text, like) : bundleText(text, like);
}

/** Below a volume: of one mount, and of each mount of a sub-path in a table. */
const FOLDER = /(\/volumes\/kubernetes\.io~[^/]+\/[^/]+\/)(.+)$/;
const FOLDER_IN_TABLE = /^((?:\S+ ){3}\S*?\/volumes\/kubernetes\.io~[^/\s]+\/[^/\s]+\/)(\S+)(?= \S*\/volume-subpaths\/)/gm;

/** Where a mount of a sub-path lies, or a table of mounts. The tree does not read the names of such folders. */
function folderText(text: string, like: (part: string) => string): string {
  const folder = (path: string): string => path.replaceAll(/[^/]+/g, like);
  return text.replace(text.includes('\n') ? FOLDER_IN_TABLE : FOLDER, (_, volume: string, path: string) => volume + folder(path));
}

/** The last one may be cut. */
const TEXT_OF_JSON = /"((?:[^"\\]|\\.)*)(?:"(\s*:)?|\\?$)/gs;

/** A bundle of a death, or its beginning. The tree reads its first line, and serves the rest as JSON. */
function bundleText(text: string, like: (part: string) => string): string {
  const end = text.indexOf('\n') + 1;
  const rest = text.slice(end).replace(TEXT_OF_JSON, (token, inner: string, colon: string | undefined) => {
    if (colon !== undefined) return token;
    if (!token.endsWith('"') || token.length === 1) return `"${like(inner)}`;
    // A file that was damaged need not be JSON.
    const plain = parsedOf(`"${inner}"`);
    return JSON.stringify(like(typeof plain === 'string' ? plain : inner));
  });
  return text.slice(0, end) + rest;
}
