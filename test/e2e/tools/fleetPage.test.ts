/** The overview page of a fleet in Chromium, with a thousand nodes whose states are given. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { servePage } from '@actorlet/fleet/src/boot/page.ts';
import { Calls } from '@actorlet/fleet/src/calls.ts';
import { Front } from '@actorlet/fleet/src/front/front.ts';
import type { NodeOverview } from '@actorlet/fleet/src/overview.ts';
import { describe, expect, it } from 'vitest';
import { createNet } from '../../../src/boot/dependencies/net/net.ts';
import { PageBrowser } from '../lab/page/browser.ts';

const NODES = 1_000;
const LOOK_MS = 1_000;

function fleet() {
  const net = createNet();
  const each: NodeOverview[] = Array.from({ length: NODES }, (_, i) => ({
    ...{ name: `zone-${i % 3}-${i}`, group: `zone-${i % 3}`, pods: 10, state: 'ready' as const },
    readyAfterMs: i === 7 ? 9_900 : 500,
  }));
  const front = new Front({ address: 'https://h:1', nodeOfPod: () => undefined, state: () => expect.fail('the page asks nodes alone') });
  void front
    .of('zone-0-3', net)
    .serveHttp({ socketPath: '/x', mode: 0 }, async (req) => ({ status: 200, body: `tree of ${req.path} <b>` }));
  const count = (state: NodeOverview['state']): number => each.filter((n) => n.state === state).length;
  const overview = () => ({
    nodes: { total: NODES, running: NODES - count('off'), ready: count('ready') },
    pods: { total: 10_000, ready: 9_990, byPhase: { Running: 9_990, Pending: 10 } },
  });
  return { net, each, fleet: { overview, nodes: () => each, calls: new Calls(), front } };
}

describe('the overview page', () => {
  it('shows a thousand nodes by their state, follows them, and opens one', { timeout: 90_000 }, async () => {
    const { net, each, fleet: it } = fleet();
    const server = await servePage(it, net, 0);
    await using browser = await PageBrowser.launch();
    await using opened = await browser.open(`http://${server.address}/`);
    const { page } = opened;
    await expect.poll(() => page.locator('#grid button.ready').count()).toBe(NODES);
    expect(await page.locator('#sum').textContent()).toBe('1000 of 1000 nodes Ready, 9990 of 10000 pods Ready');
    expect(await page.locator('#slow tr').first().textContent()).toContain('zone-1-7');
    for (const node of each) if (node.group === 'zone-2') node.state = 'notReady';
    const fromMs = performance.now();
    await expect.poll(() => page.locator('#grid button.notReady').count()).toBe(333);
    expect(performance.now() - fromMs).toBeLessThan(2_000 + LOOK_MS * 5);
    await page.locator('#grid button').nth(3).click();
    await expect.poll(() => page.locator('#text').textContent()).toBe('tree of /statez <b>');
    const dir = process.env.ACTORLET_SCREENSHOTS;
    if (dir !== undefined) {
      mkdirSync(dir, { recursive: true });
      await page.screenshot({ path: join(dir, 'fleet.png') });
    }
    expect(browser.problems).toEqual([]);
    await server.close();
  });
});
