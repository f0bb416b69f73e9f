/**
 * The node under everything at once, on real containerd (root, after `npm run e2e:setup`): hostile manifests and pods of
 * the API, silent connections, guessed tokens; beside them good pods and callers with valid tokens. Measured: /healthz,
 * resident memory, who was locked out, whether good pods noticed, and the start with all of that in place.
 * Options: --manifests=5000 --api-pods=5000 --silent=5000 --guessers=100 --bearers=25 --pods=20 --seconds=120 --runtime=embedded://hollow
 * --out=FILE
 */
import { startContainerd } from '../test/e2e/lab/containerd.ts';
import { flood } from '../test/e2e/lab/flood/flood.ts';
import { numberOption, option, report, say } from './lib/report.ts';

const options = {
  manifests: numberOption('manifests', 5_000),
  apiPods: numberOption('api-pods', 5_000),
  silent: numberOption('silent', 5_000),
  guessers: numberOption('guessers', 100),
  bearers: numberOption('bearers', 25),
  goodPods: numberOption('pods', 20),
  seconds: numberOption('seconds', 120),
};
const runtime = option('runtime') ?? 'containerd';
const lab = runtime === 'containerd' ? await startContainerd() : null;
try {
  const result = await flood(lab ?? { endpoint: runtime }, { ...options, say });
  await report('flood', { runtime, options, ...result });
} finally {
  const left = (await lab?.stop()) ?? [];
  if (left.length > 0) say(`left behind: ${left.join(', ')}`);
}
