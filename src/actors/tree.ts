import { agentGroupsSpec } from './allocation/cgroups/agentGroups.ts';
import { cgroupReaperSpec } from './allocation/cgroups/cgroupReaper.ts';
import { cgroupsSpec } from './allocation/cgroups/cgroups.ts';
import { coordinatorSpec } from './allocation/coordinator/coordinator.ts';
import { certificateSpec } from './api/certificates/certificate.ts';
import { csiNodeSpec } from './api/csiNode.ts';
import { eventWriterSpec } from './api/events.ts';
import { leaseSpec } from './api/lease.ts';
import { apiLinkSpec } from './api/link.ts';
import { nodeStatusSpec } from './api/nodeStatus.ts';
import { nodeWatchSpec } from './api/nodeWatch.ts';
import { podWritersSpec } from './api/podWriters.ts';
import { adminServerSpec } from './edge/admin.ts';
import { healthzServerSpec } from './edge/healthz.ts';
import { httpsServerSpec } from './edge/https/https.ts';
import { podResourcesSpec } from './edge/podResources.ts';
import { podsApiSpec } from './edge/podsApi.ts';
import { readOnlyServerSpec } from './edge/readOnly.ts';
import { checkpointSpec } from './foundation/checkpoint.ts';
import { telemetrySpec } from './foundation/telemetry.ts';
import { podManagerSpec } from './pods/manager/podManager.ts';
import { configSpec } from './pods/podConfig/podConfig.ts';
import { apiSourceSpec } from './pods/sources/api.ts';
import { fileSourceSpec } from './pods/sources/file.ts';
import { httpSourceSpec } from './pods/sources/http.ts';
import { statusSpec } from './pods/status/status.ts';
import { workersSpec } from './pods/workers/workers.ts';
import { containerGcSpec } from './reclaim/containerGc.ts';
import { evictionSpec } from './reclaim/eviction/eviction.ts';
import { housekeepingSpec } from './reclaim/housekeeping.ts';
import { imageGcSpec } from './reclaim/imageGc/imageGc.ts';
import { logRotationSpec } from './reclaim/logRotation.ts';
import { nodeShutdownSpec } from './reclaim/nodeShutdown/nodeShutdown.ts';
import { criLinkSpec } from './runtime/cri/cri.ts';
import { imagePullerSpec } from './runtime/imagePuller/imagePuller.ts';
import { oomWatcherSpec } from './runtime/oomWatcher.ts';
import { plegSpec } from './runtime/pleg/pleg.ts';
import { certificateRequestsSpec } from './services/certificates/certificateRequests.ts';
import { podCertificatesSpec } from './services/certificates/podCertificates.ts';
import { trustBundlesSpec } from './services/certificates/trustBundles.ts';
import { iptablesSpec } from './services/iptables/iptables.ts';
import { objectsSpec } from './services/objects/objects.ts';
import { serviceListerSpec } from './services/objects/serviceLister.ts';
import { tokensSpec } from './services/objects/tokens.ts';
import { pluginsSpec } from './services/plugins/plugins.ts';
import { observedProbesSpec } from './services/probes/observed.ts';
import { probesSpec } from './services/probes/probes.ts';
import { volumesSpec } from './services/volumes/volumes.ts';
import type { AnySpec, SupervisorSpec } from './supervision/types.ts';
import type { ApiOptions, TreeOptions } from './treeOptions.ts';

/** Rest of a parked api layer. */
const API_PARK_MS = 30_000;

/** Burst and sustained limits shrink towards the root, since they multiply. */
const LAYER = {
  backoff: { maxMs: 5_000, jitter: 0.1 },
} as const;

