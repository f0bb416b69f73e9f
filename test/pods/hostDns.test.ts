/** The resolver configuration of the host, as each new sandbox gets it. */
import { expect, it } from 'vitest';
import { newSandbox } from '../../src/actors/pods/workers/sandbox/sandbox.ts';
import type { HostFs } from '../../src/ports/ports.ts';
import { FACTS, pod } from '../machines/pods/fixtures.ts';
import { collectingLogger, fakePorts, type LogLine } from '../supervision/fakePorts.ts';

const { signal } = new AbortController();

function bench(hostDns = FACTS.hostDns) {
  const host: { file: string | null } = { file: null };
  const lines: LogLine[] = [];
  const readFile: HostFs['readFile'] = async () => {
    if (host.file === null) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    return new TextEncoder().encode(host.file);
  };
  const ports = fakePorts({ fs: { readFile } as HostFs });
  const ctx = { ports, log: collectingLogger(lines), signal, registry: { read: () => undefined } } as unknown as Parameters<
    typeof newSandbox
  >[0];
  const servers = async (resolvConf = '/etc/resolv.conf') => {
    const facts = { ...FACTS, resolvConf, hostDns };
    const made = await newSandbox(ctx, { pod: pod({ dnsPolicy: 'Default' }), attempt: 0, facts }, signal);
    return made.ok ? made.config.dnsConfig?.servers : made.message;
  };
  return { host, lines, servers };
}

it('is read anew: the network may have come after the node', async () => {
  const { host, servers } = bench({ servers: [], searches: [], options: [] });
  for (const address of ['192.0.2.1', '192.0.2.2']) {
    host.file = `nameserver ${address}\n`;
    expect(await servers()).toEqual([address]);
  }
});

it('counts as it was at the start while it cannot be read, which is said', async () => {
  const { host, lines, servers } = bench();
  expect(await servers()).toEqual(['192.0.2.53']);
  host.file = 'nameserver\n';
  expect(await servers()).toEqual(['192.0.2.53']);
  expect(lines.map((l) => l.level)).toEqual(['warn', 'warn']);
});

it('is not read where the configuration names no file', async () => {
  const { host, servers } = bench(null);
  host.file = 'nameserver 192.0.2.1\n';
  expect(await servers('')).toEqual(['127.0.0.1']);
});
