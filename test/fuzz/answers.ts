/** What others answer: objects of the API, the runtime, the kernel. */
import fc from 'fast-check';
import { csiNodeUpdate, nodeMetadataPatch } from '../../src/machines/api/csiNodeMachine.ts';
import { nodeEvents } from '../../src/machines/api/node/nodeEvents.ts';
import { type NodeStatus, nodeStatus, nodeStatusPatch, sameNodeStatus } from '../../src/machines/api/node/nodeObject.ts';
import { isConfigMap } from '../../src/machines/kube/objects.ts';
import { decodeWatchLine, isKubeObject, statusFailure } from '../../src/machines/kube/request.ts';
import { podFromListed } from '../../src/machines/pod/runtime/killOrder.ts';
import { groupByPod } from '../../src/machines/pod/runtime/listed.ts';
import { toContainer, toSandbox } from '../../src/machines/pod/runtime/runtimeStatus.ts';
import { toServiceEntry } from '../../src/machines/pod/serviceEnv.ts';
import { EMPTY_OOM_LEDGER, readOoms } from '../../src/machines/runtime/oom.ts';
import { countRunning, diffListing } from '../../src/machines/runtime/pleg/pleg.ts';
import { decodeObject } from '../../src/machines/services/objects/decode.ts';
import { boundClaim, claimedVolume } from '../../src/machines/services/volumes/claims.ts';
import type { CriContainer, CriContainerStatus, PodSandbox, PodSandboxStatus } from '../../src/machines/wire/cri.ts';
import { pullCredentials } from '../machines/pullCredentials.ts';
import {
  CLAIM,
  CONFIG_MAP,
  CONTAINER_STATUS,
  LISTED_CONTAINER,
  LISTED_SANDBOX,
  NODE,
  SANDBOX_STATUS,
  SECRET,
  SERVICE,
  VOLUME,
} from './documents.ts';
import { changed, changedInType, changedOnWire, changedText, hostileText, type Json } from './hostile.ts';
import { must, type Target } from './target.ts';

const OURS = {
  drivers: [{ name: 'd', nodeId: 'id', topology: { zone: 'a' }, volumesMax: 5, socket: '/s', endpoint: '/s', version: '1' }],
  gone: new Set(['old']),
};

function object(doc: Json): void {
  statusFailure(doc, 500);
  const line = decodeWatchLine(JSON.stringify({ type: 'MODIFIED', object: doc }));
  if (!line.ok || line.event === null || !isKubeObject(doc)) return;
  const { object: found } = line.event;
  toServiceEntry(found);
  for (const kind of ['secret', 'configMap'] as const) {
    const decoded = decodeObject({ kind, namespace: 'default', name: 'n' }, found);
    if (!decoded.ok || isConfigMap(decoded.value)) continue;
    pullCredentials([{ namespace: 'default', name: 'n', secret: decoded.value }], 'registry.example.org/team/web:v1');
  }
  const claim = boundClaim(doc);
  const use = {
    claim: claim.ok ? claim.value : { uid: 'u', volume: 'n' },
    name: 'v',
    node: { name: 'n1', labels: {} },
    readOnly: false,
    block: false,
  };
  claimedVolume(doc, use);
}

/** The server holds it to its schema, other writers put into it what they like. */
function nodeObject(doc: Json): void {
  const { status, metadata } = doc as unknown as { status?: NodeStatus; metadata?: object };
  if (status === undefined || metadata === undefined) return;
  const next = nodeStatus(status, {
    ...{ addresses: ['192.0.2.1'], hostname: 'n1', capacity: { cpu: '4' }, allocatable: { cpu: '4' }, nodeInfo: {}, port: 1, images: [] },
    ...{ runtimeHandlers: [], cri: undefined, listing: undefined, shuttingDown: false, nowMonoMs: 1, nowWallMs: 1 },
  });
  sameNodeStatus(status, next);
  nodeStatusPatch(status, next);
  nodeEvents('n1', status, next);
}

function runtime([status, box, listed, container]: readonly Json[]): void {
  toContainer(status as unknown as CriContainerStatus);
  toSandbox(box as unknown as PodSandboxStatus);
  const pods = groupByPod([listed] as unknown as PodSandbox[], [container] as unknown as CriContainer[]);
  const diff = diffListing(new Map(), pods);
  must(diff !== undefined, 'a listing has a difference');
  countRunning(pods);
  for (const pod of pods.values()) podFromListed(pod);
}

const OOM = [
  '6,10,100,-;web invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0',
  '6,11,101,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=web,pid=7,uid=0',
  '3,12,102,-;Memory cgroup out of memory: Killed process 7 (web) total-vm:1kB',
];
const records = fc.array(changedText(fc.constantFrom(...OOM)), { maxLength: 6 });

export const answerTargets: readonly Target[] = [
  {
    name: 'apiObject',
    share: 10,
    property: fc.property(fc.oneof(...[SECRET, CONFIG_MAP, CLAIM, VOLUME, SERVICE, NODE].map(changed)), object),
  },
  { name: 'node object', share: 3, property: fc.property(changedInType(NODE), nodeObject) },
  {
    name: 'CSINode',
    share: 2,
    property: fc.property(
      changed({
        metadata: { name: 'n', annotations: { 'csi.volume.kubernetes.io/nodeid': '{"d":"id"}' } },
        spec: { drivers: [{ name: 'd', nodeID: 'i', topologyKeys: ['a'] }] },
      }),
      (doc) => {
        if (!isKubeObject(doc)) return;
        csiNodeUpdate(doc as unknown as Record<string, unknown>, { node: { name: 'n1', uid: 'u' }, ...OURS });
        nodeMetadataPatch((doc as unknown as { metadata: object }).metadata, OURS);
      },
    ),
  },
  {
    name: 'watch line',
    share: 2,
    property: fc.property(
      changedText(fc.constant(JSON.stringify({ type: 'ADDED', object: SECRET }))),
      (line) => void decodeWatchLine(line),
    ),
  },
  {
    name: 'runtime',
    share: 10,
    property: fc.property(fc.tuple(...[CONTAINER_STATUS, SANDBOX_STATUS, LISTED_SANDBOX, LISTED_CONTAINER].map(changedOnWire)), runtime),
  },
  { name: 'kernel log', share: 2, property: fc.property(records, (list) => void readOoms(EMPTY_OOM_LEDGER, { records: list, seq: 1 })) },
  {
    name: 'pull secret',
    share: 2,
    property: fc.property(
      changed(JSON.parse('{"auths":{"https://r.example/v1/":{"auth":"dTpw"}}}') as Json),
      hostileText,
      (config, image) => {
        const data = { '.dockerconfigjson': new TextEncoder().encode(JSON.stringify(config)) };
        pullCredentials([{ namespace: 'd', name: 's', secret: { uid: 'u', type: 'kubernetes.io/dockerconfigjson', data } }], image);
      },
    ),
  },
];
