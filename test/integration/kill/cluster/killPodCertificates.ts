/** Who gets certificates and trust anchors for pods, killed in each state of each of its charts. */
import type { KubeVerdict } from '@actorlet/world/src/kube/types.ts';
import { isReady, post } from '../../cluster/clusterPods.ts';
import { pod, type VirtualNode } from '../../virtualNode.ts';
import { anchor, bundleVolume, certificateVolume, refuse, sign, withCertificates } from '../../volumes/podSigner.ts';
import type { KillCase } from '../killing.ts';

const CERTIFICATES = 'node/services/podCertificates';
const NONE: KubeVerdict = { delayMs: 0 };

function bring(h: VirtualNode): void {
  post(h, 'serviceaccounts', { metadata: { name: 'default' } });
  anchor(h, 'ca', { texts: ['one'] });
  const volumes = [certificateVolume(), bundleVolume({ name: 'ca' })];
  const volumeMounts = ['identity', 'anchors'].map((name) => ({ name, mountPath: `/${name}` }));
  post(h, 'pods', pod('subject', { container: { volumeMounts }, spec: { nodeName: 'n1', serviceAccountName: 'default', volumes } }));
}
const ready = (h: VirtualNode) => isReady(h, 'subject');
const chart = (h: VirtualNode): string => h.charts(CERTIFICATES, 'certificate#')[0] ?? '';
/** A signer that answers at once, from here on. */
function signing(h: VirtualNode, answer: (h: VirtualNode) => void = sign): void {
  const tick = (): void => {
    answer(h);
    h.time.clock.setTimeout(tick, 500);
  };
  tick();
}
const requests = (h: VirtualNode, verdict: KubeVerdict): void => {
  h.kube.trouble.verdict = (r) => (r.verb === 'POST' && r.path.endsWith('/podcertificaterequests') ? verdict : NONE);
};

function certificate(state: string, more: Partial<KillCase> = {}): KillCase {
  return {
    covers: `podCertificate ${state}`,
    path: CERTIFICATES,
    options: withCertificates(),
    arrange: async (h) => {
      bring(h);
      await h.until('the subject is ready', () => {
        sign(h);
        return ready(h);
      });
    },
    at: (h) => chart(h) === state,
    release: (h) => signing(h),
    rests: ready,
    restsWithinMs: 600_000,
    ...more,
  };
}

export const POD_CERTIFICATE_CASES: KillCase[] = [
  certificate('requesting', {
    arrange: async (h) => {
      requests(h, { delayMs: 3_000 });
      bring(h);
    },
  }),
  certificate('requestFailed', {
    arrange: async (h) => {
      requests(h, { delayMs: 0, refuse: { status: 500 } });
      bring(h);
    },
  }),
  certificate('waiting', { arrange: async (h) => bring(h) }),
  certificate('issued.fresh'),
  // The next one asks anew, and is refused again.
  certificate('refused', {
    arrange: async (h) => {
      bring(h);
      signing(h, (of) => refuse(of, 'Denied'));
    },
    release: () => undefined,
    rests: (h) => chart(h) === 'refused',
  }),
  certificate('issued.fresh', { covers: 'podCertificates holding' }),
  {
    ...certificate('issued.fresh'),
    covers: 'podCertificates empty',
    arrange: () => Promise.resolve(),
    at: (h) => h.state(CERTIFICATES) === 'empty',
    release: (h) => {
      bring(h);
      signing(h);
    },
  },
];
