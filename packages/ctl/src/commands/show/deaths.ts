/** `actorctl deaths` and `actorctl death ID`: what is kept of containers and pods that ended badly, or got stuck. */
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { withoutKind } from '@actorlet/kubelet/machines/edge/findPod.ts';
import { type DeathHead, isDeathId } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { DeathBundle } from '@actorlet/shown/src/deaths/bundle.ts';
import { deathHtml } from '@actorlet/shown/src/deaths/html.ts';
import { deathLines, deathTable, withoutPrivate } from '@actorlet/shown/src/deaths/text.ts';
import { type Asked, type Command, print, printData, printNames, printTable, wantsData } from '../../asked.ts';

async function kept(asked: Asked): Promise<readonly DeathHead[]> {
  return ((await asked.client.json('/deaths')) as { deaths: readonly DeathHead[] }).deaths;
}

/** Its name, NAMESPACE/NAME or UID. */
function isOfPod({ pod }: DeathHead, query: string): boolean {
  const name = withoutKind(query);
  return pod.uid === name || pod.name === name || `${pod.namespace}/${pod.name}` === name;
}

export function deaths(o: { pod: string; sinceMs: number }): Command {
  return async (asked) => {
    const { io, namespace } = asked;
    const fromMs = io.nowMs() - o.sinceMs;
    const shown = (await kept(asked)).filter(
      (head) => head.atMs >= fromMs && (namespace === '' || head.pod.namespace === namespace) && (o.pod === '' || isOfPod(head, o.pod)),
    );
    if (wantsData(asked.format)) printData(asked, shown);
    else if (asked.format === 'name')
      printNames(
        asked,
        'death',
        shown.map(({ id }) => id),
      );
    else if (shown.length === 0) print(asked, deathTable(shown, { nowMs: io.nowMs() }));
    else printTable(asked, deathTable(shown, { nowMs: io.nowMs() }), 'WHAT');
    return EXIT.ok;
  };
}

/** `which`: an id, the part of one that fits no other, or a pod, of which it is the newest. */
export function death(o: { which: string; isPrivate: boolean; html: boolean }): Command {
  return async (asked) => {
    const { id } = meant(await kept(asked), o.which, asked);
    const whole = (await asked.client.json('/death', { id })) as DeathBundle;
    const bundle = o.isPrivate ? withoutPrivate(whole) : whole;
    if (o.html) {
      if (asked.io.columns > 0) throw new CtlError(EXIT.usage, `html writes a page: send it to a file, as in \`> ${id}.html\`.`);
      asked.io.out(deathHtml(bundle));
    } else if (wantsData(asked.format)) printData(asked, bundle);
    else if (asked.format === 'name') printNames(asked, 'death', [id]);
    else print(asked, deathLines(bundle));
    return EXIT.ok;
  };
}

function meant(heads: readonly DeathHead[], which: string, { namespace }: Asked): DeathHead {
  const query = which.replace(/^death\//, '');
  const exact = heads.find(({ id }) => id === query);
  if (exact !== undefined) return exact;
  const ofPod = heads.findLast((head) => isOfPod(head, query) && (namespace === '' || head.pod.namespace === namespace));
  if (ofPod !== undefined) return ofPod;
  const fitting = /^[0-9a-f-]{4,}$/.test(query) ? heads.filter(({ id }) => id.includes(query)) : [];
  const [only, ...others] = fitting;
  if (only !== undefined && others.length === 0) return only;
  if (only !== undefined) throw new CtlError(EXIT.no, `${printable(query)} fits several deaths: ${fitting.map(({ id }) => id).join(', ')}`);
  const gone = isDeathId(query) ? '; the oldest ones go first' : '';
  throw new CtlError(EXIT.no, `no death called ${printable(query)} is kept on this node${gone}: actorctl deaths lists them`);
}
