/** What is done to a node by hand, and through no port, is in its recording: faults of the page, messages, kills, taps. */

import type { InjectAnswer, InjectorEvent } from '@actorlet/faults/src/live.ts';
import { injectorAddr } from '@actorlet/faults/src/messages.ts';
import { decodeScenario } from '@actorlet/faults/src/read/decode.ts';
import { RecordingWriter } from '@actorlet/inspect/src/recording/writer.ts';
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { podManagerAddr } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Answer, ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../../test/integration/virtualNode.ts';
import { inspectedOf } from '../../inspect/test/rig.ts';
import { entryOfLine } from '../src/check.ts';
import { InputRecording } from '../src/record.ts';
import { inputsOf, recordedNode } from './less/quickStart.ts';
import { replayed } from './replayed.ts';
import { entriesOf, headerOf, recorded } from './simulated/recordedSim.ts';

const SCENARIO = {
  apiVersion: 'actorlet.dev/v1alpha1',
  kind: 'FaultScenario',
  metadata: { name: 'by-hand' },
  spec: {
    duration: '15s',
    faults: [
      { name: 'slow', kind: 'cri', action: 'delay', delay: '700ms', at: '0s', for: '6s' },
      {
        name: 'lost',
        kind: 'mailbox',
        action: 'drop',
        select: { events: ['pod.dirty', 'pods.dirty'] },
        probability: 0.5,
        at: '1s',
        for: '8s',
      },
      { name: 'late', kind: 'mailbox', action: 'delay', delay: '800ms', select: { actors: ['pods/workers'] }, at: '2s', for: '8s' },
      { name: 'crash', kind: 'actor.kill', select: { actors: ['pods/podManager'] }, at: '3s' },
    ],
  },
};
const AT_MS = 3_000;

it('with them a node does again what it did', async () => {
  const answers: Answer<InjectAnswer>[] = [];
  const act = async ({ tree }: Node): Promise<void> => {
    const decoded = decodeScenario(JSON.stringify(SCENARIO), 'live');
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    const { scenario } = decoded;
    const tap = (tree as SupervisionTree).tap((path) => (path === podManagerAddr.path ? { delayMs: 300 } : 'pass'));
    const inject = (replyTo: ReplyTo<InjectAnswer>): InjectorEvent => ({ type: 'faults.inject', scenario, replyTo });
    answers.push(await tree.registry.ask(injectorAddr, inject, { timeoutMs: 5_000 }));
    tree.registry.send(podManagerAddr, { type: 'pods.dirty', uid: 'none', why: 'a test' });
    tap[Symbol.dispose]();
    tree.kill('node/runtime/pleg', 'test');
  };
  const { daemons, result } = await recorded({ seed: 22, minutes: 0.3, pods: 3 }, { atMs: AT_MS, act });
  expect(answers).toMatchObject([{ kind: 'reply', value: { ok: true } }]);
  expect(result.violation).toBeNull();
  for (const one of daemons) {
    const again = await replayed(headerOf(one), entriesOf(one));
    expect({ ...again, steps: [] }).toMatchObject({ divergence: null, failure: null });
  }
  const [first] = daemons;
  const codes = first?.lines.slice(1).map((line) => entryOfLine(line)?.[0]);
  expect(codes).toEqual(expect.arrayContaining(['tapped', 'asked', 'sent', 'untapped', 'killed']));
  // The faults were at work.
  expect(first?.lines.filter((line) => line.includes('by-hand')).length).toBeGreaterThan(0);
});

it('a flight recorder beside it moves no clock of the node', async () => {
  const lines: string[] = [];
  let looks = 0;
  await using h = await virtualNode({
    flags: { record: '/node.rec' },
    // A real clock goes on from look to look.
    ports: (ports) => ({
      ...ports,
      clock: { ...ports.clock, monoMs: () => ports.clock.monoMs() + looks++ / 3, wallMs: () => ports.clock.wallMs() + looks / 3 },
    }),
    between(config, ports) {
      const recording = new InputRecording(ports, {
        ...{ config, options: {}, versions: { actorlet: 'test', node: process.version } },
        afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
        write: (line) => lines.push(line) > 0,
        ended() {},
      });
      return { ports: recording.ports, wrap: (node) => recording.around(node) };
    },
  });
  const sink = { waitingBytes: 0, segmentBytes: 0, generation: 1, segmentSoftMax: 1e9, write: () => true, rotate() {} };
  using _ = new RecordingWriter(inspectedOf(h), sink);
  h.write('web.yaml', pod('web'));
  h.write('crashes.yaml', pod('crashes', { life: 'run=1s,exit=3' }));
  await h.advance(60_000);
  const before = lines.length;
  const { tree } = inspectedOf(h);
  for (let i = 0; i < 3; i++) expect([tree.rowAt('node/pods/status')?.path, tree.state().path]).toEqual(['node/pods/status', 'node']);
  expect(lines.slice(before)).toEqual([]);
  const { header, entries } = inputsOf(lines);
  const { divergence, failure, inputs } = await replayed(header, entries());
  expect({ divergence, failure }).toEqual({ divergence: null, failure: null });
  expect(inputs).toBeGreaterThan(300);
});

it('a node that keeps facts about deaths does it again, whatever stands in for the secrets in logs', async () => {
  const SECRET = 'env-hunter2-aa';
  const probe = { httpGet: { path: '/?k=query-hunter2', port: 80 }, periodSeconds: 2, failureThreshold: 2 };
  const lines = await recordedNode({ flags: { deathsMax: 3, deathsStuckAfter: 5_000 } }, async (h) => {
    h.write('web.yaml', pod('web', { life: 'run=3s,exit=3', container: { env: [{ name: 'KEY', value: SECRET }] } }));
    h.write('ill.yaml', pod('ill', { container: { livenessProbe: probe } }));
    h.write('no.yaml', pod('no', { spec: { nodeSelector: { a: 'b' } } }));
    await h.until('it runs', () => h.running('web').length === 1);
    const dir = `/var/log/actorlet/pods/default_web-n1_${h.uid('web')}/main`;
    h.fs.makeDir(dir);
    h.fs.put(`${dir}/0.log`, `2026-01-01T00:00:01.000000000Z stdout F the key is ${SECRET}, password=hunter2, https://u:hunter2@x\n`);
    await h.until('bundles push others out', () => h.fs.below('/var/lib/kubelet/actorlet/deaths').length >= 3, 60_000);
    await h.advance(60_000);
  });
  expect(lines.filter((line) => line.includes('/actorlet/deaths/')).length).toBeGreaterThan(5);
  expect(lines.join('\n')).not.toContain('hunter2');
  const { header, entries } = inputsOf(lines);
  const { divergence, failure } = await replayed(header, entries());
  expect({ divergence, failure }).toEqual({ divergence: null, failure: null });
});
