/** An image in the OCI layout that skopeo wrote: read within bounds, and judged before anything of it is unpacked. */
import { join } from 'node:path';
import { readRegularSync } from '../../../process/regularFile.ts';
import type { ImageConfig } from './records.ts';

const JSON_BYTES_MAX = 4 * 1024 * 1024;
const DIGEST = /^sha256:([0-9a-f]{64})$/;
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
  arm: 'arm',
  ia32: '386',
  ppc64: 'ppc64le',
  riscv64: 'riscv64',
};
export const architecture = (): string => ARCHITECTURES[process.arch] ?? process.arch;

export interface ReadImage {
  id: string;
  config: ImageConfig;
}

type Json = { readonly [key: string]: unknown };
const object = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {});
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const texts = (value: unknown): string[] => list(value).filter((v) => typeof v === 'string');

/** @throws for an image of another platform, with too many layers, or of another form. */
export function readLayout(dir: string, o: { layersMax: number }): ReadImage {
  const index = parse(join(dir, 'index.json'));
  const manifest = blob(dir, object(list(index.manifests)[0]).digest);
  const layers = list(manifest.layers);
  if (layers.length > o.layersMax) throw new Error(`the image has ${layers.length} layers, ${o.layersMax} is the most`);
  const id = text(object(manifest.config).digest);
  const config = blob(dir, id);
  const [os, arch] = [text(config.os) || 'linux', text(config.architecture)];
  if (os !== 'linux' || arch !== architecture())
    throw new Error(`the image is for ${os}/${arch || 'no architecture that it names'}, this machine is linux/${architecture()}`);
  const c = object(config.config);
  return {
    id,
    config: {
      ...{ env: texts(c.Env), entrypoint: texts(c.Entrypoint), cmd: texts(c.Cmd) },
      ...{ user: text(c.User), workingDir: text(c.WorkingDir), stopSignal: text(c.StopSignal) },
    },
  };
}

function blob(dir: string, digest: unknown): Json {
  const hex = DIGEST.exec(text(digest))?.[1];
  if (hex === undefined) throw new Error(`the image refers to ${JSON.stringify(digest)}, which is no sha256 digest`);
  return parse(join(dir, 'blobs', 'sha256', hex));
}

function parse(file: string): Json {
  return object(JSON.parse(readRegularSync(file, { own: true, bytesMax: JSON_BYTES_MAX }).toString('utf8')));
}
