/** Kubelets of other releases: each is found and named, what is unknown of it is said once, and it is not asked for what it never writes. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { describe, expect, test } from 'vitest';
import { Authority } from '../../../test/e2e/lab/pki.ts';
import { pod as manifest } from '../../../test/integration/virtualNode.ts';
import { findKubelet } from '../src/found/found.ts';
import { linesOf } from '../src/found/shown.ts';
import { beside } from './beside.ts';
import { FakeNode, kubelet } from './nodes.ts';
import { CONFIGZ, RELEASES } from './releases.ts';

describe('a kubelet of', () => {
  for (const { version, flags, file, configz, unknown, unsaid } of RELEASES)
    test(version, async () => {
      const answers: Record<string, object> = {
        '/api/v1/nodes/worker-1': { status: { nodeInfo: { kubeletVersion: version } } },
        '/api/v1/nodes/worker-1/proxy/configz': { kubeletconfig: { ...CONFIGZ, ...configz } },
      };
      using node = new FakeNode();
      const ca = new Authority(join(node.folder, 'pki'), 'ca');
      const { certFile, keyFile } = ca.issue('server', { name: 'server', hosts: ['127.0.0.1'] });
      const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (req, res) => {
        const body = answers[req.url ?? ''];
        res.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
        res.end(JSON.stringify(body ?? { kind: 'Status', code: 404, reason: 'NotFound' }));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
      try {
        const { port } = server.address() as AddressInfo;
        const cluster = { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': readFileSync(ca.certFile).toString('base64') };
        const kubeconfig = {
          ...{
            apiVersion: 'v1',
            kind: 'Config',
            'current-context': 'c',
            clusters: [{ name: 'c', cluster }],
            users: [{ name: 'u', user: {} }],
          },
          contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
        };
        node.write('/etc/kubernetes/kubelet.conf', JSON.stringify(kubeconfig));
        node.write('/var/lib/kubelet/config.yaml', file);
        const words = ['/usr/bin/kubelet', '--kubeconfig=/etc/kubernetes/kubelet.conf', '--config=/var/lib/kubelet/config.yaml'];
        node.start(812, kubelet([...words, '--hostname-override=worker-1', ...flags]));
        const found = await findKubelet(node.options());
        expect(found.running?.version).toBe(version);
        expect(found.loaded.config).toMatchObject({ cgroupDriver: 'systemd', maxPods: 58, podLogsDir: '/var/log/pods' });
        const lines = linesOf(found);
        const said = lines.find((line) => line.includes('does not write these')) ?? '';
        expect(said.split('judged: ')[1]?.split(', ').sort() ?? []).toEqual([...unsaid].sort());
        for (const name of unknown) expect(lines.filter((line) => line.includes(name) && line.startsWith('note:')).length).toBe(1);
        expect(found.differences.map(({ field }) => field)).not.toContain('podLogsDir');
      } finally {
        server.close();
        server.closeAllConnections();
      }
    });
});

const UNSAID = ['user', 'resources', 'allocatedResources', 'volumeMounts', 'allocatedResourcesStatus'];

/** The statuses of a kubelet of 1.30: fields of later releases are not in them. */
function earlier(version: string): (ports: Ports) => Ports {
  return (ports) => {
    const { kube } = ports;
    if (kube === undefined) throw new Error('no cluster');
    const without = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(without);
      if (typeof value !== 'object' || value === null) return value;
      const isContainer = 'restartCount' in value;
      const entries = Object.entries(value).filter(([name]) => !(isContainer && UNSAID.includes(name)));
      return Object.fromEntries(entries.map(([name, v]) => [name, name === 'kubeletVersion' ? version : without(v)]));
    };
    const request: typeof kube.request = (req, opts) =>
      kube.request(req.verb !== 'GET' && /\/(?:pods|nodes)\b/.test(req.path) ? { ...req, body: without(req.body) } : req, opts);
    return { ...ports, kube: { ...kube, request, watch: kube.watch.bind(kube), close: kube.close.bind(kube) } };
  };
}

test.each([
  ['v1.30.14', 0],
  ['v1.36.2', 1],
])('a status without fields of later releases is no disagreement of %s', async (version, disagreements) => {
  await using b = await beside({ ports: earlier(version) });
  const { h } = b;
  const container = { volumeMounts: [{ name: 'v', mountPath: '/v' }], resources: { requests: { cpu: '10m' } } };
  const pod = manifest('web', { container, spec: { nodeName: 'n1', volumes: [{ name: 'v', emptyDir: {} }] } });
  h.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: pod });
  const status = (): Pod['status'] | undefined => {
    const got = h.kube.handle({ verb: 'GET', path: '/api/v1/namespaces/default/pods/web' });
    return got.ok ? (got.body as Pod).status : undefined;
  };
  await h.until('it runs', () => status()?.phase === 'Running' && b.status('web')?.phase === 'Running');
  await h.advance(60_000);
  const named = b.expectations.ledger().disagreements.filter((d) => d.known === null && d.kind === 'PodStatus');
  expect(named.map(({ came }) => came)).toHaveLength(disagreements);
});
