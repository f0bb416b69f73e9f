/**
 * A node that goes from one state of this agent to another, as root: this checkout's takes over from each PROGRAM, and PROGRAM from it.
 * Pods come and go after each turn. Those that stay must keep their containers, their restart counts, and since when they are Ready.
 *   scripts/node bench/upgrades.ts PROGRAM...     (`bin/actorlet` of earlier states, built)
 */
import { NODE_NAME } from '../test/e2e/daemon.ts';
import { comes, goes, makeSteady, start, steadyLives } from './soak/churn.ts';
import { soakNode } from './soak/node.ts';
import { left } from './soak/things.ts';

const PODS = '/api/v1/namespaces/default/pods';
/** A CPU of its own, and so a record of it. */
const EXCLUSIVE = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'steady-exclusive', labels: { kind: 'plain' } } },
  spec: {
    ...{ nodeName: NODE_NAME, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false },
    containers: [
      {
        ...{ name: 'main', image: 'actorlet.test/busybox:1', command: ['sleep', '1000000'] },
        resources: { limits: { cpu: '1', memory: '64Mi' } },
      },
    ],
  },
};
const SAID = /set aside|cannot be read|could not restore|checkpoint|drain this node/;

const programs = process.argv.slice(2);
const config = { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' };
const { soaked, group, cleanUp } = await soakNode({ seed: 1, program: programs[0], config });
const { api, lab, daemon } = soaked;

let failed = false;
try {
  await start(soaked);
  await makeSteady(soaked);
  await api.ask('POST', PODS, { body: EXCLUSIVE });
  await daemon.wait('its CPU', async () => (await steadyLives(soaked)).every((line) => line.includes(' True since ')));
  const lives = await steadyLives(soaked);
  const first = left({ lab, daemon, group });
  // The first has begun: this one follows each, and each that one.
  const turns = programs.flatMap((program, i) => (i === 0 ? [undefined, program, undefined] : [program, undefined]));
  for (const [i, program] of turns.entries()) {
    const before = daemon.log().length;
    soaked.program = program;
    await daemon.end(i % 3 === 2 ? 'SIGKILL' : 'SIGTERM');
    await start(soaked);
    await comes(soaked, `turn-${i}`, async () => {});
    await goes(soaked, `turn-${i}`);
    const now = await steadyLives(soaked);
    const kept = JSON.stringify(now) === JSON.stringify(lives);
    const more = () => Object.entries(left({ lab, daemon, group })).filter(([name, count]) => count > (first[name] ?? 0));
    await daemon.wait('nothing to be left', () => more().length === 0, { everyMs: 1_000 }).catch(() => {});
    const stayed = more();
    console.log(`${program ?? 'this one'}: ${kept ? 'as before' : `\n  ${now.join('\n  ')}\n and were\n  ${lives.join('\n  ')}`}`);
    for (const [name, count] of stayed) console.log(`  ${count} ${name}, ${first[name]} at first`);
    for (const line of daemon.log().slice(before).split('\n')) if (SAID.test(line)) console.log(`  ${line.slice(0, 300)}`);
    failed ||= !kept || stayed.length > 0;
  }
} catch (error) {
  failed = true;
  console.log(error instanceof Error ? error.message : String(error));
} finally {
  const stays = await cleanUp();
  process.exitCode = failed || stays.length > 0 ? 1 : 0;
}
