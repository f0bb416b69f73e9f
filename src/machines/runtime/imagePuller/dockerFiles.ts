/** Where the node's own credentials for registries may be: files of a Docker client, which are for every pod. Pure. */

import type { DockerFile } from './keyring.ts';

interface DockerFolders {
  rootDir: string;
  /** In which the daemon was started; '' = not known. */
  working: string;
  /** Of the user that the daemon runs as; '' = none. */
  home: string;
}
export interface DockerFilePlace {
  path: string;
  kind: DockerFile;
}

/** In the order of the kubelet: the first that can be used counts alone. */
export function dockerFiles({ rootDir, working, home }: DockerFolders): DockerFilePlace[] {
  const places = (name: string, folders: readonly string[], kind: DockerFile): DockerFilePlace[] =>
    [...new Set(folders)].filter((folder) => folder !== '').map((folder) => ({ path: inFolder(folder, name), kind }));
  const ofClient = home === '' ? '' : inFolder(home, '.docker');
  return [
    ...places('config.json', [rootDir, working, ofClient, '/.docker'], '.dockerconfigjson'),
    ...places('.dockercfg', [rootDir, working, home, '/'], '.dockercfg'),
  ];
}

function inFolder(folder: string, name: string): string {
  return `${folder === '/' ? '' : folder}/${name}`;
}
