/**
 * The catalogue of the process runtime: images are names for commands of this host, no file system of their own.
 * A name outside the catalogue fails its pull in the words of a registry.
 */

import { createHash } from 'node:crypto';
import type { Image } from '@actorlet/kubelet/machines/wire/cri.ts';
import { NODE_FLAGS } from '@actorlet/process/src/startProcess.ts';
import { CODE, imageTag, nanos, RuntimeRefusal } from '../../shared/model.ts';
import type { ProcessHandlers } from '../types.ts';
import type { CatalogueEntry } from './catalogue.ts';
import type { State } from './state.ts';

/** A tiny HTTP server: answers every request with the pod's host name and the path asked for. */
const WEB = `
const http = require('node:http');
const port = process.env.PORT || '8080';
const server = http.createServer((req, res) => {
  console.log(req.method + ' ' + req.url);
  res.setHeader('content-type', 'text/plain');
  res.end('hello from ' + (process.env.HOSTNAME || 'actorlet') + ', you asked for ' + req.url + '\\n');
});
server.on('error', (e) => { console.error('cannot listen: ' + e.message); process.exit(1); });
const listening = () => console.log('listening on ' + port);
// A path instead of a number is a unix socket.
if (port.startsWith('/')) server.listen(port, listening);
else server.listen(Number(port), process.env.ADDRESS || '127.0.0.1', listening);
process.on('SIGTERM', () => { console.log('stopping'); server.close(() => process.exit(0)); server.closeAllConnections(); });
`;

/** `nodePath`: the interpreter that runs the toys written in JavaScript. */
function catalogue(nodePath: string): readonly CatalogueEntry[] {
  return [
    { name: 'actorlet.dev/host:latest', about: 'any command found on this host; the pod names it in `command`', entrypoint: [], cmd: [] },
    {
      name: 'actorlet.dev/pause:latest',
      about: 'does nothing until it is stopped, then exits 0',
      entrypoint: ['sh', '-c', 'trap "exit 0" TERM INT; while :; do sleep 86400 & wait $!; done'],
      cmd: [],
    },
    { name: 'actorlet.dev/sleep:latest', about: 'sleeps; `args` gives the seconds, default 3600', entrypoint: ['sleep'], cmd: ['3600'] },
    { name: 'actorlet.dev/echo:latest', about: 'prints its `args` and exits 0', entrypoint: ['echo'], cmd: ['hello from actorlet'] },
    {
      name: 'actorlet.dev/crash:latest',
      about: 'runs for RUN_SECONDS (1), then exits with EXIT_CODE (1)',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: shell parameters.
      entrypoint: ['sh', '-c', 'echo "will crash"; sleep "${RUN_SECONDS:-1}"; echo "crashing" >&2; exit "${EXIT_CODE:-1}"'],
      cmd: [],
    },
    {
      name: 'actorlet.dev/web:latest',
      about: 'a tiny HTTP server on ADDRESS (127.0.0.1), PORT (8080)',
      entrypoint: [nodePath, ...NODE_FLAGS, '-e', WEB],
      cmd: [],
    },
  ];
}

export interface ImageCatalogue {
  /** By id or by name; undefined when it was not pulled. */
  find(ref: string): { image: Image; entry: CatalogueEntry } | undefined;
  /** Throws NotFound for a name outside the catalogue. */
  pull(name: string): Image;
  /** A name of the catalogue, pulled or not. */
  has(name: string): boolean;
  remove(ref: string): void;
  list(): Image[];
  /** Names of what was pulled, for the state on disk. */
  pulled(): string[];
}

/** An id that stays the same while the entry's commands do. */
function idOf(entry: CatalogueEntry): string {
  return `sha256:${createHash('sha256')
    .update(JSON.stringify([entry.name, entry.entrypoint, entry.cmd]))
    .digest('hex')}`;
}

/** `uid`: whom the runtime runs as, and so the user of every image here: a node that asks for nobody else asks for it. */
export function createCatalogue(nodePath: string, alreadyPulled: readonly string[], uid: number): ImageCatalogue {
  const entries = new Map(catalogue(nodePath).map((e) => [e.name, e]));
  const present = new Map<string, CatalogueEntry>();
  const image = (entry: CatalogueEntry): Image => ({
    id: idOf(entry),
    repoTags: [entry.name],
    repoDigests: [`${entry.name.slice(0, entry.name.lastIndexOf(':'))}@${idOf(entry)}`],
    // What the entry itself takes: there is no file system to count.
    size: String(JSON.stringify(entry).length),
    uid: { value: String(uid) },
    username: '',
    spec: null,
    pinned: false,
  });
  const find = (ref: string): CatalogueEntry | undefined =>
    present.get(imageTag(ref)) ?? [...present.values()].find((e) => idOf(e) === ref || image(e).repoDigests.includes(ref));
  for (const name of alreadyPulled) {
    const entry = entries.get(name);
    if (entry !== undefined) present.set(name, entry);
  }
  return {
    find(ref) {
      const entry = find(ref);
      return entry === undefined ? undefined : { image: image(entry), entry };
    },
    pull(name) {
      const tag = imageTag(name);
      const entry = entries.get(tag) ?? find(name);
      if (entry === undefined) {
        throw new RuntimeRefusal(
          CODE.notFound,
          `failed to pull and unpack image ${JSON.stringify(tag)}: failed to resolve reference: not found. The embedded runtime runs the built-in images alone: ${[...entries.keys()].join(', ')}. For images of registries use embedded://oci`,
        );
      }
      present.set(entry.name, entry);
      return image(entry);
    },
    has: (name) => entries.has(imageTag(name)),
    remove(ref) {
      const entry = find(ref);
      if (entry !== undefined) present.delete(entry.name);
    },
    list: () => [...present.values()].map(image),
    pulled: () => [...present.keys()],
  };
}

/** CRI calls about images; names of those that were pulled are kept on disk. `mountpoint`: where the runtime keeps its files. */
export function imageHandlers(images: ImageCatalogue, { state, mountpoint }: { state: State; mountpoint: string }) {
  return {
    ListImages: ({ filter }) => {
      const wanted = filter?.image?.image;
      if (!wanted) return { images: images.list() };
      const found = images.find(wanted);
      return { images: found === undefined ? [] : [found.image] };
    },
    ImageStatus: ({ image }) => ({ image: images.find(image.image)?.image ?? null, info: {} }),
    PullImage: ({ image }) => {
      const pulled = images.pull(image.image);
      state.store.saveImages(images.pulled());
      return { imageRef: pulled.id };
    },
    RemoveImage: ({ image }) => {
      images.remove(image.image);
      state.store.saveImages(images.pulled());
      return {};
    },
    ImageFsInfo: () => {
      const used = images.list().reduce((sum, i) => sum + Number(i.size), 0);
      const fs = {
        timestamp: nanos(state.nowMs()),
        fsId: { mountpoint },
        usedBytes: { value: String(used) },
        inodesUsed: { value: '0' },
      };
      return { imageFilesystems: [fs], containerFilesystems: [fs] };
    },
  } satisfies Partial<ProcessHandlers>;
}
