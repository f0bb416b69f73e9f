/** `actorctl ui` and `actorctl chart`: the inspection page's address, and a machine's chart for other tools. */

import { CtlError, EXIT, refusal } from '@actorlet/admin/src/client.ts';
import type { Chart } from '@actorlet/kubelet/machines/chart/definition.ts';
import { configOf, mermaidOf } from '@actorlet/kubelet/machines/chart/export.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { actorNamed } from '../actorNamed.ts';
import { type Asked, printData, wantsData } from '../asked.ts';
import type { CtlIo } from '../io.ts';
import type { ChartFormat } from './show/chartFormats.ts';

interface ChartAnswer {
  chart: Chart;
  active: readonly string[];
  state: string;
}

/** Prints the page's address with the right to act on it; `open` hands it to the desktop's browser. */
export async function runUi(asked: Asked, o: { open: boolean }): Promise<number> {
  const { io, client } = asked;
  const answer = await client.get('/page');
  if (answer.status === 404) {
    throw new CtlError(
      EXIT.no,
      'the inspection page is off: start the daemon with --actorlet-inspect (npm start does). A fleet has its own: --page PORT.',
    );
  }
  if (answer.status !== 200) throw refusal(answer);
  const page = JSON.parse(answer.body) as { url: string; token: string };
  const url = `${page.url}#token=${page.token}`;
  if (wantsData(asked.format)) printData(asked, page);
  else io.out(`${url}\n`);
  return !o.open || (await openBrowser(io, url)) ? EXIT.ok : EXIT.no;
}

/** A program that hands an address to a browser is done sooner. */
const OPENED_WITHIN_MS = 3_000;

/** Whether a browser of this desktop has taken it; if not, it is said why. */
export async function openBrowser(io: Pick<CtlIo, 'err' | 'env'>, url: string): Promise<boolean> {
  const mac = process.platform === 'darwin';
  if (!mac && !io.env.DISPLAY && !io.env.WAYLAND_DISPLAY) {
    io.err('Nothing was opened: there is no desktop here (neither DISPLAY nor WAYLAND_DISPLAY is set). Copy the address into a browser.\n');
    return false;
  }
  const program = mac ? 'open' : 'xdg-open';
  const failed = await new Promise<string | null>((resolve) => {
    try {
      const child = startProcess(program, [url], { detached: true, stdio: 'ignore' });
      const late = setTimeout(() => resolve(null), OPENED_WITHIN_MS);
      child.on('error', (error) => resolve(messageOf(error)));
      child.on('exit', (code) => resolve(code === 0 ? null : `it ended with ${code}`));
      child.on('close', () => clearTimeout(late));
      child.unref();
    } catch (error) {
      resolve(messageOf(error));
    }
  });
  if (failed !== null) io.err(`Nothing was opened: ${program}: ${failed}. Copy the address into a browser.\n`);
  return failed === null;
}

/** Prints the chart of one actor's machine. */
export async function runChart({ io, client }: Asked, o: { actor: string; format: ChartFormat }): Promise<number> {
  const state = (await client.json('/statez')) as ActorView;
  const path = await actorNamed(client, state, o.actor);
  const answer = await client.get('/chart', { actor: path });
  if (answer.status === 404) throw new CtlError(EXIT.no, `${path} has no state machine just now.`);
  if (answer.status !== 200) throw refusal(answer);
  const told = JSON.parse(answer.body) as ChartAnswer;
  io.out(`${textOf(told, o.format)}\n`);
  return EXIT.ok;
}

function textOf({ chart, active }: ChartAnswer, format: ChartFormat): string {
  switch (format) {
    case 'mermaid':
      return mermaidOf(chart).join('\n');
    case 'stately':
      return `import { createMachine } from 'xstate';\n\nexport const machine = createMachine(${JSON.stringify(configOf(chart, 'v5'), null, 2)});`;
    case 'json':
      return JSON.stringify({ chart, active }, null, 2);
  }
}
