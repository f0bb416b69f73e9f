/**
 * The inspection page in Chromium, of a node with 100 hollow pods: how long after opening it the tree is drawn, and how long
 * after an actor started its line is in the page. Needs the page built (npm run build) and /usr/bin/chromium.
 * Options: --pods=100 --opens=10 --updates=40 --out=FILE
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveInspector } from '@actorlet/inspect/src/boot/server.ts';
import { chromium, type Page } from 'playwright-core';
import { putPods, startHollowNode } from './lib/hollowNode.ts';
import { numberOption, report, say, sleep, summary, until } from './lib/report.ts';

const PODS = numberOption('pods', 100);
const OPENS = numberOption('opens', 10);
const UPDATES = numberOption('updates', 40);
const BARS_MS = { firstPicture: 1_000, update: 150 } as const;
const CHROMIUM = '/usr/bin/chromium';
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync', '--no-first-run'];
const TIMEOUT_MS = 120_000;
const SETTLE_MS = 10_000;
const WORKERS = 'node/pods/workers/';
/** A line of the tree. */
const LINE = '[role=treeitem]';

/** From the navigation on, by the browser's own clock: every pod has a line, and the browser has painted it. */
const PAINTED = `new Promise((done) => {
  const look = () => document.querySelectorAll('${LINE}').length > ${PODS}
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
    : requestAnimationFrame(look);
  look();
})`;
/** Wall time at which the page has a line of that name. */
const lineOf = (name: string) => `new Promise((done) => {
  const there = () => [...document.querySelectorAll('${LINE}')].some((l) => l.textContent.includes('${name}-'));
  const watch = new MutationObserver(() => {
    if (!there()) return;
    watch.disconnect();
    done(Date.now());
  });
  watch.observe(document.body, { childList: true, subtree: true, characterData: true });
})`;

const dir = mkdtempSync(join(tmpdir(), 'actorlet-bench-page-'));
putPods(
  dir,
  Array.from({ length: PODS }, (_, i) => `web-${i}`),
);
const flags = { inspect: '127.0.0.1:0' };
const { node, runtime } = await startHollowNode({ dir, name: 'bench', maxPods: PODS + UPDATES + 10, flags, watch: true });
const { inspected } = node;
if (inspected === null) throw new Error('the node cannot be inspected');
const running = () => runtime.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING').length;
await until('all pods running', async () => (running() === PODS ? true : undefined), { timeoutMs: TIMEOUT_MS, everyMs: 200 });
await sleep(SETTLE_MS);
let url = '';
const server = await serveInspector(inspected, { at: '127.0.0.1:0' }, (page) => {
  url = page.url;
});
const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });

async function opened(): Promise<{ page: Page; firstMs: number }> {
  // A context of its own: nothing is in a cache.
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 860 } })).newPage();
  await page.goto(url, { waitUntil: 'commit' });
  return { page, firstMs: await page.evaluate<number>(PAINTED) };
}
const firstMs: number[] = [];
for (let i = 0; i < OPENS; i++) {
  const o = await opened();
  firstMs.push(o.firstMs);
  await o.page.context().close();
}
say(`first picture: ${JSON.stringify(summary(firstMs))}`);

const { page } = await opened();
const updateMs: number[] = [];
for (let i = 0; i < UPDATES; i++) {
  const begun = new Promise<number>((done) => {
    const tap = inspected.tree.observe((e) => {
      if (e.kind !== 'child.started' || !e.path.startsWith(WORKERS)) return;
      tap[Symbol.dispose]();
      done(e.atMs);
    });
  });
  const seen = page.evaluate<number>(lineOf(`new-${i}`));
  putPods(dir, [`new-${i}`]);
  updateMs.push((await seen) - (await begun));
  // Not in step with the page's own turns.
  await sleep(300 + 37 * i);
}
await browser.close();
server[Symbol.dispose]();
await node.stop();
runtime.close();
rmSync(dir, { recursive: true, force: true });
await report('page', { pods: PODS, barsMs: BARS_MS, firstPictureMs: summary(firstMs), updateMs: summary(updateMs) });
