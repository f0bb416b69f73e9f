/** An image in the OCI layout that skopeo wrote: read within bounds, and judged before anything of it is unpacked. */
import { join } from 'node:path';
import { listOf, recordOf, textOf, textsOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { goArch } from '@actorlet/kubelet/machines/text/go/goArch.ts';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import type { ImageConfig } from './records.ts';

const JSON_BYTES_MAX = 4 * 1024 * 1024;
const DIGEST = /^sha256:([0-9a-f]{64})$/;
export const architecture = (): string => goArch(process.arch);

export interface ReadImage {
  id: string;
  config: ImageConfig;
}

type Json = { readonly [key: string]: unknown };

/** @throws for an image of another platform, with too many layers, or of another form. */
export function readLayout(dir: string, o: { layersMax: number }): ReadImage {
  const index = parse(join(dir, 'index.json'));
  const manifest = blob(dir, recordOf(listOf(index.manifests)[0]).digest);
  const layers = listOf(manifest.layers);
  if (layers.length > o.layersMax) throw new Error(`the image has ${layers.length} layers, ${o.layersMax} is the most`);
  const id = textOf(recordOf(manifest.config).digest);
  const config = blob(dir, id);
  const [os, arch] = [textOf(config.os) || 'linux', textOf(config.architecture)];
  if (os !== 'linux' || arch !== architecture())
    throw new Error(`the image is for ${os}/${arch || 'no architecture that it names'}, this machine is linux/${architecture()}`);
  const c = recordOf(config.config);
  return {
    id,
    config: {
      ...{ env: textsOf(c.Env), entrypoint: textsOf(c.Entrypoint), cmd: textsOf(c.Cmd) },
      ...{ user: textOf(c.User), workingDir: textOf(c.WorkingDir), stopSignal: textOf(c.StopSignal) },
    },
  };
}

function blob(dir: string, digest: unknown): Json {
  const hex = DIGEST.exec(textOf(digest))?.[1];
  if (hex === undefined) throw new Error(`the image refers to ${JSON.stringify(digest)}, which is no sha256 digest`);
  return parse(join(dir, 'blobs', 'sha256', hex));
}

function parse(file: string): Json {
  return recordOf(JSON.parse(readRegularSync(file, { own: true, bytesMax: JSON_BYTES_MAX }).toString('utf8')));
}
