/** Checkpoints of containers, and the figures of containers for dashboards. */
import { describe, expect, test } from 'vitest';
import { coded, criContainer, sandbox, start } from './node.ts';

const it = test.extend('s', () => start());

const CHECKPOINT = '/checkpoint/default/web/main';

describe('a checkpoint', () => {
  it('is written by the runtime into the node’s own folder, in the time that was asked for', async ({ s }) => {
    const asked: unknown[] = [];
    s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
    s.cri.CheckpointContainer = (request: unknown) => {
      asked.push(request);
      return {};
    };
    const answer = await s.ask(`${CHECKPOINT}?timeout=5&timeout=600`, { method: 'POST' });
    expect(answer.status).toBe(200);
    const [file] = (JSON.parse(answer.body) as { items: string[] }).items;
    expect(file).toMatch(/\/checkpoints\/checkpoint-web_default-main-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.tar$/);
    for (const query of ['', '?timeout=5']) expect((await s.ask(`${CHECKPOINT}${query}`, { method: 'POST' })).status).toBe(200);
    const location = expect.any(String) as string;
    expect(asked).toEqual([file, location, location].map((path, i) => ({ containerId: 'id-main', location: path, timeout: i ? 10 : 600 })));
  });
  it('of what is not there is 404, of what cannot be written down 500 with its name, and nothing but POST asks for one', async ({ s }) => {
    s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
    s.cri.CheckpointContainer = () => {
      throw coded(12, 'not supported');
    };
    const post = (path: string) => s.ask(path, { method: 'POST' });
    for (const path of [
      '/checkpoint/default/none/main',
      '/checkpoint/default/web/none',
      '/checkpoint/default/web',
      `${CHECKPOINT}/x`,
      ...['soon', '', '1e3', '0x10', '1.0', '%205'].map((timeout) => `${CHECKPOINT}?timeout=${timeout}`),
    ])
      expect([path, (await post(path)).status]).toEqual([path, 404]);
    expect(await post(CHECKPOINT)).toMatchObject({
      status: 500,
      body: 'checkpointing of default/web/main failed (rpc error: code = Unimplemented desc = not supported)\n',
    });
    expect((await post(`${CHECKPOINT}?timeout=-1`)).status).toBe(500);
    s.cri.ListContainers = () => ({ containers: [] });
    expect(await post(CHECKPOINT)).toMatchObject({ status: 500, body: 'checkpointing of default/web/main failed (it does not run)\n' });
    expect((await s.ask(CHECKPOINT)).status).toBe(405);
  });
  it('is no page where the gate is off, and needs a right of its own', async () => {
    const off = await start({ checkpoints: false });
    expect((await off.ask(CHECKPOINT, { method: 'POST' })).status).toBe(404);
    const s = await start();
    expect((await s.lab.ask(CHECKPOINT, { method: 'POST' })).status).toBe(401);
  });
});

describe('figures of containers for dashboards', () => {
  const at = '1700000000000000000';
  it('name the container as the runtime does, and have the machine’s own', async ({ s }) => {
    const figure = (value: string) => ({ value });
    s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
    s.cri.ListPodSandbox = () => ({ items: [sandbox] });
    s.cri.ListContainerStats = () => ({
      stats: [
        {
          attributes: { id: 'id-main', metadata: { name: 'main', attempt: 0 }, labels: criContainer('main').labels, annotations: {} },
          cpu: { timestamp: at, usageCoreNanoSeconds: figure('2500000000'), usageNanoCores: null },
          memory: { timestamp: at, workingSetBytes: figure('4096'), usageBytes: figure('8192') },
          writableLayer: { timestamp: at, fsId: { mountpoint: '/' }, usedBytes: figure('77'), inodesUsed: figure('3') },
        },
      ],
    });
    s.cri.ImageFsInfo = () => ({
      imageFilesystems: [{ timestamp: at, fsId: { mountpoint: '/' }, usedBytes: figure('7'), inodesUsed: figure('3') }],
    });
    const { status, body, headers } = await s.ask('/metrics/cadvisor');
    expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('text/plain; version=0.0.4')]);
    const labels = 'id="/id-main",image="busybox",name="id-main",namespace="default",pod="web"';
    expect(body).toContain(`container_cpu_usage_seconds_total{container="main",cpu="total",${labels}} 2.5 1700000000000\n`);
    expect(body).toContain(`container_memory_working_set_bytes{container="main",${labels}} 4096 1700000000000\n`);
    // What the root of the machine of the test is mounted from.
    expect(body.replace(/device="[^"]*"/g, 'device=""')).toContain(
      `container_fs_usage_bytes{container="main",device="",${labels}} 77 1700000000000\n`,
    );
    expect(body).toMatch(/^container_cpu_usage_seconds_total\{container="",cpu="total",id="\/",.*\} [\d.]+ \d+$/m);
    expect(body).toMatch(/^machine_cpu_cores\{[^}]*\} [1-9]\d*$/m);
    expect(body).toContain('container_scrape_error 0\n');
  });
  it('are the machine’s alone, with an error told, while the runtime gives none', async ({ s }) => {
    const { status, body } = await s.ask('/metrics/cadvisor');
    expect([status, body]).toEqual([200, expect.stringContaining('container_scrape_error 1\n')]);
    expect(body).toContain('machine_memory_bytes');
    expect(body).not.toContain('container_cpu_usage_seconds_total');
  });
});
