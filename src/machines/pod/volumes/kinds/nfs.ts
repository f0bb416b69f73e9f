/** `nfs`: a directory that a server exports, named by a pod or by a PersistentVolume. */

import { type Built, built, refused } from '../../../result.ts';
import { textOf } from '../../../shape/lenient.ts';
import { mountable } from './mountable.ts';

export interface Nfs {
  kind: 'nfs';
  server: string;
  path: string;
  /** Options of mount(8). */
  options: readonly string[];
}

export const nfs = mountable<Nfs>({
  kind: 'nfs',
  fields: ['server', 'path', 'readOnly'],
  problems: ({ server, path }) => [
    ...(textOf(server) === '' ? [{ field: 'server', what: 'required' }] : []),
    ...(textOf(path).startsWith('/') ? [] : [{ field: 'path', what: 'must be an absolute path' }]),
  ],
  decode,
  // A label of each file would be a call of the server.
  labelled: false,
});

function decode(content: Record<string, unknown>, options: readonly string[]): Built<Nfs> {
  const [server, path] = [textOf(content.server), textOf(content.path)];
  if (server === '' || /[\s\0]/.test(server)) return refused(`nfs.server "${server}" is not the name of a server`);
  if (!path.startsWith('/')) return refused(`nfs.path "${path}" must be absolute`);
  return built({ kind: 'nfs', server, path, options });
}

/** As mount(8) takes it. */
export function exportOf({ server, path }: Nfs): string {
  return `${server.includes(':') && !server.startsWith('[') ? `[${server}]` : server}:${path}`;
}

/** What is wrong, for who reads the pod's events. `said`: by mount(8). */
export function mountProblem(volume: Nfs, said: { code: string; message: string }): string {
  const from = exportOf(volume);
  if (said.code === 'ETIMEDOUT') return `the NFS server of ${from} does not answer; the mount is tried again`;
  // mount(8) asks the kernel itself where it has no helper, and guesses from what the kernel did not understand.
  if (/need a \/sbin\/mount\.|unknown filesystem type|mount program didn't pass/.test(said.message))
    return `this node cannot mount ${from}: it has no mount.nfs (package nfs-common or nfs-utils), or its kernel has no NFS: ${said.message}`;
  return `mount of ${from} failed: ${said.message}`;
}
