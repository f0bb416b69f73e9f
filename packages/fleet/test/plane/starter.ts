/** A process that has a control plane, for a test that kills it: `starter.ts ASSETS DATA`. Says each folder and each process in a line of JSON. */
import { setTimeout as wait } from 'node:timers/promises';
import { startLocalPlane } from '../../src/boot/plane/local.ts';
import { PROGRAMS } from '../../src/plane/messages.ts';

const [assets = '', data = ''] = process.argv.slice(2);
const plane = await startLocalPlane({
  ...{ data, port: 0, say: () => {}, signal: new AbortController().signal },
  on: { env: { KUBEBUILDER_ASSETS: assets }, platform: process.platform, arch: process.arch, folders: [] },
});
const pidsOf = () => ['warden', ...PROGRAMS].map((name) => plane.programs.program(name).pid);
while (pidsOf().includes(undefined)) await wait(20);
const pids = pidsOf();
process.stdout.write(`${JSON.stringify({ dir: plane.dir, pids })}\n`);
setInterval(() => {}, 1_000);
