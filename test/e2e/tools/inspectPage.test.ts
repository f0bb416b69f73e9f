/**
 * The inspection page in Debian's Chromium, against a real daemon whose 110 pods start, crash and go while it is open.
 * ACTORLET_SCREENSHOTS=DIR keeps pictures; those of docs/images were taken so.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startNode, type TestNode } from '@actorlet/harness/src/index.ts';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inTurn, rotating } from '../../rotation.ts';
import { CHROMIUM, overflowOf, PageBrowser, pageOf, picture, soon } from '../lab/page/browser.ts';
import { clusterNode, pod } from '../lab/page/nodes.ts';

/** Each commit shows one part in so many: a browser takes a second of processor time for each page. */
const shows = inTurn('the inspection page', 3);
const PODS = 108;
const FIRST_PICTURE_MS = 700;
/** Somebody who opens the page finds what is wrong within this. */
const TEN_SECONDS_MS = 10_000;
/** The machine of the tests is busy with other tests. */
const BUSY_FACTOR = 8;

let node: TestNode;
let browser: PageBrowser;
let url = '';
let token = '';

beforeAll(async () => {
  node = await startNode({
    runtime: 'hollow',
    name: 'node-1',
    flags: ['--actorlet-inspect=127.0.0.1:0', '--actorlet-inspect-actions'],
    timeoutMs: 90_000,
    startTimeoutMs: 90_000,
  });
  for (let i = 0; i < PODS; i++) await node.apply(pod(`web-${String(i).padStart(3, '0')}`, 'run=forever'));
  await node.apply(pod('flaky', 'run=900ms,exit=3'));
  await node.apply(pod('shop', 'startDelay=300ms,run=forever'));
  ({ url, token } = await pageOf(node));
  browser = await PageBrowser.launch();
});
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await node?.dispose();
});

const open = ({ of, ...o }: Parameters<PageBrowser['open']>[1] & { of?: string } = {}) => browser.open(of ?? url, o);

const lines = (page: Page) => page.getByRole('treeitem');

