/** The overview page of a fleet in Chromium, with five thousand nodes whose states are given; and the report of a run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { servePage } from '@actorlet/fleet/src/boot/page.ts';
import { Calls } from '@actorlet/fleet/src/calls.ts';
import { Front } from '@actorlet/fleet/src/front/front.ts';
import type { NodeOverview } from '@actorlet/fleet/src/overview.ts';
import { PageFigures } from '@actorlet/fleet/src/page/figures.ts';
import { pageHtml } from '@actorlet/fleet/src/page/html.ts';
import type { RunShown } from '@actorlet/fleet/src/run.ts';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createNet } from '../../../src/boot/dependencies/net/net.ts';
import { PageBrowser, picture, soon } from '../lab/page/browser.ts';

const NODES = 5_000;
/** A frame at 60 a second. */
const FRAME_MS = 1_000 / 60;
const FRAMES = 30;
const ZONE = 'topology.kubernetes.io/zone';

const zoneOf = (i: number): string => `zone-${Math.floor((i * 3) / NODES)}`;

function fleet() {
  const net = createNet();
  const each: NodeOverview[] = Array.from({ length: NODES }, (_, i) => ({
    ...{ name: `${zoneOf(i)}-${i}`, group: i < 4_000 ? 'general' : 'gpu', pods: 10, state: 'ready' as const },
    readyAfterMs: i === 7 ? 9_900 : 500,
  }));
  const front = new Front({ address: 'https://h:1', nodeOfPod: () => undefined, state: () => expect.fail('the page asks nodes alone') });
  void front
    .of('zone-0-3', net)
    .serveHttp({ socketPath: '/x', mode: 0 }, async (req) => ({ status: 200, body: `tree of ${req.path} <b>` }));
  const count = (state: NodeOverview['state']): number => each.filter((n) => n.state === state).length;
  const overview = () => ({
    nodes: { total: NODES, running: NODES - count('off'), ready: count('ready') },
    pods: { total: 10_000, ready: 9_990, byPhase: { Running: 9_990, Pending: 10 }, byReason: { '<b>ImagePullBackOff': 10 } },
  });
  const facts = () =>
    each.map(({ name, group }, i) => ({ name, group, labels: { [ZONE]: zoneOf(i) }, version: i === 0 ? 'v1.35.0' : 'v1.36.2' }));
  return { net, each, fleet: { overview, facts, nodes: () => each, calls: new Calls(), front } };
}
const measure = { what: 'nodesReady' } as const;
const expected = { name: 'all nodes are Ready again', measure, afterMs: 0, withinMs: 60_000, holds: 'once' } as const;
const RUN: RunShown = {
  atMs: 60_000,
  steps: [
    {
      atMs: 20_000,
      doneMs: 21_000,
      what: 'inject power',
      count: 1_667,
      of: 'nodes',
      troubles: [{ node: 'zone-2-2', why: '<i>it is off' }],
    },
  ],
  expect: [{ expected: { ...expected, atLeast: NODES }, metMs: null, decided: true, is: 3_333 } as RunShown['expect'][number]],
  timeline: {
    samples: Array.from({ length: 60 }, (_, i) => ({
      ...{ atMs: i * 1_000, nodes: NODES, nodesReady: i < 20 ? NODES : 3_333, pods: 10_000, podsReady: 9_990 },
    })),
    green: [
      [
        { fromMs: 5_000, fits: true },
        { fromMs: 21_000, fits: false },
      ],
    ],
  },
};

let browser: PageBrowser;
beforeAll(async () => {
  browser = await PageBrowser.launch();
});
afterAll(() => browser?.[Symbol.asyncDispose]());

/** The middle of a node's square. */
async function squareOf(page: Page, place: number): Promise<{ x: number; y: number }> {
  const { width } = (await page.locator('#grid').boundingBox()) ?? { width: 0 };
  const columns = Math.floor(width / 10);
  return { x: (place % columns) * 10 + 4, y: Math.floor(place / columns) * 10 + 4 };
}

