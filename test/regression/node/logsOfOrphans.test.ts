/** The log of a container that runs stays, also while the ledger of pods, begun anew, does not know its pod (found by the simulation, seed 1500368). */

import { expect, it } from 'vitest';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { containerGcAddr } from '../../../src/machines/reclaim/messages.ts';

import { pod, virtualNode } from '../../integration/virtualNode.ts';

const LOGS = '/var/log/actorlet/pods';

it('keeps the log of a container that still runs while nobody knows its pod', async () => {
  await using h = await virtualNode();
  h.write('web', pod('web', { life: 'run=forever,term=60s', spec: { terminationGracePeriodSeconds: 90 } }));
  await h.until('it runs', () => h.running('web').length === 1);
  const uid = h.uid('web');
  const log = `${LOGS}/default_web-n1_${uid}/main/0.log`;
  h.fs.put(log, 'a line\n');
  h.remove('web');
  await h.until('it is being stopped', () => h.state(`node/pods/workers/${uid}`).startsWith('terminating'));
  // Nobody tells the new ledger of what the runtime holds besides what its sources name.
  const untold = h.tree.tap((_path, _lane, { type }) => (type === 'pods.orphan' ? 'drop' : 'pass'));
  h.kill('node/pods/podManager');
  const ledger = () => h.tree.registry.read(podsView)?.value;
  await h.until('there is a ledger that does not know it', () => ledger()?.sourcesReady === true && ledger()?.records.has(uid) === false);
  h.tree.registry.send(containerGcAddr, { type: 'gc.run', why: 'a test' });
  const sweeps = () =>
    h.events.filter((e) => e.kind === 'transition' && e.path === 'node/reclaim/containerGc' && e.from === 'sweeping').length;
  const before = sweeps();
  await h.until('the collector has swept', () => sweeps() > before);
  const running = () => h.runtime.dump().containers.filter((c) => c.podUid === uid && c.state === 'CONTAINER_RUNNING');
  expect(running()).toHaveLength(1);
  expect(h.fs.has(log)).toBe(true);
  untold[Symbol.dispose]();
  await h.until('its logs are gone with it', () => running().length === 0 && !h.fs.has(log), 300_000);
});
