/** What a pod's author makes as large as it may be, and the node looks at in one go: in processor time, of which others use the same thread. */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createActor, fromPromise } from 'xstate';
import { createHistory } from '../../src/actors/recorder/history.ts';
import { SecretWords } from '../../src/actors/recorder/secretWords.ts';
import { valuesOf } from '../../src/actors/services/objects/objects.ts';
import { lookout } from '../../src/actors/supervision/looks/lookout.ts';
import type { KubeObject } from '../../src/machines/kube/request.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { judgeCommand } from '../../src/machines/pods/workers/container/hooks.ts';
import { decodeObject } from '../../src/machines/services/objects/decode.ts';
import { type Fetched, objectMachine, type Question } from '../../src/machines/services/objects/objectMachine.ts';
import { objectsMachine } from '../../src/machines/services/objects/objectsMachine.ts';
import { provided } from '../../src/machines/xstate/provide.ts';
import { virtualTime } from '../integration/virtualTime.ts';
import { pod } from '../machines/pods/fixtures.ts';

const RUNS = 3;
const idle = (): void => {};
const never = fromPromise<Fetched, Question>(() => new Promise(() => {}));
/** As many Secrets as a pod may. */
const naming = (uid: string): Pod => {
  const envFrom = Array.from({ length: 500 }, (_, i) => ({ secretRef: { name: `${uid}${i}` } }));
  return pod({ containers: [{ name: 'c', envFrom }] }, { metadata: { uid, name: uid } });
};

/** Of the cheapest of a few: the first ones are not compiled yet, and a machine that is busy with others is slow. */
function cheapestMs(make: () => () => unknown): number {
  const costs = Array.from({ length: RUNS }, () => {
    const run = make();
    const before = process.threadCpuUsage();
    run();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...costs);
}

it.each<[string, number, () => () => unknown]>([
  [
    'a Secret of 1 MiB',
    25,
    () => {
      const data = { a: randomBytes(750 * 1024).toString('base64') };
      const metadata = { name: 's', namespace: 'ns', uid: 'u', resourceVersion: '1' };
      return () => decodeObject({ kind: 'secret', namespace: 'ns', name: 's' }, { metadata, data });
    },
  ],
  [
    'a Secret of many lines, which are looked for in messages from then on',
    100,
    () => {
      const lines = Array.from({ length: 80_000 }, () => randomBytes(4).toString('hex')).join('\n');
      const object = { metadata: { name: 's' }, data: { a: btoa(lines) } } as KubeObject;
      return () => createHistory(virtualTime().clock).learn(valuesOf(object));
    },
  ],
  [
    'the Secrets of a pod beside those of others, when it comes and goes',
    150,
    () => {
      const { clock } = virtualTime();
      const child = provided(objectMachine, { actors: { fetch: never }, actions: { reply: idle, follow: idle } }, () => ({
        ttlMs: 1,
      }));
      const given = {
        actors: { object: child, lookout: lookout(clock, () => false) },
        actions: { hold: idle, reply: idle, markPods: idle },
      };
      const actor = createActor(
        provided(objectsMachine, given, () => ({ pods: undefined })),
        { clock, input: { strategy: 'Get' } },
      ).start();
      const take = (pods: readonly Pod[], gone: readonly string[]) => actor.send({ type: 'pods.take', pods, gone });
      take(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(naming), []);
      return () => [take([naming('p')], []), take([], ['p'])];
    },
  ],
  [
    'a container of many variables, likewise',
    100,
    () => {
      const envs = Array.from({ length: 80_000 }, (_, i) => ({ key: `V${i}`, value: `value ${i}` }));
      const request = { config: { command: [], args: [], envs }, sandboxConfig: undefined } as never;
      return () => new SecretWords().note('CreateContainer', request);
    },
  ],
  [
    'the output of a hook that the runtime still takes',
    25,
    () => {
      const stdout = randomBytes(16 * 1024 * 1024);
      return () => judgeCommand({ exitCode: 1, stdout, stderr: new Uint8Array() });
    },
  ],
])('%s takes the thread for less than %d ms', (_, mostMs, make) => {
  expect(cheapestMs(make)).toBeLessThan(mostMs);
});
