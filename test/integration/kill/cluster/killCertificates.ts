/** The actors of the node's certificates, killed in each of their states; in the end there is a certificate all the same. */
import type { KubeVerdict } from '@actorlet/world/src/kube/types.ts';
import { approve, deny, isPending, requests, virtualCertificates } from '../../cluster/virtualCertificates.ts';
import type { VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const CLIENT = 'node/api/clientCertificate';
const SERVING = 'node/api/servingCertificate';
const KUBECONFIG = { path: '/etc/kubelet.conf', text: 'written by the node\n' };

const client = {
  cluster: true,
  certificates: virtualCertificates({ client: { bootstrap: true, kubeconfig: KUBECONFIG } }),
  flags: { bootstrapKubeconfig: '/bootstrap.conf' },
};
const NONE: KubeVerdict = { delayMs: 0 };
const treat = (h: VirtualNode, verdict: KubeVerdict, match: RegExp): void => {
  h.kube.trouble.verdict = (r) => (match.test(`${r.verb} ${r.path}${r.query?.watch === 'true' ? ' watch' : ''}`) ? verdict : NONE);
};
/** As a cluster that approves whatever waits. */
const approved = (path: string) => (h: VirtualNode) => {
  for (const csr of requests(h).filter(isPending)) approve(h, csr);
  return h.state(path) === 'resting';
};
const waits = (h: VirtualNode) => h.until('it waits', () => h.state(CLIENT) === 'asking.waiting.watching');
const hold = (op: string, file: RegExp) => (h: VirtualNode) => {
  h.fs.delayMs = (o, path) => (o === op && file.test(path) ? 2_000 : 0);
};
/** Begins anew with this in its way. */
const anew = (hinder: (h: VirtualNode) => void) => async (h: VirtualNode) => {
  await waits(h);
  hinder(h);
  h.kill(CLIENT);
};

export const CERTIFICATE_CASES = sharing({ path: CLIENT, options: client, rests: approved(CLIENT), restsWithinMs: 300_000 }, [
  {
    covers: 'certificate unmanaged',
    options: { ...client, certificates: virtualCertificates() },
    rests: (h) => h.state(CLIENT) === 'unmanaged',
  },
  { covers: 'certificate loading', arrange: anew(hold('readFile', /kubelet-client-current/)) },
  { covers: 'certificate asking.keying', arrange: anew(hold('readFile', /kubelet-client\.key/)) },
  { covers: 'certificate asking.requesting', arrange: anew((h) => treat(h, { delayMs: 2_000 }, /^POST .*signingrequests$/)) },
  { covers: 'certificate asking.waiting.looking', arrange: anew((h) => treat(h, { delayMs: 2_000 }, /^GET .*signingrequests$/)) },
  { covers: 'certificate asking.waiting.watching', arrange: waits },
  {
    covers: 'certificate asking.waiting.pausing',
    arrange: anew((h) => treat(h, { delayMs: 0, refuse: { status: 500 } }, /signingrequests watch/)),
  },
  {
    covers: 'certificate storing',
    arrange: async (h) => {
      await waits(h);
      hold('writeFile', /kubelet-client-\d/)(h);
      approved(CLIENT)(h);
    },
  },
  {
    covers: 'certificate backingOff',
    arrange: async (h) => {
      await waits(h);
      for (const csr of requests(h)) deny(h, csr);
    },
    restsWithinMs: 3_600_000,
  },
  {
    covers: 'certificate resting',
    arrange: async (h) => h.until('it has one', () => approved(CLIENT)(h)),
  },
  {
    covers: 'certificate unaddressed',
    path: SERVING,
    options: {
      cluster: true,
      servers: true,
      certificates: virtualCertificates(),
      config: { serverTLSBootstrap: true, tlsCertFile: '', tlsPrivateKeyFile: '' },
      before: (h) => treat(h, { delayMs: 0, refuse: { status: 500 } }, /nodes/),
    },
    rests: approved(SERVING),
  },
]);
