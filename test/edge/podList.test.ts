/** The list of very many pods, as an answer. */
import { describe, expect, it } from 'vitest';
import { PIECE_CHARS, podList, podListReply } from '../../src/actors/edge/answers/podList.ts';
import { createYield } from '../../src/boot/dependencies/clock.ts';
import type { PodsView } from '../../src/machines/pods/manager/messages.ts';
import type { HttpReply } from '../../src/ports/sockets/net.ts';
import { RUNNING } from '../lifeStates.ts';

const POD_CHARS = 20_000;

function podsOf(count: number): PodsView {
  const records = Array.from({ length: count }, (_, i) => {
    const metadata = { name: `p${i}`, namespace: 'd', uid: `u${i}`, annotations: { a: 'x'.repeat(POD_CHARS) } };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] }, status: {} };
    return [`u${i}`, { pod, source: 'api', state: RUNNING }] as const;
  });
  return { records: new Map(records), epoch: 1, sourcesReady: true } as unknown as PodsView;
}
const reply = (pods: PodsView, ports = { yield: createYield() }): HttpReply =>
  podListReply(ports, { pods, statuses: new Map(), headers: {} });

function piecesOf({ body }: HttpReply): AsyncIterable<string> {
  if (typeof body === 'string' || body instanceof Uint8Array) throw new Error('the answer is in one piece');
  return body as AsyncIterable<string>;
}

describe('the answer to /pods', () => {
  it('is one text for few pods, and null stands for none', () => {
    expect(JSON.parse(String(reply(podsOf(3)).body))).toEqual(podList(podsOf(3), new Map()));
    expect(reply(podsOf(0)).body).toBe('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n');
  });

  it('comes in pieces for many, the same list as a whole', async () => {
    const pods = podsOf(200);
    const pieces: string[] = [];
    for await (const piece of piecesOf(reply(pods))) pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(10);
    for (const piece of pieces) expect(piece.length).toBeLessThan(PIECE_CHARS + 2 * POD_CHARS);
    expect(JSON.parse(pieces.join(''))).toEqual(podList(pods, new Map()));
  });

  it('takes turns with other such answers: one piece for each turn of the event loop', async () => {
    const ports = { yield: createYield() };
    const came: string[] = [];
    const turns: number[] = [];
    let turn = 0;
    let over = false;
    const count = (): void => {
      turn += 1;
      if (!over) setImmediate(count);
    };
    setImmediate(count);
    const read = async (who: string): Promise<void> => {
      let first = true;
      for await (const _ of piecesOf(reply(podsOf(100), ports))) {
        // The first piece is there before anything has to wait.
        if (!first) turns.push(turn);
        if (!first) came.push(who);
        first = false;
      }
    };
    await Promise.all([read('a'), read('b')]);
    over = true;
    expect(came.slice(0, 6).join('')).toBe('ababab');
    expect(new Set(turns).size).toBe(turns.length);
  });
});
