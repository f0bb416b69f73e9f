/**
 * The inputs of a real daemon with a crash loop, replayed in the page in Chromium: any moment, with the actors in full.
 * ACTORLET_SCREENSHOTS=DIR keeps pictures; those of docs/replay.md were taken so.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNode } from '@actorlet/harness/src/index.ts';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PageBrowser, picture, soon } from '../lab/page/browser.ts';
import { pod } from '../lab/page/nodes.ts';

const ACTORCTL = join(import.meta.dirname, '../../../bin/actorctl');
/** Of a whole node on a machine that runs other tests. */
const TIMEOUT_MS = 90_000;
let dir: string;
let file: string;
let ui: ChildProcess | null = null;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-replay-'));
  const node = await startNode({
    runtime: 'hollow',
    name: 'node-1',
    flags: [`--actorlet-record-inputs=${dir}`],
    timeoutMs: TIMEOUT_MS,
    startTimeoutMs: TIMEOUT_MS,
  });
  try {
    await (await node.apply(pod('web', 'run=forever'))).ready();
    const flaky = await node.apply(pod('flaky', 'run=500ms,exit=3'));
    await flaky.restarts(1);
  } finally {
    await node.dispose();
  }
  file = join(dir, readdirSync(dir).find((name) => name.endsWith('.inputs.zst')) ?? '');
}, 2 * TIMEOUT_MS);
afterAll(async () => {
  if (ui !== null && ui.exitCode === null) {
    const ended = once(ui, 'exit');
    ui.kill('SIGINT');
    await ended;
  }
  rmSync(dir, { recursive: true, force: true });
});

async function served(...args: string[]): Promise<string> {
  ui = spawn(ACTORCTL, ['replay', file, '--ui', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(ui, 'exit').then(() => {
    throw new Error('it ended before it served the page');
  });
  const [line] = (await Promise.race([once(ui.stdout ?? ui, 'data'), ended])) as [Buffer];
  return String(line).trim();
}

const slider = (page: Page) => page.getByRole('slider', { name: 'Moment' });
const shown = async (page: Page): Promise<string> => (await slider(page).getAttribute('aria-valuetext')) ?? '';
const litOf = (page: Page): Promise<string> => page.locator('.state.leaf.active').first().innerText();

it(
  'begins at a state, steps from one step of an actor to the next and back, with contexts in full',
  async () => {
    const url = await served('--until', 'pods/workers/flaky-node-1 state=syncing.settled');
    await using browser = await PageBrowser.launch();
    await using o = await browser.open(url, { hash: '#/actors' });
    const { page } = o;
    const row = page.getByRole('treeitem').filter({ hasText: 'flaky-node-1' });
    await row.click();
    await page.getByRole('heading', { name: 'Context' }).waitFor();
    await soon('it stands at the state', async () => (await litOf(page)) === 'settled');
    const first = await shown(page);
    await picture(page, 'replay-actor');

    await page.getByRole('button', { name: 'Step back' }).click();
    await soon('it stepped back', async () => (await shown(page)) < first);
    await soon('the actor was in another state', async () => (await litOf(page)) !== 'settled');
    await page.getByRole('button', { name: 'Step on' }).click();
    await soon('it stepped on', async () => (await shown(page)) === first && (await litOf(page)) === 'settled');

    // What a recording of pictures leaves out.
    await page.goto(`${url}#/actors/node/pods/podManager`);
    await soon('its context', async () => (await page.content()).includes('flaky-node-1'));
    expect(await page.content()).not.toContain('hunter2');

    await page.goto(`${url}#/pods`);
    await page.getByRole('link', { name: 'flaky-node-1' }).click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    await picture(page, 'replay-pod');

    await slider(page).focus();
    await page.keyboard.press('Home');
    await page.goto(`${url}#/pods`);
    await soon('no pod at the beginning', async () => (await page.getByRole('link', { name: 'flaky-node-1' }).count()) === 0);
    await page.getByRole('button', { name: 'To the end' }).click();
    await page.getByRole('link', { name: 'flaky-node-1' }).waitFor();
    expect(browser.problems).toEqual([]);
  },
  2 * TIMEOUT_MS,
);
