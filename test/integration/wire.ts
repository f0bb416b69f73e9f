/** What an API server sends, changed on its way to the node: answers, items of lists, objects of watches. */
import { isRecord } from '../../src/machines/shape/conform.ts';
import type { KubeApi } from '../../src/ports/kube.ts';
import type { Ports } from '../../src/ports/ports.ts';

export interface Wire {
  /** In place of the object that the server sends from this path. The same object by default. */
  sends(path: string, object: unknown): unknown;
}

/** For option `ports` of a virtual node. */
export function onTheWire(wire: Wire): (ports: Ports) => Ports {
  return (ports) => (ports.kube === undefined ? ports : { ...ports, kube: changed(ports.kube, wire) });
}

function changed(kube: KubeApi, wire: Wire): KubeApi {
  const fresh = (path: string, object: unknown): unknown => wire.sends(path, structuredClone(object));
  return {
    ...kube,
    async request(request, o) {
      const answer = await kube.request(request, o);
      if (!answer.ok) return answer;
      const { body } = answer;
      const items = isRecord(body) && Array.isArray(body.items) ? { items: body.items.map((i) => fresh(request.path, i)) } : null;
      return { ...answer, body: items === null ? fresh(request.path, body) : { ...(body as object), ...items } };
    },
    async watch(request, o) {
      const answer = await kube.watch(request, o);
      return answer.ok ? { ok: true, lines: lines(answer.lines, (object) => fresh(request.path, object)) } : answer;
    },
  };
}

async function* lines(from: AsyncIterable<string>, send: (object: unknown) => unknown): AsyncGenerator<string> {
  for await (const line of from) {
    const event = JSON.parse(line) as { type: string; object: unknown };
    yield event.type === 'BOOKMARK' || event.type === 'ERROR' ? line : JSON.stringify({ ...event, object: send(event.object) });
  }
}
