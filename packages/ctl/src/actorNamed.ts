/** Which actor a person names on the command line. */

import { type AdminClient, CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { findSummary, uidOf } from '@actorlet/kubelet/machines/edge/findPod.ts';
import { type ActorView, actorsMeant, allPaths, findActor, noSuchActor } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import { actorPattern } from '@actorlet/shown/src/match.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';

/** The path of the actor that a person means: as `actorctl tree` shows it, with or without `node/`. @throws CtlError for none, or several. */
export async function actorNamed(client: AdminClient, state: ActorView, asked: string): Promise<string> {
  const path = actorPattern(asked);
  if (findActor(state, path) !== undefined) return path;
  const answer = await client.get('/pods');
  const pods = answer.status === 200 ? (JSON.parse(answer.body) as { pods: readonly PodSummary[] }).pods : [];
  const found = actorsMeant(allPaths(state), path, (query) => uidOf(findSummary(query, pods)));
  const [only] = found;
  if (only === undefined) throw new CtlError(EXIT.no, noSuchActor(state, path));
  if (found.length > 1)
    throw new CtlError(EXIT.no, `${printable(asked)} fits several actors, say which:\n${found.map((p) => `  ${p}`).join('\n')}`);
  return only;
}
