/** The inspection page in Debian's Chromium, for tests. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type AdminClient, adminClient } from '@actorlet/admin/src/client.ts';
import type { TestNode } from '@actorlet/harness/src/index.ts';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

export const CHROMIUM = '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];
const SOON_MS = 60_000;

export interface OpenPage extends AsyncDisposable {
  page: Page;
  context: BrowserContext;
}

/** A browser that notes errors of the console and requests to other servers. */
export class PageBrowser implements AsyncDisposable {
  readonly #browser: Browser;
  readonly problems: string[] = [];

  private constructor(browser: Browser) {
    this.#browser = browser;
  }
  static async launch(): Promise<PageBrowser> {
    return new PageBrowser(await chromium.launch({ executablePath: CHROMIUM, args: FLAGS }));
  }

  async open(at: string, o: { scheme?: 'light' | 'dark'; width?: number; hash?: string } = {}): Promise<OpenPage> {
    const width = o.width ?? 1280;
    const viewport = { width, height: width < 600 ? 800 : 860 };
    const context = await this.#browser.newContext({ viewport, colorScheme: o.scheme ?? 'light' });
    const page = await context.newPage();
    page.setDefaultTimeout(SOON_MS);
    page.on('pageerror', (e) => this.problems.push(e.message));
    // A breach of the content security policy is an error of the console.
    page.on('console', (m) => {
      if (m.type() === 'error') this.problems.push(m.text());
    });
    page.on('dialog', (d) => {
      this.problems.push(`a dialog: ${d.message()}`);
      void d.dismiss();
    });
    page.on('request', (r) => {
      if (!r.url().startsWith(at) && !/^(data|blob):/.test(r.url())) this.problems.push(`asked for ${r.url()}`);
    });
    await page.goto(`${at}${o.hash ?? ''}`);
    return { page, context, [Symbol.asyncDispose]: () => context.close() };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#browser.close();
  }
}

/** The page listens some moments after the node is ready. */
export function pageOf(of: TestNode): Promise<{ url: string; token: string }> {
  return pageBehind(adminClient(of.adminSocket, AbortSignal.timeout(SOON_MS)));
}
export async function pageBehind(client: AdminClient): Promise<{ url: string; token: string }> {
  let answer = await client.get('/page');
  await soon('the page listens', async () => {
    answer = await client.get('/page');
    return answer.status === 200;
  });
  return JSON.parse(answer.body) as { url: string; token: string };
}

/** Keeps a picture where `ACTORLET_SCREENSHOTS` names a folder. `heightPx`: of a taller window than the test's. */
export async function picture(page: Page, name: string, heightPx?: number): Promise<void> {
  const dir = process.env.ACTORLET_SCREENSHOTS ?? '';
  if (dir === '') return;
  mkdirSync(dir, { recursive: true });
  const window = page.viewportSize();
  if (heightPx !== undefined && window !== null) await page.setViewportSize({ ...window, height: heightPx });
  // The chart moves to the state that it follows.
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(dir, `${name}.png`) });
  if (window !== null) await page.setViewportSize(window);
}

export async function soon(what: string, look: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + SOON_MS;
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`not within ${SOON_MS} ms: ${what}`);
    await new Promise((r) => setTimeout(r, 50));
  }
}

/** How much wider the page is than its window. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
}
