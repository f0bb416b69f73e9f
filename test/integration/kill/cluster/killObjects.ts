/** Who serves objects of the API to pods, killed in each state of each of its charts. */
import type { KubeVerdict } from '@actorlet/world/src/kube/types.ts';
import { isReady, post } from '../../cluster/clusterPods.ts';
import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const OBJECTS = 'node/services/objects';
const TOKENS = 'node/services/tokens';
const NONE: KubeVerdict = { delayMs: 0 };

/** A pod that has a secret in its environment and a token in a volume. */
function bring(h: VirtualNode, o: { immutable?: boolean } = {}): void {
  post(h, 'serviceaccounts', { metadata: { name: 'default' } });
  post(h, 'secrets', { metadata: { name: 's' }, type: 'Opaque', data: { k: btoa('v') }, ...o });
  const subject = pod('subject', {
    container: {
      env: [{ name: 'K', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
      volumeMounts: [{ name: 'access', mountPath: '/access' }],
    },
    spec: {
      nodeName: 'n1',
      serviceAccountName: 'default',
      volumes: [{ name: 'access', projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3607 } }] } }],
    },
  });
  post(h, 'pods', subject);
}
const ready = (h: VirtualNode) => isReady(h, 'subject');
/** State of the chart whose id begins so, '' when there is none. */
const chart = (h: VirtualNode, path: string, id: string): string => h.charts(path, id)[0] ?? '';
const late = (h: VirtualNode, match: RegExp): void => {
  h.kube.trouble.verdict = (r) =>
    match.test(`${r.verb} ${r.path}${r.query?.watch === 'true' ? ' watch' : ''}`) ? { delayMs: 3_000 } : NONE;
};

function object(state: string, o: { strategy?: string; immutable?: boolean; late?: RegExp } = {}): KillCase {
  const { strategy = 'Watch', immutable } = o;
  return {
    covers: `object ${state}`,
    path: OBJECTS,
    options: { cluster: true, config: { configMapAndSecretChangeDetectionStrategy: strategy } },
    arrange: async (h) => {
      if (o.late !== undefined) late(h, o.late);
      bring(h, immutable === undefined ? {} : { immutable });
      if (o.late === undefined) await h.until('the subject is ready', () => ready(h));
    },
    at: (h) => chart(h, OBJECTS, 'secret default/s') === state,
    rests: ready,
  };
}
function token(state: string, more: Partial<KillCase> = {}): KillCase {
  return {
    ...object('watching.following'),
    covers: `token ${state}`,
    path: TOKENS,
    at: (h) => chart(h, TOKENS, 'token#') === state,
    ...more,
  };
}

/** No pod has come that names anything. */
function unnamed(covers: string, path: string): KillCase {
  const [machine, state] = covers.split(' ');
  return {
    ...object('watching.following'),
    covers,
    path,
    arrange: () => Promise.resolve(),
    at: (h) => machine !== undefined && h.state(path) === state,
    release: bring,
  };
}

export const OBJECT_CASES: KillCase[] = [
  object('watching.listing', { late: /GET .*secrets$/ }),
  object('watching.following'),
  object('settled', { immutable: true }),
  object('fetching', { strategy: 'Get', late: /GET .*secrets\/s$/ }),
  object('fresh', { strategy: 'Cache' }),
  object('stale', { strategy: 'Cache' }),
  object('idle', { strategy: 'Get' }),
  {
    ...object('failing', { strategy: 'Get' }),
    arrange: async (h) => {
      h.kube.trouble.verdict = (r) => (/secrets\/s$/.test(r.path) ? { delayMs: 0, refuse: { status: 500 } } : NONE);
      bring(h);
    },
  },
  { ...object('watching.following'), covers: 'objects following' },
  unnamed('objects idle', OBJECTS),
  unnamed('tokens empty', TOKENS),
  token('requesting', {
    arrange: async (h) => {
      late(h, /POST .*token$/);
      bring(h);
    },
  }),
  token('held'),
  token('held', { covers: 'tokens holding' }),
];
