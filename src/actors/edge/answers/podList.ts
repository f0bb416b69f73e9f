/** The PodList of /pods: what the pod manager knows, each with its live status. */
import type { Pod } from '../../../machines/kube/types.ts';
import { isWanted, type PodsView } from '../../../machines/pods/manager/messages.ts';
import type { StatusView } from '../../../machines/pods/status/messages.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { HttpReply } from '../../../ports/sockets/net.ts';
import { inTurn } from '../../../ports/turns.ts';

type Item = Omit<Pod, 'kind' | 'apiVersion'>;
export interface PodList {
  kind: 'PodList';
  apiVersion: 'v1';
  metadata: Record<never, never>;
  /** null, not `[]`, when there is none: clients of the kubelet's list are used to that. */
  items: Item[] | null;
}

/** An answer up to this many characters is written whole; a longer one in pieces of about this size. */
export const PIECE_CHARS = 256 * 1024;
const HEAD = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":';

/** Pods that some source wants, rejected ones included; neither removed ones nor orphans found in the runtime. */
function* itemsOf(pods: PodsView, statuses: StatusView | undefined): Generator<Item> {
  for (const [uid, record] of pods.records) {
    if (!isWanted(record) || record.source === 'runtime') continue;
    const { kind: _kind, apiVersion: _apiVersion, resize: _resize, ...pod } = record.pod;
    yield { ...pod, status: statuses?.get(uid)?.status ?? pod.status };
  }
}

export function podList(pods: PodsView, statuses: StatusView | undefined): PodList {
  const items = [...itemsOf(pods, statuses)];
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: items.length === 0 ? null : items };
}

/** The list as JSON text, cut into pieces. */
function* piecesOf(pods: PodsView, statuses: StatusView | undefined): Generator<string> {
  let text = HEAD;
  let before = '[';
  for (const item of itemsOf(pods, statuses)) {
    text += before + JSON.stringify(item);
    before = ',';
    if (text.length < PIECE_CHARS) continue;
    yield text;
    text = '';
  }
  yield `${text}${before === '[' ? 'null' : ']'}}\n`;
}

/**
 * Thousands of pods are tens of megabytes of JSON: written whole they would hold up the event loop, and each client that reads
 * slowly would keep a copy of its own. All such answers of a node take turns, one piece for each turn of the event loop.
 */
export function podListReply(
  ports: Pick<Ports, 'yield'>,
  o: { pods: PodsView; statuses: StatusView | undefined; headers: Record<string, string> },
): HttpReply {
  const pieces = piecesOf(o.pods, o.statuses);
  const head = { status: 200, headers: { 'content-type': 'application/json', ...o.headers } };
  const first = pieces.next().value ?? '';
  if (first.length < PIECE_CHARS) return { ...head, body: first };
  return { ...head, body: inPieces(ports, first, pieces) };
}

async function* inPieces(ports: Pick<Ports, 'yield'>, first: string, pieces: Generator<string>): AsyncGenerator<string, void, undefined> {
  yield first;
  for (;;) {
    const next = await inTurn(ports.yield, 'pieces of pod lists', async () => {
      await new Promise<void>((resolve) => ports.yield.defer(resolve));
      return pieces.next();
    });
    if (next.done === true) return;
    yield next.value;
  }
}
