/** Seconds that certificates have left which no actor of the node renews: given files, and the pair that the boot makes. */
import { X509Certificate } from 'node:crypto';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import type { Clock, Metrics } from '../../../ports/ports.ts';
import { CREDENTIAL_BYTES_MAX, type Material } from '../kube/kubeconfig.ts';

/** Read at each scrape: a file of a few kB. Under the name that the certificate's own actor uses where there is one. */
export function certificateTtl(o: {
  metrics: Metrics;
  clock: Pick<Clock, 'wallMs'>;
  side: 'client' | 'server';
  certificate: Material;
}): void {
  const { metrics, clock, side, certificate } = o;
  const left = metrics.gauge(
    `kubelet_certificate_manager_${side}_ttl_seconds`,
    `Seconds until the kubelet's ${side} certificate ends; negative after its end, +Inf without one.`,
  );
  metrics.onCollect(() => {
    const notAfterMs = endOf(certificate);
    left.set(notAfterMs === undefined ? Number.POSITIVE_INFINITY : Math.trunc((notAfterMs - clock.wallMs()) / 1000));
  }, `certificate.${side}`);
}

function endOf(certificate: Material): number | undefined {
  try {
    return new X509Certificate(
      'data' in certificate ? certificate.data : readRegularSync(certificate.file, { bytesMax: CREDENTIAL_BYTES_MAX }),
    ).validToDate.getTime();
  } catch {
    // Not there, or not a certificate: who serves with it says what is wrong.
    return undefined;
  }
}
