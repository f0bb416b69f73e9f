/** The configuration of the daemon of a node. Pure. */
import type { FeatureGates, NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { defaultNodeConfig } from '@actorlet/kubelet/machines/config/defaults.ts';
import { FLEET_LABEL, type GroupSpec } from '../file.ts';
import type { FleetWorld } from '../types.ts';

interface ConfigOptions {
  name: string;
  labels?: Readonly<Record<string, string>>;
  providerID?: string;
  fleet: string;
  group: GroupSpec;
  world: Pick<FleetWorld, 'kubeconfig' | 'certificates' | 'serving' | 'socketPath'>;
  gates: FeatureGates;
  behaviour: { heartbeatMs: number | null };
}

export const ROOT_DIR = '/var/lib/kubelet';
export const LOGS_DIR = '/var/log/pods';
export const PKI = { cert: '/etc/kubernetes/pki/kubelet.crt', key: '/etc/kubernetes/pki/kubelet.key', ca: '/etc/kubernetes/pki/ca.crt' };
/** On the disk of a node with a certificate of its own. */
const KUBECONFIG = '/etc/kubernetes/kubelet.conf';
/** What most clusters have. Nothing asks it. */
const CLUSTER_DNS = '10.96.0.10';

export function configOf({ name, labels, providerID = '', fleet, group, world, gates, behaviour }: ConfigOptions): NodeConfig {
  const config = defaultNodeConfig({
    flags: {
      rootDir: ROOT_DIR,
      hostnameOverride: name,
      kubeconfig: world.kubeconfig ?? KUBECONFIG,
      nodeLabels: { ...group.labels, ...labels, [FLEET_LABEL]: fleet },
      registerSchedulable: !group.unschedulable,
      faultInjection: true,
    },
    config: {
      podLogsDir: LOGS_DIR,
      resolvConf: '',
      // Without one, each pod of a node would get a warning about it, and the API server an event.
      clusterDNS: [CLUSTER_DNS],
      readOnlyPort: 0,
      healthzPort: 0,
      maxPods: group.pods,
      providerID,
      ...reservedOf(group),
      rotateCertificates: world.certificates !== undefined,
      registerWithTaints: [...group.taints],
      cgroupsPerQOS: false,
      evictionHard: {},
      ...(behaviour.heartbeatMs === null ? {} : { nodeStatusReportFrequency: behaviour.heartbeatMs }),
      enableServer: world.serving !== null,
      ...(world.serving === null
        ? {}
        : {
            port: world.serving.port,
            tlsCertFile: PKI.cert,
            tlsPrivateKeyFile: PKI.key,
            authentication: {
              x509: { clientCAFile: PKI.ca },
              webhook: { enabled: true, cacheTTL: 120_000 },
              anonymous: { enabled: false },
            },
          }),
    },
  });
  return { ...config, gates, flags: { ...config.flags, adminSocket: world.socketPath } };
}

/** As `systemReserved`, so that the kubelet's own arithmetic comes to what is allocatable. */
function reservedOf({ reserved, storageBytes }: GroupSpec) {
  const { cpuMilli, memoryBytes, storageBytes: onDisk } = reserved;
  return {
    systemReserved: { cpu: `${cpuMilli}m`, memory: String(memoryBytes), ...(onDisk === 0 ? {} : { 'ephemeral-storage': String(onDisk) }) },
    localStorageCapacityIsolation: storageBytes !== 0,
  };
}
