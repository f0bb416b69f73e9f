/** What each page of the kubelet's API makes of each method (boot-and-node 8.2), with all its groups on and with each of them off. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { podsView } from '../../../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../../../src/machines/pods/status/messages.ts';
import { clientCa, type Lab, startLab } from '../../../edge/https/lab.ts';
import { pod, record, running, statusView, viewOfPods } from '../../../edge/metrics/samples.ts';
import { goldenTable } from '../table.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
const ann = clientCa.leaf({ commonName: 'ann', organizations: ['dev'] });

const PATHS = [
  ...['/healthz', '/healthz/ping', '/healthz/log', '/healthz/syncloop', '/healthz/none'],
  ...['/pods', '/pods/', '/pods/x', '/runningpods/', '/configz', '/configz/x'],
  ...['/stats', '/stats/summary', '/stats/container', '/stats/web/main', '/stats/default/web/uid-web/main', '/spec/'],
  ...['/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes', '/metrics/slis', '/metrics/none'],
  ...['/containerLogs/default/web/main', '/containerLogs/default/gone/main', '/containerLogs/default/web'],
  ...['/exec/default/web/main', '/exec/default/web/uid-web/main', '/exec/default/gone/main', '/exec'],
  ...['/attach/default/web/main', '/attach/default/web/uid-web/main', '/attach/default/gone/main'],
  ...['/portForward/default/web', '/portForward/default/web/uid-web', '/portForward/default/gone'],
  ...['/run/default/web/main', '/run/default/web/uid-web/main', '/run/default/gone/main', '/run/default'],
  ...['/logs', '/logs/', '/logs/app.log', '/logs/gone.log', '/logs/folder/'],
  ...['/debug/pprof/', '/debug/pprof/none', '/debug/flags/v', '/debug/none'],
  ...['/checkpoint/default/web/main', '/checkpoint/default/gone/main', '/checkpoint/default/web/gone'],
  ...['/statusz', '/flagz', '/statez', '/recorder', '/events', '/why', '/cri/exec/token', '/podsx', '/'],
];
const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];
/** Those that a page may have an answer to: what a node without it says to others is no other question. */
const SERVED = ['GET', 'POST'];
const USUAL = 'with everything';
type Options = NonNullable<Parameters<typeof startLab>[0]>;
const NODES: Readonly<Record<string, Options>> = {
  [USUAL]: {},
  'enableDebuggingHandlers false': { debugging: false },
  'enableSystemLogHandler false': { systemLogs: false },
  'enableProfilingHandler and enableDebugFlagsHandler false': { profiling: false, debugFlags: false },
  'gates ContainerCheckpoint, ComponentStatusz and ComponentFlagz off': { checkpoints: false, statusz: false, flagz: false },
};

const OTHERS = Object.keys(NODES).filter((name) => name !== USUAL);

const labs = new Map<string, Lab>();
beforeAll(async () => {
  for (const [name, o] of Object.entries(NODES)) {
    const lab = await startLab(o);
    labs.set(name, lab);
    const web = pod('web', { containers: ['main'] });
    lab.registry.set(podsView, viewOfPods([record(web)]));
    lab.registry.set(statusesView, statusView({ [web.metadata.uid]: running }));
    writeFileSync(join(lab.dir, 'log/app.log'), 'a line\n');
    mkdirSync(join(lab.dir, 'log/folder'));
  }
});
afterAll(async () => {
  for (const lab of labs.values()) await lab.stop();
});

/** Status, kind, and of what is no success its first line. */
async function answered(node: string, method: string, path: string): Promise<string> {
  const lab = labs.get(node);
  if (lab === undefined) throw new Error(`there is no node ${node}`);
  const answer = await lab.ask(path, { method, client: ann });
  const kind = (answer.headers['content-type'] ?? '').split(';')[0] ?? '';
  const words = answer.status < 400 ? '' : `: ${answer.body.split('\n')[0] ?? ''}`;
  return `${answer.status}${kind === '' ? '' : ` ${kind}`}${words}`.replaceAll(lab.dir, 'ROOT');
}

/** Only what a switch changes has a row for the node that has it off. */
const rows = new Map<string, () => unknown>();
for (const path of PATHS) {
  rows.set(path, async () => {
    const all: Record<string, Record<string, string>> = {};
    for (const method of METHODS) {
      const usual = await answered(USUAL, method, path);
      all[method] = { [USUAL]: usual };
      for (const node of SERVED.includes(method) ? OTHERS : []) {
        const here = await answered(node, method, path);
        if (here !== usual) all[method] = { ...all[method], [node]: here };
      }
    }
    return all;
  });
}

goldenTable('what each page answers is as recorded', 'manager/endpoints', Object.fromEntries(rows));
