/** Seconds left of certificates that no actor renews. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { certificateTtl } from '../../../src/boot/dependencies/certificates/ttl.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import { selfSignedCertificate } from '../../../src/boot/process/selfSigned.ts';

const dir = mkdtempSync(join(tmpdir(), 'actorlet-ttl-'));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it('are those of the file as it is at each scrape, +Inf where there is none', async () => {
  const [metrics, nowMs] = [createMetrics(), Date.now()];
  const file = join(dir, 'tls.crt');
  certificateTtl({ metrics, clock: { wallMs: () => nowMs }, side: 'server', certificate: { file } });
  const left = async () => /^kubelet_certificate_manager_server_ttl_seconds (.*)$/m.exec(await metrics.render())?.[1];
  expect(await left()).toBe('+Inf');
  writeFileSync(file, (await selfSignedCertificate('n1', nowMs)).cert);
  const days = Number(await left()) / 86_400;
  expect(days).toBeGreaterThan(360);
  expect(days).toBeLessThan(370);
  writeFileSync(file, 'nothing');
  expect(await left()).toBe('+Inf');
});
