/** The folder of a socket that agents of this node mount: the socket is another one after each start. */
import type { ServerEvent } from '../../machines/edge/messages.ts';
import { unlinkIfThere } from '../../ports/ifThere.ts';
import type { Listening } from '../../ports/listening.ts';
import type { HostFs } from '../../ports/ports.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { naming, specOfServer } from './server.ts';

/** Mode of the folder, from the reference. */
const FOLDER_MODE = 0o750;

/** The path of the socket, where nothing is. */
async function freshSocket(fs: HostFs, folder: string, name: string): Promise<string> {
  await fs.mkdirp(folder, FOLDER_MODE);
  const path = `${folder}/${name}`;
  // A daemon that was killed left it: one that runs has the root directory locked (boot/steps/prepare.ts).
  await unlinkIfThere(fs, path);
  return path;
}

/** A server at such a socket, below the root directory. Only root may open it. */
export function specOfAgentServer(
  o: { id: string; folder: string; socket: string },
  serve: (ctx: ActorCtx<ServerEvent>, path: string) => Promise<Listening>,
): ActorSpec<ServerEvent> {
  const open = async (ctx: ActorCtx<ServerEvent>) => serve(ctx, await freshSocket(ctx.ports.fs, o.folder, o.socket));
  return specOfServer({
    ...{ id: o.id, flag: '--root-dir', awaited: false },
    server: (ctx) => ({ listen: () => naming('--root-dir', () => open(ctx)) }),
  });
}
