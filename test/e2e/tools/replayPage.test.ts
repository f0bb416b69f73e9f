/** The inputs of a real daemon with a crash loop, replayed in the page in Chromium: any moment, with the actors in full. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startNode } from '../../../src/harness/index.ts';
import { PageBrowser, picture, soon } from '../lab/page/browser.ts';
import { pod } from '../lab/page/nodes.ts';

const ACTORCTL = join(import.meta.dirname, '../../../bin/actorctl');
let dir: string;
let file: string;
let ui: ChildProcess | null = null;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-replay-'));
  const node = await startNode({
    runtime: 'hollow',
    name: 'node-1',
    flags: [`--actorlet-record-inputs=${dir}`],
    timeoutMs: 90_000,
    startTimeoutMs: 90_000,
  });
  try {
    await (await node.apply(pod('web', 'run=forever'))).ready();
    const flaky = await node.apply(pod('flaky', 'run=500ms,exit=3'));
    await flaky.restarts(1);
  } finally {
    await node.dispose();
  }
  file = join(dir, readdirSync(dir).find((name) => name.endsWith('.inputs.zst')) ?? '');
}, 180_000);
afterAll(async () => {
  if (ui !== null && ui.exitCode === null) {
    ui.kill('SIGINT');
    await once(ui, 'exit');
  }
  rmSync(dir, { recursive: true, force: true });
});

async function served(...args: string[]): Promise<string> {
  ui = spawn(ACTORCTL, ['replay', file, '--ui', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(ui.stdout ?? ui, 'data')) as [Buffer];
  return String(line).trim();
}

it('begins where it is told, shows contexts in full, and goes back and on', async () => {
  const url = await served('--until', 'pods/workers/flaky-node-1 state=syncing.settled');
  await using browser = await PageBrowser.launch();
  await using o = await browser.open(url, { hash: '#/pods' });
  const { page } = o;
  await page.getByRole('link', { name: 'flaky-node-1' }).waitFor();
  const moment = page.getByRole('slider', { name: 'Moment' });
  const shown = () => moment.getAttribute('aria-valuetext');
  const first = await shown();
  await page.getByRole('button', { name: 'Step on' }).click();
  await soon('it stepped on', async () => ((await shown()) ?? '') > (first ?? ''));
  await page.getByRole('button', { name: 'Step back' }).click();
  await soon('it stepped back', async () => (await shown()) === first);
  await page.goto(`${url}#/actors/node/pods/podManager`);
  await soon('its context', async () => (await page.content()).includes('flaky-node-1'));
  await picture(page, 'replay');
  await moment.focus();
  await page.keyboard.press('Home');
  await page.goto(`${url}#/pods`);
  await soon('no pod at the beginning', async () => (await page.getByRole('link', { name: 'flaky-node-1' }).count()) === 0);
  expect(browser.problems).toEqual([]);
});
