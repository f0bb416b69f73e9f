/** The actors of the api layer, killed in each of their states; the bystanders are static pods with mirrors. */
import type { KubeVerdict } from '@actorlet/world/src/kube/types.ts';
import { criCall, criClient } from '../../../../src/actors/runtime/client.ts';
import { eventsAddr } from '../../../../src/machines/foundation/messages.ts';
import { createReady, drop } from '../../cluster/clusterPods.ts';
import type { VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const options = { cluster: true };
const NODE = '/api/v1/nodes/n1';
const LEASES = '/apis/coordination.k8s.io/';
const LATE: KubeVerdict = { delayMs: 2_000 };
const NONE: KubeVerdict = { delayMs: 0 };

/** Requests that match are treated so until {@link heal}. */
const treat = (h: VirtualNode, verdict: KubeVerdict, match: RegExp): void => {
  h.kube.trouble.verdict = (r) => (match.test(`${r.verb} ${r.path}${r.query?.watch === 'true' ? ' watch' : ''}`) ? verdict : NONE);
};
const away = (h: VirtualNode): void => {
  h.kube.trouble.down = true;
  h.kube.cutWatches('truncate');
};
const refuse = (status: number): KubeVerdict => ({ delayMs: 0, refuse: { status } });
const BUSY: KubeVerdict = { delayMs: 0, refuse: { status: 429, retryAfterMs: 3_000 } };
const lease = (h: VirtualNode) => h.kube.handle({ verb: 'GET', path: `${LEASES}v1/namespaces/kube-node-lease/leases/n1` });
const mirrored = (h: VirtualNode): boolean =>
  h.kube.store.list('pods').filter((p) => (p.status as { phase?: string } | undefined)?.phase === 'Running').length === 2;
/** In the end the cluster has it all: the node, its lease, both mirrors with their statuses. */
const whole = (h: VirtualNode): boolean => mirrored(h) && lease(h).ok && h.kube.handle({ verb: 'GET', path: NODE }).ok;
const begin = (h: VirtualNode) => h.until('both mirrors are there', () => whole(h));
/** Kills an actor so that it begins anew, with this in its way. */
const anew = (path: string, hinder: (h: VirtualNode) => void) => async (h: VirtualNode) => {
  await begin(h);
  hinder(h);
  h.kill(path);
};

const LINK = 'node/api/link';
const STATUS = 'node/api/nodeStatus';
const LEASE = 'node/api/lease';
const EVENTS = 'node/api/events';
const tell = (h: VirtualNode) =>
  h.tree.registry.send(eventsAddr, { type: 'event.record', event: { type: 'Normal', reason: 'Told', message: 'by a test' } });
const SOURCE = 'node/pods/sources/api';
const writer = (h: VirtualNode): string => `node/api/podWriters/${h.uid('web')}`;

export const CLUSTER_CASES = sharing({ options, rests: whole }, [
  { covers: 'apiLink connecting', path: LINK, arrange: anew(LINK, (h) => treat(h, LATE, /version/)) },
  { covers: 'apiLink reachable.trusted', path: LINK, arrange: begin },
  { covers: 'status', story: 'status in a cluster', path: 'node/pods/status', arrange: begin },
  {
    covers: 'apiLink reachable.doubted',
    path: LINK,
    arrange: async (h) => {
      await begin(h);
      treat(h, LATE, /version/);
      h.tree.registry.send({ path: LINK }, { type: 'api.check' });
    },
  },
  { covers: 'apiLink lost.waiting', path: LINK, arrange: async (h) => begin(h).then(() => away(h)) },
  {
    covers: 'apiLink lost.asking',
    path: LINK,
    arrange: async (h) => {
      await begin(h);
      away(h);
      treat(h, LATE, /version/);
    },
  },

  { covers: 'nodeStatus registering', path: STATUS, arrange: anew(STATUS, (h) => treat(h, LATE, /GET .*nodes/)) },
  { covers: 'nodeStatus unregistered', path: STATUS, arrange: anew(STATUS, (h) => treat(h, refuse(500), /nodes/)) },
  {
    covers: 'nodeStatus reporting',
    path: STATUS,
    arrange: async (h) => {
      await begin(h);
      treat(h, LATE, /nodes/);
    },
  },
  { covers: 'nodeStatus resting', path: STATUS, arrange: begin },
  { covers: 'nodeStatus toldToWait', path: STATUS, arrange: async (h) => begin(h).then(() => treat(h, BUSY, /nodes/)) },
  { covers: 'nodeStatus unreported', path: STATUS, arrange: async (h) => begin(h).then(() => treat(h, refuse(500), /nodes/)) },

  { covers: 'lease acquiring', path: LEASE, arrange: anew(LEASE, (h) => treat(h, LATE, /leases/)) },
  { covers: 'lease missing', path: LEASE, arrange: anew(LEASE, (h) => treat(h, refuse(500), /leases/)) },
  { covers: 'lease holding', path: LEASE, arrange: begin },
  { covers: 'lease renewing', path: LEASE, arrange: async (h) => begin(h).then(() => treat(h, LATE, /leases/)) },
  { covers: 'lease toldToWait', path: LEASE, arrange: async (h) => begin(h).then(() => treat(h, BUSY, /leases/)) },

  {
    covers: 'listWatch listing',
    path: SOURCE,
    arrange: anew(SOURCE, (h) => {
      h.kube.initialEvents = 'refuse';
      treat(h, LATE, /GET .*pods$/);
    }),
  },
  {
    covers: 'listWatch watching.streaming initial events',
    path: SOURCE,
    arrange: anew(SOURCE, (h) => {
      h.kube.trouble.line = () => 'silence';
    }),
  },
  { covers: 'listWatch watching.opening', path: SOURCE, arrange: anew(SOURCE, (h) => treat(h, LATE, /pods watch/)) },
  { covers: 'listWatch watching.listening', path: SOURCE, arrange: begin },
  {
    covers: 'listWatch watching.quiet',
    path: SOURCE,
    arrange: anew(SOURCE, (h) => {
      // Initial events are something said: of a server that sends none, a list comes first.
      Object.assign(h.kube, { progress: false, initialEvents: 'refuse' });
    }),
  },
  { covers: 'listWatch backingOff', path: SOURCE, arrange: async (h) => begin(h).then(() => away(h)) },

  { covers: 'eventWriter idle', path: EVENTS, arrange: begin },
  {
    covers: 'eventWriter sending',
    path: EVENTS,
    arrange: async (h) => {
      await begin(h);
      treat(h, LATE, /events/);
      tell(h);
    },
  },
  {
    covers: 'eventWriter yielding',
    path: EVENTS,
    options: { ...options, before: ({ faults }: VirtualNode) => Object.assign(faults.latencyMs, { StopContainer: 3_000 }) },
    arrange: async (h) => {
      await begin(h);
      // More than have a place; of pods that nobody knows.
      for (let i = 0; i < 20; i++) {
        void criClient(h.tree.registry).act(`nobody${i}`, null, [criCall('StopContainer', { containerId: `none${i}`, timeout: 1 })]);
      }
      tell(h);
      await h.until('it waits', () => h.state(EVENTS) === 'yielding');
    },
  },
  {
    covers: 'eventWriter waiting',
    path: EVENTS,
    arrange: async (h) => {
      await begin(h);
      treat(h, refuse(500), /events/);
      tell(h);
    },
  },

  { covers: 'podWriter resting', path: writer, arrange: begin },
  {
    covers: 'podWriter waiting',
    path: writer,
    options: { cluster: true, before: (h) => treat(h, refuse(500), /nodes/) },
  },
  {
    covers: 'podWriter acting',
    path: writer,
    arrange: async (h) => {
      await begin(h);
      treat(h, LATE, /POST .*pods/);
      h.kube.handle({ verb: 'DELETE', path: '/api/v1/namespaces/default/pods/web-n1', query: { gracePeriodSeconds: '0' } });
    },
  },
  {
    covers: 'podWriter backingOff',
    path: writer,
    arrange: async (h) => {
      await begin(h);
      treat(h, refuse(500), /POST .*pods/);
      h.kube.handle({ verb: 'DELETE', path: '/api/v1/namespaces/default/pods/web-n1', query: { gracePeriodSeconds: '0' } });
    },
  },
  {
    covers: 'podWriter holding',
    path: (h) => `node/api/podWriters/${h.uid('brief')}`,
    arrange: async (h) => {
      await begin(h);
      const container = { volumeMounts: [{ name: 'v', mountPath: '/v' }] };
      await createReady(h, 'brief-n1', { container, spec: { volumes: [{ name: 'v', emptyDir: {} }] } });
      // Nothing of it runs any more, and its last word has to wait.
      h.fs.failing = (_, path) => (path.includes('/volumes/') ? 'EBUSY' : undefined);
      drop(h, 'pods/brief-n1', 2);
    },
  },
]);
