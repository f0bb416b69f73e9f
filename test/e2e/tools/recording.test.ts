/** The real daemon records itself and is killed with kill -9: actorctl and the page in Chromium show its last moments. */
import { execFile, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { adminClient } from '@actorlet/admin/src/client.ts';
import { startNode, type TestNode } from '@actorlet/harness/src/index.ts';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ActorView } from '../../../src/machines/supervision/actorState.ts';
import { PageBrowser, picture } from '../lab/page/browser.ts';

const project = join(import.meta.dirname, '../../..');
const run = promisify(execFile);
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'];
const WAIT_MS = 60_000;

let node: TestNode;
let dir = '';
let file = '';
/** What the daemon itself said last. */
let lastTree: ActorView;

const pod = (name: string, script: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, annotations: { 'actorlet.dev/hollow': script } },
  spec: { containers: [{ name: 'app', image: 'example.test/app:1', env: [{ name: 'SECRET', value: 'hunter2-planted' }] }] },
});
async function ctl(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  try {
    const { stdout, stderr } = await run(join(project, 'bin/actorctl'), ['--recording', file, ...args], { maxBuffer: 64 * 1024 * 1024 });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}
async function soon(what: string, look: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`not within ${WAIT_MS} ms: ${what}`);
    await new Promise((r) => setTimeout(r, 50));
  }
}
function pathsOf(a: ActorView): string[] {
  return [a.path, ...a.children.flatMap(pathsOf)];
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-rec-'));
  file = join(dir, 'node.rec');
  node = await startNode({
    runtime: 'hollow',
    name: 'node-1',
    flags: [`--actorlet-record=${file}`],
    timeoutMs: 90_000,
    startTimeoutMs: 90_000,
  });
  const web = await node.apply(pod('web', 'run=forever'));
  await web.ready();
  // It is in the middle of its start when the daemon is killed.
  await node.apply(pod('slow', 'startDelay=10m,run=forever'));
  const admin = adminClient(node.adminSocket, AbortSignal.timeout(WAIT_MS));
  await soon('its start is recorded', async () => (await ctl('timeline', 'slow')).out.includes('StartContainer'));
  lastTree = (await admin.json('/statez')) as ActorView;
  await node.kill('SIGKILL');
});
afterAll(async () => {
  await node?.dispose();
  rmSync(dir, { recursive: true, force: true });
});

describe('the recording of a daemon that was killed', () => {
  it('is private to its user', () => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('shows the tree as it last was', async () => {
    const { code, out, err } = await ctl('tree', '-o', 'json');
    expect(code).toBe(0);
    expect(err).toContain('its daemon was killed');
    expect(pathsOf(JSON.parse(out) as ActorView).sort()).toEqual(pathsOf(lastTree).sort());
    const text = await ctl('tree', '--pod', 'web');
    expect(text.out).toContain('syncing.settled');
    expect(text.out).not.toContain('slow');
  });

  it('shows the call of the runtime that was in flight, and why the pod was not ready', async () => {
    const { out } = await ctl('timeline', 'slow');
    expect(out).toMatch(/…\s+StartContainer/);
    expect((await ctl('why', 'slow')).out).toContain('0 of 1 containers ready');
    expect((await ctl('pods')).out).toMatch(/web-node-1 +1\/1/);
    expect((await ctl('recorder', '--limit', '20')).out.trim().split('\n')).toHaveLength(20);
    expect((await ctl('chart', 'pods/podManager')).out).toMatch(/^stateDiagram-v2/);
    expect((await ctl('exec', 'web', '--', 'ls')).err).toContain('a recording is of the past');
    expect((await ctl('why', 'nobody')).code).toBe(1);
  });

  it('shows an earlier moment', async () => {
    // As the daemon itself said when it began.
    const early = await ctl('pods', '--at', '1h');
    expect(early.err).toMatch(/pods is not available: node\/pods\/podManager is (?:not started|stopped|starting)/);
    expect((await ctl('pods', '--at', 'soon')).code).toBe(2);
  });

  it('is opened by the page, whose slider leads through its time', async () => {
    const out = openSync(join(dir, 'ui.log'), 'w+');
    const ui = spawn(join(project, 'bin/actorctl'), ['--recording', file, 'ui'], { stdio: ['ignore', 'pipe', out] });
    closeSync(out);
    const url = await new Promise<string>((resolve, reject) => {
      ui.stdout?.once('data', (data: Buffer) => resolve(String(data).trim()));
      ui.once('exit', (code) => reject(new Error(`actorctl ui ended with ${code}`)));
    });
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(WAIT_MS);
      const problems: string[] = [];
      page.on('pageerror', (e) => problems.push(e.message));
      page.on('console', (m) => void (m.type() === 'error' && problems.push(m.text())));
      await page.goto(`${url}#/pods`);
      await page.getByRole('link', { name: 'web-node-1' }).waitFor();
      const slider = page.getByRole('slider', { name: 'Moment' });
      await slider.focus();
      await page.keyboard.press('Home');
      await soon('no pod at the beginning', async () => (await page.getByRole('link', { name: 'web-node-1' }).count()) === 0);
      await page.keyboard.press('End');
      await page.getByRole('link', { name: 'slow-node-1' }).click();
      await page.getByRole('heading', { name: 'Timeline' }).waitFor();
      await soon('the call in flight', async () => (await page.locator('.lanes').innerText()).includes('StartContainer'));
      expect(await page.content()).not.toContain('hunter2');
      expect(problems).toEqual([]);
      const shots = process.env.ACTORLET_SCREENSHOTS ?? '';
      if (shots !== '') await page.screenshot({ path: join(shots, 'recording.png') });
    } finally {
      await browser.close();
      ui.kill('SIGINT');
      await new Promise((resolve) => (ui.exitCode === null && ui.signalCode === null ? ui.once('exit', resolve) : resolve(null)));
    }
    expect(ui.exitCode).toBe(0);
  });

  it('is one file that a browser opens without a server, with its slider', async () => {
    const { code, out, err } = await ctl('html');
    expect([code, err]).toEqual([0, expect.stringContaining('its daemon was killed')]);
    expect(out).not.toContain('hunter2');
    const incident = join(dir, 'incident.html');
    writeFileSync(incident, out);
    await using browser = await PageBrowser.launch();
    await using o = await browser.open(`file://${incident}`, { hash: '#/pods' });
    const { page } = o;
    await page.getByRole('link', { name: 'slow-node-1' }).click();
    await soon('the call in flight', async () => (await page.locator('.lanes').innerText()).includes('StartContainer'));
    await page.locator('.state.leaf.active').waitFor();
    await picture(page, 'incident');
    await page.getByRole('slider', { name: 'Moment' }).focus();
    await page.keyboard.press('Home');
    await page.goto(`file://${incident}#/pods`);
    await soon('no pod at the beginning', async () => (await page.getByText('No pods on this node').count()) === 1);
    await page.getByRole('button', { name: 'To the end' }).click();
    await page.getByRole('link', { name: 'web-node-1' }).waitFor();
    expect(browser.problems).toEqual([]);
  });

  it('is read as far as it is whole when its end was torn off', async () => {
    truncateSync(file, statSync(file).size - 7);
    const { code, err } = await ctl('pods');
    expect(code).toBe(0);
    expect(err).toContain('belong to no whole frame');
  });
});
