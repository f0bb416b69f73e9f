/** A ConfigMap of very many keys that very many pods mount: what they hold is built and written for one pod at a time. */
import { expect, it } from 'vitest';
import { cluster, configMap, create, isReady } from '../integration/cluster/clusterPods.ts';

const KEYS = 1_001;
const PODS = ['a', 'b', 'c'];

it('writes the files of one volume before those of the next', async () => {
  await using h = await cluster();
  configMap(h, 'bomb', Object.fromEntries(Array.from({ length: KEYS }, (_, i) => [`k${i}`, ''])));
  const writers: string[] = [];
  h.fs.failing = (op, path) => {
    const uid = /\/pods\/([^/]+)\/volumes\/kubernetes\.io~configmap\/v\/\.\./.exec(path)?.[1];
    if (op === 'writeFile' && uid !== undefined && writers.at(-1) !== uid) writers.push(uid);
    return undefined;
  };
  const volumes = [{ name: 'v', configMap: { name: 'bomb' } }];
  for (const name of PODS) create(h, name, { container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] }, spec: { volumes } });
  await h.until('all are ready', () => PODS.every((name) => isReady(h, name)), 120_000);
  expect(writers).toHaveLength(PODS.length);
});
