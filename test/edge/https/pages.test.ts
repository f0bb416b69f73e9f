/** What the API answers to somebody who was let in: lists, statistics, and bad requests of each kind. */
import { connect } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PodStatus } from '../../../src/machines/kube/types.ts';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { viewOfPods } from '../metrics/samples.ts';
import { serverCa, startLab } from './lab.ts';
import { ann, criContainer, sandbox, start, uid } from './node.ts';

const it = test.extend('s', () => start());

describe('pages for a person', () => {
  it('statusz and flagz say what runs and with which flags, and only where their gate is on', async ({ s }) => {
    const status = await s.ask('/statusz');
    expect([status.status, status.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(status.body).toMatch(/^\nkubelet statusz\nWarning: This endpoint is not meant to be machine parseable/);
    expect(status.body).toMatch(/^Started: Mon Nov {2}2 03:04:05 UTC 2026\nUp: 0 hr \d\d min \d\d sec\n/m);
    expect(status.body).toMatch(/^Binary version: v1\.36\.0\nPaths: \/configz \/debug \/flagz \/healthz \/metrics$/m);
    const flags = await s.ask('/flagz', { headers: { accept: 'application/json, text/*;q=0.1' } });
    expect(flags.body).toMatch(/^\nkubelet flagz\nWarning: .*\naddress=0\.0\.0\.0\nport=10250\n$/);
    for (const path of ['/statusz', '/flagz']) {
      expect((await s.ask(path, { headers: { accept: 'application/json' } })).status).toBe(406);
      expect((await s.ask(path, { method: 'POST' })).status).toBe(405);
      expect((await s.ask(`${path}/x`)).status).toBe(404);
    }
    const as = (kind: string, version: string, path: string) =>
      s.ask(path, { headers: { accept: `text/plain;q=0.5, application/json;v=${version};g=config.k8s.io;as=${kind}` } });
    const structured = await as('Statusz', 'v1beta1', '/statusz');
    expect([structured.status, structured.headers['content-type'], structured.headers.warning]).toEqual([
      200,
      'application/json',
      undefined,
    ]);
    expect(JSON.parse(structured.body)).toEqual({
      ...{ kind: 'Statusz', apiVersion: 'config.k8s.io/v1beta1', metadata: { name: 'kubelet' }, startTime: '2026-11-02T03:04:05Z' },
      ...{ uptimeSeconds: expect.any(Number), goVersion: expect.stringMatching(/^none, /), binaryVersion: 'v1.36.0' },
      paths: ['/configz', '/debug', '/flagz', '/healthz', '/metrics'],
    });
    const older = await as('Flagz', 'v1alpha1', '/flagz');
    expect(JSON.parse(older.body)).toEqual({
      ...{ kind: 'Flagz', apiVersion: 'config.k8s.io/v1alpha1', metadata: { name: 'kubelet' } },
      flags: { address: '0.0.0.0', port: '10250' },
    });
    expect(older.headers.warning).toContain('deprecated');
    // Of another kind or version there is text, where that is taken too.
    for (const [kind, version] of [
      ['Flagz', 'v1beta1'],
      ['Statusz', 'v9'],
    ] as const)
      expect((await as(kind, version, '/statusz')).headers['content-type']).toBe('text/plain; charset=utf-8');
    const off = await start({ statusz: false, flagz: false });
    for (const path of ['/statusz', '/flagz']) expect((await off.ask(path)).status).toBe(404);
  });
});

describe('lists', () => {
  it('of pods have what sources want, and null for none (trap 28)', async ({ s }) => {
    const list = JSON.parse((await s.ask('/pods')).body) as { items: { metadata: { name: string }; status: PodStatus }[] };
    expect(list.items.map((p) => [p.metadata.name, p.status.phase])).toEqual([['web', 'Running']]);
    s.registry.set(podsView, viewOfPods([]));
    expect(JSON.parse((await s.ask('/pods/')).body)).toHaveProperty('items', null);
  });
  it('of running pods come from the runtime', async ({ s }) => {
    s.cri.ListContainers = () => ({
      containers: [criContainer('main'), criContainer('side'), criContainer('old', { state: 'CONTAINER_EXITED' })],
    });
    const waiting = { ...sandbox.labels, 'io.kubernetes.pod.uid': 'other', 'io.kubernetes.pod.name': 'waiting' };
    s.cri.ListPodSandbox = () => ({ items: [sandbox, { ...sandbox, labels: waiting }] });
    const list = JSON.parse((await s.ask('/runningpods/')).body) as {
      items: { metadata: { name: string }; spec: { containers: { name: string; image: string }[] | null } }[];
    };
    expect(list.items.map(({ metadata, spec }) => [metadata.name, spec.containers?.map((c) => `${c.name} ${c.image}`)])).toEqual([
      [sandbox.labels['io.kubernetes.pod.name'], ['main busybox', 'side busybox']],
      // A pod whose containers do not run (yet) has a sandbox that does.
      ['waiting', undefined],
    ]);
  });
  it('say 503 with the reason while there are none, and the runtime’s failure as 500', async () => {
    const s = await startLab();
    onTestFinished(() => s.stop());
    expect((await s.ask('/pods', { client: ann })).status).toBe(503);
    expect((await s.ask('/runningpods/', { client: ann })).status).toBe(500);
    for (const folder of ['/runningpods', '/stats?x=1', '/logs']) expect((await s.ask(folder, { client: ann })).status).toBe(307);
  });
});

describe('statistics', () => {
  const labels = criContainer('main').labels;
  const stats = (used: number, atNs: string) => ({
    attributes: { id: 'id-main', metadata: { name: 'main', attempt: 0 }, labels, annotations: {} },
    cpu: { timestamp: atNs, usageCoreNanoSeconds: { value: String(used) }, usageNanoCores: null },
    memory: {
      timestamp: atNs,
      workingSetBytes: { value: '4096' },
      availableBytes: null,
      usageBytes: null,
      rssBytes: null,
      pageFaults: null,
      majorPageFaults: null,
    },
    writableLayer: null,
  });
  it('sum up the node and its pods, with rates from the second look on', async ({ s }) => {
    let used = 1_000_000_000;
    let at = '1700000000000000000';
    s.cri.ListContainerStats = () => ({ stats: [stats(used, at)] });
    s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
    s.cri.ListPodSandbox = () => ({ items: [sandbox] });
    s.cri.ImageFsInfo = () => ({
      imageFilesystems: [{ timestamp: at, fsId: { mountpoint: '/' }, usedBytes: { value: '7' }, inodesUsed: { value: '3' } }],
    });
    const first = JSON.parse((await s.ask('/stats/summary')).body);
    expect(first).toMatchObject({
      node: {
        nodeName: 'n1',
        cpu: { usageCoreNanoSeconds: expect.any(Number) },
        fs: { capacityBytes: expect.any(Number) },
        runtime: { imageFs: { usedBytes: 7 } },
      },
      pods: [
        {
          podRef: { name: 'web', namespace: 'default', uid },
          containers: [{ name: 'main', cpu: { usageCoreNanoSeconds: 1_000_000_000 } }],
        },
      ],
    });
    used += 500_000_000;
    at = '1700000002000000000';
    s.skip(2000);
    const brief = JSON.parse((await s.ask('/stats/summary?only_cpu_and_memory=true')).body);
    expect(brief.pods[0].containers[0].cpu.usageNanoCores).toBe(250_000_000);
    expect(brief.node.cpu.usageNanoCores).toEqual(expect.any(Number));
    expect(brief.node).not.toHaveProperty('fs');
    const resource = await s.ask('/metrics/resource');
    expect(resource.body).toContain(
      'container_cpu_usage_seconds_total{container="main",namespace="default",pod="web"} 1.5 1700000002000\n',
    );
    expect(resource.headers['content-type']).toContain('text/plain; version=0.0.4');
  });
  it('are an error where the runtime gives none, told as such to metrics-server', async ({ s }) => {
    expect(await s.ask('/stats/summary')).toMatchObject({ status: 500, body: expect.stringContaining('Internal Error') });
    const resource = await s.ask('/metrics/resource');
    expect([resource.status, resource.body]).toEqual([200, expect.stringContaining('resource_scrape_error 1')]);
  });
  describe('with PodAndContainerStatsFromCRI', () => {
    const at = '1700000000000000000';
    const v = (value: number) => ({ value: String(value) });
    const psi = (total: number) => ({
      Full: { Total: '1', Avg10: 0.5, Avg60: 0, Avg300: 0 },
      Some: { Total: String(total), Avg10: 0, Avg60: 0, Avg300: 2 },
    });
    const unsaid = { availableBytes: null, rssBytes: null, pageFaults: null, majorPageFaults: null };
    const eth = (name: string) => ({ name, rxBytes: v(1), rxErrors: v(2), txBytes: v(3), txErrors: null });
    const sandboxStats = () => ({
      attributes: { id: sandbox.id, metadata: { name: 'web', namespace: 'default', uid, attempt: 0 }, labels: {}, annotations: {} },
      linux: {
        cpu: { timestamp: at, usageCoreNanoSeconds: v(7_000), usageNanoCores: v(70), psi: psi(9) },
        memory: { ...unsaid, timestamp: at, workingSetBytes: v(5_000), usageBytes: v(6_000) },
        network: { timestamp: at, defaultInterface: eth('eth0'), interfaces: [eth('eth0'), eth('net1')] },
        process: { timestamp: at, processCount: v(4) },
        containers: [{ ...stats(1_000, at), cpu: { ...stats(1_000, at).cpu, psi: psi(3) } }],
        io: { timestamp: at, psi: psi(5) },
      },
    });
    const unimplemented = () => {
      throw Object.assign(new Error('unknown method'), { code: 12 });
    };
    const fromCri = async () => {
      const s = await start({ fromCri: true });
      s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
      s.cri.ListPodSandbox = () => ({ items: [sandbox] });
      s.cri.ImageFsInfo = () => ({
        imageFilesystems: [{ timestamp: at, fsId: { mountpoint: '/' }, usedBytes: v(7), inodesUsed: v(3) }],
      });
      return s;
    };
    const called = (s: Awaited<ReturnType<typeof fromCri>>) => new Set(s.calls.map((c) => c.method));

    it('are those of the runtime, and no container is asked for by itself', async () => {
      const s = await fromCri();
      const [one, none] = [sandboxStats(), { attributes: null, linux: null }];
      s.cri.ListPodSandboxStats = () => ({ stats: [one, none, { ...one, attributes: { ...one.attributes, id: 'before' } }] });
      const [pod] = JSON.parse((await s.ask('/stats/summary')).body).pods;
      const some = (total: number) => ({ total, avg10: 0, avg60: 0, avg300: 2 });
      expect(pod.containers).toHaveLength(1);
      expect(pod).toMatchObject({
        cpu: { usageCoreNanoSeconds: 7_000, usageNanoCores: 70, psi: { some: some(9), full: { total: 1, avg10: 0.5 } } },
        memory: { workingSetBytes: 5_000, usageBytes: 6_000 },
        network: { name: 'eth0', rxBytes: 1, rxErrors: 2, txBytes: 3, txErrors: 0, interfaces: [{ name: 'eth0' }, { name: 'net1' }] },
        process_stats: { process_count: 4 },
        io: { psi: { some: some(5) } },
        containers: [{ name: 'main', cpu: { usageCoreNanoSeconds: 1_000, psi: { some: some(3) } } }],
      });
      expect(called(s)).not.toContain('ListContainerStats');
      const brief = JSON.parse((await s.ask('/stats/summary?only_cpu_and_memory=true')).body).pods[0];
      expect(brief).toMatchObject({ cpu: { usageCoreNanoSeconds: 7_000 }, memory: { workingSetBytes: 5_000 } });
      expect(brief.containers).toMatchObject([{ cpu: { psi: { some: some(3) } } }]);
      expect(brief).not.toHaveProperty('network');
      expect((await s.ask('/metrics/resource')).body).toContain('pod_memory_working_set_bytes{namespace="default",pod="web"} 5000 ');
      expect((await s.ask('/metrics')).body).toContain('kubelet_metrics_provider{provider="cadvisor"} 1');
    });

    it('have no list of interfaces where the runtime lists none beside the main one', async () => {
      const s = await fromCri();
      const { linux, ...rest } = sandboxStats();
      s.cri.ListPodSandboxStats = () => ({ stats: [{ ...rest, linux: { ...linux, network: { ...linux.network, interfaces: [] } } }] });
      const [pod] = JSON.parse((await s.ask('/stats/summary')).body).pods;
      expect(pod.network).toMatchObject({ name: 'eth0', rxBytes: 1 });
      expect(pod.network).not.toHaveProperty('interfaces');
    });

    it('come as before from a runtime that refuses the calls, and are an error where it does not answer', async () => {
      const s = await fromCri();
      s.cri.ListPodSandboxStats = unimplemented;
      s.cri.ListMetricDescriptors = unimplemented;
      s.cri.ListContainerStats = () => ({ stats: [stats(1_000, at)] });
      for (const _ of [1, 2])
        expect(JSON.parse((await s.ask('/stats/summary')).body).pods[0].containers[0].cpu.usageCoreNanoSeconds).toBe(1_000);
      expect((await s.ask('/metrics/cadvisor')).body).toContain('container_cpu_usage_seconds_total{container="main"');
      const said = s.ports.lines.filter((l) => l.msg.startsWith('PodAndContainerStatsFromCRI'));
      expect(said.map((l) => l.fields.call)).toEqual(['ListPodSandboxStats', 'ListPodSandboxMetrics']);
      // One of its sandboxes is broken.
      s.cri.ListPodSandboxStats = () => {
        throw new Error('failed to decode sandbox container metrics');
      };
      expect((await s.ask('/stats/summary')).status).toBe(200);
      s.cri.ListPodSandboxStats = () => {
        throw Object.assign(new Error('broken'), { code: 14 });
      };
      expect(await s.ask('/stats/summary')).toMatchObject({ status: 500, body: expect.stringContaining('broken') });
    });

    it('/metrics/cadvisor is what the runtime makes: as its descriptors say, and the machine’s own', async () => {
      const s = await fromCri();
      const row = (name: string, labelValues: string[], value: number, more: object = {}) => ({
        ...{ name, timestamp: '0', metricType: 'GAUGE', labelValues, value: v(value), ...more },
      });
      s.cri.ListMetricDescriptors = () => ({
        descriptors: [
          { name: 'container_b', help: 'Two\nlines.', labelKeys: ['pod', 'id'] },
          { name: 'container_a_total', help: 'A.', labelKeys: [] },
          { name: '1st.metric', help: '', labelKeys: ['a.b'] },
          ...[['__reserved'], ['twice', 'twice'], ['']].map((labelKeys, i) => ({ name: `container_${i}`, help: '', labelKeys })),
        ],
      });
      const metrics = [
        row('container_b', ['web', 'x"\n'], 2),
        row('container_b', ['web'], 3),
        row('container_unknown', [], 4),
        row('1st.metric', ['x'], 4),
        ...[['x'], ['x', 'x'], ['x']].map((values, i) => row(`container_${i}`, values, 4)),
        // A type of a newer CRI.
        row('container_b', ['web', 'y'], 2, { metricType: 2 }),
      ];
      const counter = row('container_a_total', [], 5, { metricType: 'COUNTER', timestamp: at });
      s.cri.ListPodSandboxMetrics = () => ({
        podMetrics: [
          { podSandboxId: 's', metrics, containerMetrics: [{ containerId: 'c', metrics: [counter, { ...counter, value: v(6) }] }] },
        ],
      });
      for (const _ of [1, 2]) {
        const { body } = await s.ask('/metrics/cadvisor');
        const [ofRuntime, ofMachine] = [body.slice(0, body.indexOf('# HELP machine_')), body.slice(body.indexOf('# HELP machine_'))];
        expect(ofRuntime).toBe(
          '# HELP _st_metric [INTERNAL] \n# TYPE _st_metric gauge\n_st_metric{a_b="x"} 4\n' +
            '# HELP container_a_total [INTERNAL] A.\n# TYPE container_a_total counter\ncontainer_a_total 5 1700000000000\n' +
            '# HELP container_b [INTERNAL] Two\\nlines.\n# TYPE container_b gauge\ncontainer_b{id="x\\"\\n",pod="web"} 2\n',
        );
        expect(ofMachine).toContain('machine_memory_bytes');
        expect(ofMachine).not.toContain('container_');
      }
      expect(s.calls.filter((c) => c.method === 'ListMetricDescriptors')).toHaveLength(1);
    });
  });

  it('of a pod are looked for in its group', async () => {
    const looked: string[] = [];
    const s = await start({ podGroup: (pod) => void looked.push(pod.metadata.name) });
    s.cri.ListContainerStats = () => ({ stats: [] });
    s.cri.ListContainers = () => ({ containers: [] });
    s.cri.ListPodSandbox = () => ({ items: [] });
    expect((await s.ask('/metrics/resource')).body).toContain('resource_scrape_error 0');
    expect(looked).toContain('web');
  });
  it('of the process have the requests themselves, and probes have their page', async ({ s }) => {
    await s.ask('/exec/a/b/c');
    await s.ask('/scanner');
    await s.ask('/portForward/a/b');
    await s.ask('/containerLogs/default/web/main?follow=true');
    await s.ask('/debug/pprof/');
    const { body } = await s.ask('/metrics');
    expect(body).toContain('kubelet_http_requests_total{method="GET",path="exec",server_type="readwrite",long_running="true"} 1');
    expect(body).toContain('kubelet_http_requests_total{method="GET",path="other",server_type="readwrite",long_running="false"} 1');
    expect(body).toContain('kubelet_http_requests_total{method="GET",path="debug",server_type="readwrite",long_running="true"} 1');
    // Neither is in the kubelet's list of long-running paths (trap 41).
    for (const path of ['portForward', 'containerLogs'])
      expect(body).toContain(`kubelet_http_requests_total{method="GET",path="${path}",server_type="readwrite",long_running="false"} 1`);
    expect(await s.ask('/metrics/probes')).toMatchObject({ status: 200, body: expect.stringMatching(/^process_start_time_seconds \d/m) });
    expect((await s.ask('/metrics/probes')).body).not.toMatch(/kubelet_|actorlet_|process_cpu/);
    // What has a page of its own is there only.
    expect(body).not.toMatch(/^(prober_|kubernetes_healthcheck)/m);
  });
});

describe('bad requests', () => {
  it('are refused with their reason, and the server goes on', async ({ s }) => {
    expect((await s.ask('/pods%zz')).status).toBe(400);
    expect((await s.ask('/logs/%ff%fe')).status).toBe(400);
    expect((await s.ask('/run/default/web/main?cmd=x', { method: 'POST', body: Buffer.alloc(70_000) })).status).toBe(413);
    expect((await s.ask('/pods', { headers: { 'x-long': 'x'.repeat(1_100_000) } }).catch(() => ({ status: 431 }))).status).toBe(431);
    expect((await s.ask('/pods')).status).toBe(200);
  });
  it('that are no HTTP at all get a 400 and the end', async ({ s }) => {
    const got = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect({ host: '127.0.0.1', port: s.port, ca: serverCa.pem, ...ann }, () => socket.write('\0\0nonsense\r\n\r\n'));
      socket.on('data', (d) => {
        text += d.toString('latin1');
      });
      socket.on('error', () => undefined);
      socket.once('close', () => resolve(text));
    });
    expect(got).toMatch(/^HTTP\/1\.1 400 /);
    expect((await s.ask('/pods')).status).toBe(200);
  });
});