export function nodeTree(o: TreeOptions): SupervisorSpec {
  return {
    ...LAYER,
    type: 'supervisor',
    id: 'node',
    strategy: 'rest_for_one',
    intensity: { max: 3, periodMs: 300_000 },
    shutdownMs: 20_000,
    escalate: 'parent',
    children: [
      layer('foundation', [
        checkpointSpec(o.checkpoint),
        telemetrySpec({ cluster: o.api !== null }),
        ...o.extensions.flatMap(({ actors }) => actors?.foundation ?? []),
      ]),
      // A debugging aid never brings the node down: over its limit it is parked and tried again.
      { ...layer('edge', edge(o)), escalate: { parkMs: 30_000 }, intensity: { max: 20, periodMs: 60_000 } },
      layer('runtime', [criLinkSpec(o.cri), imagePullerSpec(o.images), plegSpec(o.pleg), ...(o.oomWatcher ? [oomWatcherSpec()] : [])]),
      // Nothing to allocate, no layer: a node without any of it keeps the tree it had.
      ...(allocation(o).length === 0 ? [] : [layer('allocation', allocation(o))]),
      ...(o.api === null ? [] : [apiLayer(o.api, o.plugins !== null)]),
      layer('services', [
        ...(o.api === null ? [] : [serviceListerSpec(o.api.source), objectsSpec(o.api.objects), tokensSpec(o.api.tokens)]),
        ...(o.api === null ? [] : certificatesOfPods(o.api, o.projections)),
        ...(o.plugins === null ? [] : [pluginsSpec(o.plugins)]),
        volumesSpec(o.volumes),
        o.observes ? observedProbesSpec(o.probes) : probesSpec(o.probes),
        ...(o.iptables ? [iptablesSpec()] : []),
      ]),
      {
        ...layer('pods', [
          statusSpec({ cluster: o.api !== null, deaths: o.extensions.some(({ deaths }) => deaths === true) }),
          podManagerSpec(o.podManager),
          workersSpec(o.workers),
          configSpec(o.config),
          layer('sources', sources(o)),
        ]),
        strategy: 'rest_for_one',
        intensity: { max: 3, periodMs: 60_000 },
      },
      layer('reclaim', [
        containerGcSpec(o.containerGc),
        imageGcSpec(o.imageGc),
        ...(o.logRotation === null ? [] : [logRotationSpec(o.logRotation)]),
        housekeepingSpec(o.housekeeping),
        ...(o.eviction === null ? [] : [evictionSpec(o.eviction)]),
        ...(o.nodeShutdown === null ? [] : [nodeShutdownSpec(o.nodeShutdown)]),
        ...o.extensions.flatMap(({ actors }) => actors?.reclaim ?? []),
      ]),
    ],
  };
}

function layer(id: string, children: readonly AnySpec[]): SupervisorSpec {
  return { ...LAYER, type: 'supervisor', id, strategy: 'one_for_one', shutdownMs: 10_000, escalate: 'parent', children };
}

/**
 * Resources of the node that pods and containers get, in start order: groups, then providers and their coordinator. Each child
 * is there where its options are not null (`treeOptions.ts`), and is ready when it has read what it allocated before: the layers
 * after it, the pod manager and workers above all, ask it from their first moment on.
 */
function allocation(o: TreeOptions): AnySpec[] {
  return [
    ...(o.cgroups === null ? [] : [cgroupsSpec(o.cgroups), cgroupReaperSpec(o.cgroups)]),
    ...(o.agentGroups === null ? [] : [agentGroupsSpec(o.agentGroups)]),
    ...o.providers.map(({ spec }) => spec),
    ...(o.providers.length === 0 && o.topology === null
      ? []
      : [
          coordinatorSpec(
            o.providers.map(({ provider }) => provider),
            o.topology,
          ),
        ]),
  ];
}

/** A cluster that misbehaves never brings the node down: over its limit the layer is parked and tried again. */
function apiLayer(o: ApiOptions, plugins: boolean): SupervisorSpec {
  const children = [
    apiLinkSpec(),
    // First of those that ask: after a crash the cluster waits for the lease alone.
    leaseSpec(o.lease),
    eventWriterSpec({ nodeName: o.source.nodeName }),
    nodeWatchSpec(o.source),
    nodeStatusSpec(o.nodeStatus),
    ...(plugins ? [csiNodeSpec({ nodeName: o.source.nodeName })] : []),
    ...o.certificates.map(certificateSpec),
    podWritersSpec(o.podWriters),
  ];
  return { ...layer('api', children), escalate: { parkMs: API_PARK_MS }, intensity: { max: 20, periodMs: 60_000 } };
}

/** What projected volumes are made of beside objects and tokens. */
function certificatesOfPods({ source, tokens: { podsMax } }: ApiOptions, of: TreeOptions['projections']): AnySpec[] {
  const { nodeName } = source;
  return [
    ...(of.trustBundles ? [trustBundlesSpec(source)] : []),
    ...(of.podCertificates ? [podCertificatesSpec({ nodeName, podsMax }), certificateRequestsSpec(source)] : []),
  ];
}

function edge(o: TreeOptions): AnySpec[] {
  return [
    ...(o.admin === null ? [] : [adminServerSpec(o.admin)]),
    ...(o.healthz === null ? [] : [healthzServerSpec(o.healthz)]),
    ...(o.readOnly === null ? [] : [readOnlyServerSpec(o.readOnly)]),
    ...(o.https === null ? [] : [httpsServerSpec(o.https)]),
    ...(o.podResources === null ? [] : [podResourcesSpec(o.podResources)]),
    ...(o.podsApi === null ? [] : [podsApiSpec(o.podsApi)]),
  ];
}

function sources(o: TreeOptions): AnySpec[] {
  return [
    ...(o.fileSource === null ? [] : [fileSourceSpec(o.fileSource)]),
    ...(o.httpSource === null ? [] : [httpSourceSpec(o.httpSource)]),
    ...(o.api === null ? [] : [apiSourceSpec(o.api.source)]),
  ];
}
