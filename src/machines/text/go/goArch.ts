/** Names of processors in the words of Go, which labels of nodes and platforms of images use. Pure. */

/** Node.js has other words for these. It runs on POWER in its little-endian form alone. */
const GO_NAMES: ReadonlyMap<string, string> = new Map([
  ['x64', 'amd64'],
  ['ia32', '386'],
  ['ppc64', 'ppc64le'],
]);

/** @param arch As in `process.arch`. */
export function goArch(arch: string): string {
  return GO_NAMES.get(arch) ?? arch;
}
