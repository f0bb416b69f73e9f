/** The page of a node that observes another kubelet: what it says live, and what it says of the same moment from a recording. */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { expect, it } from 'vitest';
import { pod } from '../../../../test/integration/virtualNode.ts';
import { type Beside, beside } from '../../../observe/test/beside.ts';
import { Hub } from '../../src/feed/hub.ts';
import { kubeletFrame } from '../../src/feed/kubelet.ts';
import { momentOf } from '../../src/feed/live.ts';
import { LIFE_FRAME } from '../../src/feed/podDetail.ts';
import { problemsFrame } from '../../src/feed/problems.ts';
import { RecordedAnswers } from '../../src/recording/answers.ts';
import { PastFeed } from '../../src/recording/pastFeed.ts';
import { Recording } from '../../src/recording/recording.ts';
import { RecordingWriter } from '../../src/recording/writer.ts';
import { attach, viewer, watch } from '../rig.ts';

function create({ h }: Beside, name: string): void {
  const made = pod(name) as { spec: object };
  const body = { ...made, spec: { ...made.spec, nodeName: 'n1' } };
  expect(h.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body }).ok).toBe(true);
}
function inspectedOf(b: Beside): Inspected {
  const { inspected } = b.node;
  if (inspected === null) throw new Error('the observer was not started to be inspected');
  return inspected;
}

it('names what a dead kubelet does not do, among the problems and in a view of its own, live and from a recording', async () => {
  await using b = await beside({ flags: { record: '/node.rec' } });
  const parts: Uint8Array[] = [];
  const writer = new RecordingWriter(inspectedOf(b), {
    ...{ waitingBytes: 0, segmentBytes: 0, generation: 1, segmentSoftMax: 1e9 },
    write: (bytes) => parts.push(bytes) > 0,
    rotate: () => undefined,
  });
  const hub = new Hub(inspectedOf(b), () => ({ [Symbol.dispose]: () => undefined }));
  const page = viewer();
  watch(attach(hub, page), { kubelet: true });
  create(b, 'web');
  await b.h.until('an act has agreed', () =>
    (page.of('kubelet').at(-1)?.counts ?? []).some((c) => c.kind === 'StartContainer' && c.agreed > 0),
  );
  expect(page.of('problems').at(-1)?.kubelet).toEqual({ listed: [], more: 0 });
  let stopped = false;
  void b.h.node.stop().then(() => {
    stopped = true;
  });
  await b.h.until('the kubelet has ended', () => stopped);
  create(b, 'late');
  const late = () =>
    page
      .of('kubelet')
      .at(-1)
      ?.standing.listed.find((d) => d.pod === 'default/late');
  await b.h.until('the page names what is missing', () => late() !== undefined, 180_000);
  expect(late()?.text).toMatch(/^the kubelet has not .* for \d+/);
  expect(late()?.uid).not.toBe('');
  expect(
    page
      .of('kubelet')
      .at(-1)
      ?.expected.listed.map((act) => act.pod),
  ).toContain('default/late');
  await b.h.advance(2_000);
  const problems = page.of('problems').at(-1);
  expect(problems?.kubelet?.listed.map((p) => p.pod)).toContain('default/late');
  expect(problems?.count).toBeGreaterThanOrEqual(problems?.kubelet?.listed.length ?? 0);

  const now = momentOf(inspectedOf(b));
  const live = JSON.parse(JSON.stringify([kubeletFrame(now), problemsFrame(now)])) as unknown;
  const atMs = b.h.time.clock.wallMs();
  await b.h.advance(1);
  writer.end();
  hub.close();
  const recording = new Recording([new Uint8Array(Buffer.concat(parts))]);
  const past = viewer();
  const joined = new PastFeed(recording, { startMs: atMs, life: LIFE_FRAME }).join(past);
  joined?.message(JSON.stringify({ t: 'watch', kubelet: true }));
  expect([past.of('kubelet')[0], past.of('problems')[0]]).toEqual(live);
  const ledger = JSON.parse(new RecordedAnswers(recording, atMs).get('/disagreements', {}).body) as { disagreements: { pod: string }[] };
  expect(ledger.disagreements.map((d) => d.pod)).toContain('default/late');
});
