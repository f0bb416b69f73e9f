/** `/death?id=ID` of the admin socket: the bundle of one death, as its file has it. */

import { json, text } from '@actorlet/kubelet/actors/edge/answers/answers.ts';
import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import { deathsDir, deathsView, isDeathId } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { codeOf, messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Ports, ReadHandle } from '@actorlet/kubelet/ports/ports.ts';
import type { HttpReply, HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import { readBundle } from '@actorlet/shown/src/deaths/bundle.ts';

/** The largest that `--actorlet-deaths-max-kib` allows. */
const BUNDLE_BYTES_MAX = 4 * 1024 * 1024;

export async function deathRoute(
  { ports, registry }: { ports: Pick<Ports, 'fs'>; registry: Pick<Registry, 'read'> },
  { rootDir, req }: { rootDir: string; req: HttpRequest },
): Promise<HttpReply> {
  if (registry.read(deathsView) === undefined) return text('404: this node keeps no deaths (--actorlet-deaths-max)\n', 404);
  const id = req.query.get('id') ?? '';
  if (!isDeathId(id)) return text('400: say which death: /death?id=ID; actorctl deaths lists them\n', 400);
  const dir = deathsDir(rootDir);
  try {
    const file = await ports.fs.openRead(`${dir}/${id}.json`, { within: [dir] });
    const bundle = readBundle(new TextDecoder().decode(await allOf(file)));
    return bundle === null ? text(`500: the bundle ${dir}/${id}.json is damaged, or of another release\n`, 500) : json(bundle);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return text(`404: no death ${id} is kept; actorctl deaths lists those that are\n`, 404);
    return text(`500: the bundle of death ${id} cannot be read: ${messageOf(error)}\n`, 500);
  }
}

async function allOf(file: ReadHandle): Promise<Uint8Array> {
  try {
    const { size } = await file.stat();
    return await file.read(0, Math.min(size, BUNDLE_BYTES_MAX));
  } finally {
    await file.close();
  }
}