describe('the inspection page', () => {
  shows('draws the tree of a node with 110 pods at once, pods by their names', async () => {
    await using o = await open();
    const { page } = o;
    const began = performance.now();
    await page.reload();
    await lines(page).first().waitFor();
    const firstMs = performance.now() - began;
    expect(firstMs).toBeLessThan(FIRST_PICTURE_MS * BUSY_FACTOR);
    await soon(
      'every pod is there',
      async () =>
        (await lines(page)
          .filter({ hasText: /^web-\d{3}/ })
          .count()) === PODS,
    );
    await picture(page, 'tree');
  });

  shows('tells restarts of containers from those of actors, on the overview and on the worker of a pod that crashes', async () => {
    await using o = await open();
    const { page } = o;
    const facts = () => page.locator('.facts').first().innerText();
    await soon('containers that were restarted', async () => /Container restarts\s+[1-9]/.test(await facts()));
    expect(await facts()).toMatch(/Actor restarts\s+\d/);
    await page.getByLabel('Find an actor').fill('flaky');
    await lines(page).filter({ hasText: 'flaky-node-1' }).click();
    await soon('its worker', async () => /Actor restarts\s+0/.test(await facts()));
    // Nothing is called restarts alone above a pod that has some.
    expect(await facts()).not.toMatch(/^Restarts/m);
  });

  shows('shows an actor: its chart with the present state lit, what it takes next, its context without secrets', async () => {
    await using o = await open();
    const { page } = o;
    await page.getByLabel('Find an actor').fill('shop');
    await lines(page).filter({ hasText: 'shop-node-1' }).click();
    const state = page.locator('.state.leaf.active');
    await state.waitFor();
    await soon('the pod is at rest', async () => (await state.innerText()) === 'settled');
    await page.getByRole('heading', { name: 'Takes next' }).waitFor();
    expect(await page.locator('.transitions').first().innerText()).toContain('pod.kill');
    await page.getByRole('heading', { name: 'Context' }).waitFor();
    expect(await page.content()).not.toContain('hunter2');
    await picture(page, 'actor');
    // The state changes under the eyes of whoever looks.
    const before = await page.locator('.steps li').count();
    await node.remove('shop');
    const isGone = async () => (await lines(page).filter({ hasText: 'shop-node-1' }).count()) === 0;
    // On a busy machine it has ended before the page is read again.
    await soon('it steps on', async () => (await page.locator('.steps li').count()) > before || (await isGone()));
    await soon('it is gone from the tree', isGone);
    await node.apply(pod('shop', 'startDelay=300ms,run=forever'));
    await soon('it is back', async () => (await lines(page).filter({ hasText: 'shop-node-1' }).count()) === 1);
  });

  shows('shows a pod: a timeline with each call of the runtime, its containers, its messages', async () => {
    await using o = await open({ hash: '#/pods' });
    const { page } = o;
    await page.getByLabel('Find a pod').fill('flaky');
    await page.getByRole('link', { name: 'flaky-node-1' }).click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await soon('the calls', async () => {
      const text = await page.locator('.lanes').innerText();
      return ['RunPodSandbox', 'CreateContainer', 'StartContainer'].every((m) => text.includes(m));
    });
    await soon('its life', async () => (await page.locator('.state.leaf.active').innerText()) === 'running');
    expect(await page.locator('.way').innerText()).toMatch(/running\s+a source names it/);
    await page.getByRole('button', { name: 'Everything' }).click();
    expect(await page.locator('.totals').innerText()).toContain('settled');
    await soon('a lane for its container, with its back-off', async () => {
      const lane = await page.locator('.lane', { has: page.locator('.lane-name', { hasText: /^app/ }) }).innerText();
      return lane.includes('CrashLoopBackOff');
    });
    await soon('the container', async () => /CrashLoopBackOff|running|exited/.test(await page.locator('.cards').innerText()));
    await soon('messages', async () => (await page.locator('.sequence .message').count()) > 3);
    await page.getByRole('button', { name: 'Start' }).click();
    await picture(page, 'pod', 1_320);
    await page.locator('.sequence').scrollIntoViewIfNeeded();
    await picture(page, 'sequence');
  });

  shows('sorts and filters pods, those in trouble first', async () => {
    await using o = await open({ hash: '#/pods' });
    const { page } = o;
    const names = () => page.locator('tbody a').allInnerTexts();
    await soon('the crashing pod comes first', async () => (await names())[0] === 'flaky-node-1');
    await page.getByRole('button', { name: 'Pod', exact: true }).click();
    await page.getByRole('button', { name: 'Pod', exact: true }).click();
    expect((await names())[0]).toBe('web-107-node-1');
    await page.getByRole('button', { name: 'Restarts' }).click();
    await page.getByRole('button', { name: 'Restarted' }).click();
    await soon('only what was restarted', async () => {
      const [first, ...others] = await names();
      return first === 'flaky-node-1' && others.every((name) => !name.startsWith('web'));
    });
    await picture(page, 'pods');
  });

  shows('lists Kubernetes’ events apart from the trace', async () => {
    await using o = await open({ hash: '#/events' });
    const { page } = o;
    await page.locator('.kube-events li', { hasText: 'BackOff' }).first().waitFor();
    await page.getByRole('button', { name: 'Warnings' }).click();
    expect(await page.locator('.kube-events li', { hasText: 'Pulled' }).count()).toBe(0);
    await picture(page, 'events');
  });

  shows('shows the worker of a pod readable at once, folds and opens its states, finds one, and fills the screen', async () => {
    await using o = await open();
    const { page } = o;
    await page.getByLabel('Find an actor').fill('shop');
    await lines(page).filter({ hasText: 'shop-node-1' }).click();
    const chart = page.getByRole('figure');
    await chart.locator('.state.leaf.active').waitFor();
    const zoom = () =>
      page.evaluate<number>(`new DOMMatrix(getComputedStyle(document.querySelector('.react-flow__viewport')).transform).a`);
    await soon('it can be read', async () => (await zoom()) >= 0.62);
    // Nothing of it is cropped.
    const inside = async () => {
      const [box, all] = await Promise.all([
        chart.boundingBox(),
        Promise.all((await chart.locator('.state').all()).map((s) => s.boundingBox())),
      ]);
      return all.every(
        (s) => s !== null && box !== null && s.x >= box.x && s.x + s.width <= box.x + box.width && s.y + s.height <= box.y + box.height,
      );
    };
    await soon('all of it is seen', inside);
    await picture(page, 'worker');
    await page.getByRole('button', { name: 'Open terminating' }).click();
    await page.getByRole('button', { name: 'Close terminating' }).click();
    await page.getByRole('button', { name: 'Open terminating' }).waitFor();
    await chart.getByLabel('Find a state').fill('verif');
    await soon('it is found where it was folded', async () => (await chart.locator('.state.found').count()) === 2);
    await chart.getByRole('button', { name: 'Full screen' }).click();
    await soon('it fills the window', async () => (await chart.boundingBox())?.height === page.viewportSize()?.height);
    await page.keyboard.press('Escape');
    await soon('it is as before', async () => ((await chart.boundingBox())?.width ?? 0) < 1_000);
    expect(page.url()).toContain('#/actors/');
    await page.goto(`${url}#/actors/node/runtime/imagePuller`);
    await chart.locator('.state.any').waitFor();
    await soon('its transitions are drawn', async () => (await chart.locator('.tip').count()) >= 2);
  });

  shows('streams the trace of the actors, filters and searches it, and holds still when asked', async () => {
    await using o = await open({ hash: '#/trace' });
    const { page } = o;
    const entries = page.locator('.stream .entry');
    await entries.first().waitFor();
    await page.getByRole('button', { name: 'messages' }).click();
    await soon('no messages', async () => (await page.locator('.entry-message').count()) === 0);
    await page.getByLabel('Search the trace').fill('flaky');
    await soon('of that pod only', async () => {
      const texts = await entries.allInnerTexts();
      return texts.length > 0 && texts.every((t) => t.includes('flaky'));
    });
    await page.getByRole('button', { name: 'Pause' }).click();
    const held = await entries.allInnerTexts();
    await page.getByRole('button', { name: /Go on \(\d+ new\)/ }).waitFor();
    expect(await entries.allInnerTexts()).toEqual(held);
    await picture(page, 'trace');
  });

  shows('shows decisions, and figures of the host from a process that ends with the look', async () => {
    await using o = await open({ hash: '#/decisions' });
    const { page } = o;
    await page.getByRole('heading', { name: 'Eviction' }).waitFor();
    const readers = () =>
      readdirSync('/proc')
        .filter((p) => /^\d+$/.test(p))
        .filter((p) => {
          try {
            const line = readFileSync(`/proc/${p}/cmdline`, 'utf8');
            return /hostfigures|hostMain/.test(line) && line.includes(`\0${node.pid}\0`);
          } catch {
            return false;
          }
        });
    expect(readers()).toEqual([]);
    await page.keyboard.press('6');
    await page.getByRole('heading', { name: 'Processor' }).waitFor();
    expect(await page.locator('main').innerText()).toContain('resident');
    expect(readers()).toHaveLength(1);
    await picture(page, 'host');
    await page.keyboard.press('1');
    await soon('nobody reads figures', async () => readers().length === 0);
  });

  shows('is used by keyboard', async () => {
    await using o = await open();
    const { page } = o;
    await lines(page).first().waitFor();
    await page.keyboard.press('/');
    expect(await page.evaluate(`document.activeElement?.getAttribute('type')`)).toBe('search');
    await page.keyboard.press('Escape');
    await lines(page).first().focus();
    await page.keyboard.press('ArrowDown');
    await soon('the second actor', async () => /#\/actors\/node\/\w+$/.test(page.url()));
    const folded = lines(page).nth(1);
    await soon('it is selected', async () => (await folded.getAttribute('aria-selected')) === 'true');
    await page.keyboard.press('ArrowLeft');
    await soon('it folds', async () => (await folded.getAttribute('aria-expanded')) === 'false');
    await page.keyboard.press('ArrowRight');
    await soon('it unfolds', async () => (await folded.getAttribute('aria-expanded')) === 'true');
    await page.keyboard.press('2');
    await soon('pods', async () => page.url().endsWith('#/pods'));
  });

  shows('lets nobody act without the token, and kills an actor with it', async () => {
    {
      await using o = await open({ hash: '#/actors/node/reclaim/imageGc' });
      await o.page.getByText('Faults', { exact: true }).click();
      await o.page.getByText('actorctl ui').waitFor();
      expect(await o.page.getByRole('button', { name: 'Kill this actor' }).count()).toBe(0);
    }
    await using o = await open({ hash: `#token=${token}` });
    const { page } = o;
    expect(page.url()).not.toContain(token);
    await lines(page)
      .filter({ hasText: /imageGc/ })
      .click();
    await page.getByText('Faults', { exact: true }).click();
    await page.getByRole('button', { name: 'Kill this actor' }).click();
    await page.getByText('kill: done').waitFor();
    await soon('its restart', async () => (await page.locator('.facts').first().innerText()).match(/Actor restarts\s+1/) !== null);
    await page.getByRole('button', { name: 'Hold its mail for 10 s' }).click();
    await page.getByText('pause: done').waitFor();
  });

  shows('asks before it restarts a pod, by keyboard too, and says why it deletes none that is static', async () => {
    const { uid } = (await node.pods()).find((p) => p.name.startsWith('web-007')) ?? { uid: '' };
    {
      await using o = await open({ hash: `#/pods/${uid}` });
      await o.page.getByText('to restart or delete this pod').waitFor();
      expect(await o.page.getByRole('button', { name: 'Restart' }).count()).toBe(0);
    }
    await using o = await open({ hash: `#token=${token}` });
    const { page } = o;
    await page.goto(`${url}#/pods/${uid}`);
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByText('Delete pod default/web-007').waitFor();
    await dialog.getByText('a static pod, which no API call deletes').waitFor();
    expect(await dialog.getByRole('button', { name: 'Delete' }).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(page.url()).toContain(uid);
    await page.getByRole('button', { name: 'Restart' }).focus();
    await page.keyboard.press('Enter');
    await dialog.getByText('These containers end and start again in place: app').waitFor();
    await picture(page, 'restart');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('app: ends, and starts again').waitFor();
    await page.getByText('a person asked for it over the inspection page').first().waitFor();
  });

  const looks = [
    ['light', 1280],
    ['dark', 400],
    ['dark', 1280],
    ['light', 400],
  ] as const;
  it.each(rotating('looks of the page', looks, looks.length))('fits its window: %s at %i pixels', async (scheme, width) => {
    await using o = await open({ scheme, width });
    const { page } = o;
    await lines(page).first().waitFor();
    const shots: [string, string][] = [
      ['actors', ''],
      ['pods', '#/pods'],
      ['events', '#/events'],
      ['trace', '#/trace'],
      ['decisions', '#/decisions'],
      ['host', '#/host'],
    ];
    for (const [name, hash] of shots) {
      await page.goto(`${url}${hash}`);
      await page.locator('main').waitFor();
      await page.waitForTimeout(300);
      expect(await overflowOf(page), name).toBeLessThanOrEqual(0);
    }
    await page.goto(`${url}#/pods`);
    await page.getByRole('link', { name: 'flaky-node-1' }).click();
    await page.locator('.lanes').waitFor();
    expect(await overflowOf(page), 'a pod').toBeLessThanOrEqual(0);
    await picture(page, `pod-${scheme}-${width}`);
    await page.locator('.said a').first().click();
    await page.locator('.state.leaf.active').waitFor();
    expect(await overflowOf(page), 'an actor').toBeLessThanOrEqual(0);
    await picture(page, `actor-${scheme}-${width}`);
  });

  shows('shows who was evicted, by which threshold, and what ranked him first', async () => {
    await using cluster = await clusterNode();
    await using o = await open({ of: cluster.url, hash: '#/decisions' });
    const { page } = o;
    await page.getByText('No pod was evicted.').waitFor();
    await cluster.node.inject({
      ...{ apiVersion: 'actorlet.dev/v1alpha1', kind: 'FaultScenario', metadata: { name: 'short' } },
      spec: { faults: [{ name: 'memory', kind: 'pressure.memory', available: '10Mi' }] },
    });
    const row = page.locator('section[aria-label=Decisions] li').filter({ hasText: 'Evicted' });
    await row.first().waitFor({ timeout: 90_000 });
    expect(await row.first().innerText()).toMatch(/^default\/cart-\d Evicted The node was low on resource: memory/);
    await page.getByText('memory.available').first().waitFor();
    await picture(page, 'decisions');
    await row.first().getByRole('link').click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    await soon('why the pod failed', async () => (await page.locator('main').innerText()).includes('Evicted'));
    expect(await page.locator('.facts').first().innerText()).toMatch(/Ready first\s+after /);
    await soon('its life', async () => /^(failing|ended)$/.test(await page.locator('.state.leaf.active').innerText()));
    expect(await page.locator('.way').innerText()).toMatch(/running[\s\S]*failing\s+evicted,/);
    await picture(page, 'evicted', 1_480);
  });

  shows('opens with what is wrong: a crashing pod, a manifest, the runtime; and a fault can be ended there', async () => {
    const soonest = { timeout: TEN_SECONDS_MS * (process.env.CI === undefined ? 1 : 3) };
    await using o = await open({ hash: `#token=${token}` });
    const { page } = o;
    const overview = page.getByRole('region', { name: 'Overview' });
    const problem = (title: string, text: string) => overview.locator('section', { hasText: title }).locator('li', { hasText: text });
    await problem('Pods that are not ready', 'default/flaky-node-1').filter({ hasText: 'CrashLoopBackOff' }).waitFor(soonest);
    await picture(page, 'problem-pod');
    writeFileSync(
      join(node.dir, 'manifests', 'broken.yaml'),
      'apiVersion: v1\nkind: Pod\nmetadata: {name: broken}\nspec: {containers: 3}\n',
    );
    await problem('Manifests that cannot be used', 'broken.yaml').filter({ hasText: 'spec.containers' }).waitFor(soonest);
    await picture(page, 'problem-manifest');
    await node.inject({
      ...{ apiVersion: 'actorlet.dev/v1alpha1', kind: 'FaultScenario', metadata: { name: 'away' } },
      spec: { faults: [{ name: 'away', kind: 'runtime.down', for: '5m' }] },
    });
    await problem('The node', 'does not answer').waitFor(soonest);
    expect(await page.getByRole('status').first().innerText()).toMatch(/^\d+ problems$/);
    await picture(page, 'problem-runtime');
    // The actor that has the link is not well either, and is counted once.
    const link = lines(page).filter({ hasText: /^cri/ });
    await link.locator('.dot.bad').waitFor();
    expect(await overview.getByRole('heading', { name: 'Actors that are not well' }).count()).toBe(0);
    await problem('Faults that are injected', 'away').getByRole('button', { name: 'Stop' }).click();
    await problem('The node', 'does not answer').waitFor({ state: 'detached' });
    await problem('Pods that are not ready', 'default/flaky-node-1').getByRole('link').click();
    await soon('it says so at the top', async () => (await page.locator('.chip').first().innerText()) === 'CrashLoopBackOff');
    rmSync(join(node.dir, 'manifests', 'broken.yaml'));
  });

  shows('causes a fault of its list, which ends there', async () => {
    await using o = await open({ hash: `#token=${token}` });
    const { page } = o;
    await page.getByLabel('A fault', { exact: true }).selectOption({ label: 'Images cannot be pulled for 1 min' });
    await page.getByRole('button', { name: 'Inject' }).click();
    const injected = page.locator('.problems li', { hasText: 'images-cannot-be-pulled' });
    await injected.getByRole('button', { name: 'Stop' }).click();
    await injected.waitFor({ state: 'detached' });
  });

  shows('says when the daemon is away', async () => {
    await using o = await open({ hash: '#/pods' });
    await o.page.getByText('flaky-node-1').first().waitFor();
    await node.kill('SIGKILL');
    await o.page.getByText('The daemon does not answer').waitFor();
  });

  it('did all that without an error in the console and without asking any other server', () => {
    // The last test took the daemon away on purpose.
    expect(browser.problems.filter((p) => !/WebSocket connection|ERR_CONNECTION/.test(p))).toEqual([]);
    expect(existsSync(CHROMIUM)).toBe(true);
  });
});