describe('the overview page', () => {
  it('shows five thousand nodes by their state, follows them, filters them, and opens one', async () => {
    const { net, each, fleet: it } = fleet();
    const server = await servePage(it, net, { port: 0, run: () => RUN });
    await using opened = await browser.open(`http://${server.address}/`);
    const { page } = opened;
    const legend = page.locator('#legend');
    await legend.getByText('5000 Ready', { exact: true }).waitFor();
    expect(await page.locator('#sum').textContent()).toBe('5000 of 5000 nodes Ready, 9990 of 10000 pods Ready');
    expect(await page.locator('#slow tr').first().textContent()).toContain('zone-0-7');
    expect(await page.locator('#reasons').textContent()).toContain('<b>ImagePullBackOff');
    for (const [i, node] of each.entries()) if (zoneOf(i) === 'zone-2') node.state = 'notReady';
    await legend.getByText('1666 not Ready').click();
    await soon('only those are shown', async () => (await page.locator('#shown').textContent()) === '1666 of 5000 nodes are shown');
    await legend.getByText('1666 not Ready').click();
    await page.locator('#zone').selectOption('zone-2');
    await page.locator('#group').selectOption('gpu');
    await soon('those of the zone and group', async () => (await page.locator('#shown').textContent()) === '1000 of 5000 nodes are shown');
    await page.locator('#zone').selectOption('');
    await page.locator('#group').selectOption('');
    await page.locator('#version').selectOption('v1.35.0');
    await soon('that of the version', async () => (await page.locator('#shown').textContent()) === '1 of 5000 nodes are shown');
    await page.locator('#version').selectOption('');
    await page.getByRole('listitem').filter({ hasText: 'all nodes are Ready again' }).getByText('NOT MET').waitFor();
    await picture(page, 'fleet');
    await page.locator('#grid').click({ position: await squareOf(page, 3) });
    await soon('its tree', async () => (await page.locator('#text-of-node').textContent()) === 'tree of /statez <b>');
    expect(page.url()).toMatch(/#\/nodes\/zone-0-3$/);
    // The keyboard walks, too.
    await page.locator('#grid').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await soon('the next one', async () => (await page.locator('#name').textContent()) === 'zone-0-4');
    await server.close();
    expect(browser.problems.filter((p) => !/ERR_CONNECTION_REFUSED|404/.test(p))).toEqual([]);
  });

  it('draws all of them in less than a frame', async () => {
    const { net, fleet: it } = fleet();
    const server = await servePage(it, net, { port: 0, run: () => null });
    await using opened = await browser.open(`http://${server.address}/`, { scheme: 'dark' });
    const { page } = opened;
    await page.locator('#legend').getByText('5000 Ready', { exact: true }).waitFor();
    const times: number[] = [];
    for (let i = 0; i < FRAMES; i++) {
      await page.evaluate(
        "dispatchEvent(new Event('resize')); new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))",
      );
      times.push(Number(await page.locator('#grid').getAttribute('data-draw-ms')));
    }
    times.sort((a, b) => a - b);
    // A machine that is busy draws some of them late.
    expect(times[Math.floor(FRAMES / 4)]).toBeLessThan(FRAME_MS);
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(20, 24, 29)');
    await picture(page, 'fleet-dark');
    await server.close();
  });

  it('is the report of a run in one file, which asks nothing of anybody', async () => {
    const { fleet: it } = fleet();
    const dir = mkdtempSync(join(tmpdir(), 'actorlet-report-'));
    try {
      const file = join(dir, 'report.html');
      const seconds = { nodeReady: { count: NODES, p50: 0.5, p90: 0.5, p99: 0.5, max: 9.9 } };
      writeFileSync(file, pageHtml({ ...new PageFigures(it).now(RUN, -1), seconds, title: '</script><b>zone & power' }));
      await using opened = await browser.open(`file://${file}`);
      const { page } = opened;
      await page.locator('#legend').getByText('5000 Ready', { exact: true }).waitFor();
      expect(await page.title()).toBe('actorlet fleet: </script><b>zone & power');
      await page.locator('#steps').getByText('20.0 s inject power: 1667 nodes').waitFor();
      await page.getByText('zone-2-2: <i>it is off').waitFor();
      await page.getByText('a daemon’s start to Ready').waitFor();
      await page.locator('#grid').click({ position: await squareOf(page, 3) });
      await page.getByText('group general').waitFor();
      expect(browser.problems.filter((p) => !/ERR_CONNECTION_REFUSED|404/.test(p))).toEqual([]);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
