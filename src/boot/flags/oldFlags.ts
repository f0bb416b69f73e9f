/**
 * Flags of older releases and of parts this node does not have (boot-and-node 2.5): accepted, so that an old command line
 * still starts, and announced as having no effect. Where ignoring one would take away a protection it is a start error.
 */
import type { FlagSpec, FlagType } from './types.ts';

type Row = readonly [name: string, type: FlagType, removed: string, shownDefault: string, onlyValue?: string];

const ROWS: readonly Row[] = [
  ['container-runtime', 'string', '1.27', 'remote', 'remote'],
  ['dynamic-config-dir', 'string', '1.24', ''],
  ['docker-endpoint', 'string', '1.24', 'unix:///var/run/docker.sock'],
  ['image-pull-progress-deadline', 'duration', '1.24', '1m0s'],
  ['network-plugin', 'string', '1.24', ''],
  ['network-plugin-mtu', 'int32', '1.24', '0'],
  ['cni-conf-dir', 'string', '1.24', '/etc/cni/net.d'],
  ['cni-bin-dir', 'string', '1.24', '/opt/cni/bin'],
  ['cni-cache-dir', 'string', '1.24', '/var/lib/cni/cache'],
  ['experimental-dockershim-root-directory', 'string', '1.24', '/var/lib/dockershim'],
  ['experimental-dockershim', 'bool', '1.20', 'false'],
  ['redirect-container-streaming', 'bool', '1.22', 'false'],
  ['experimental-bootstrap-kubeconfig', 'string', '1.24', ''],
  ['master-service-namespace', 'string', '1.27', 'default'],
  ['non-masquerade-cidr', 'string', '1.24', '10.0.0.0/8'],
  ['keep-terminated-pod-volumes', 'bool', '1.31', 'false'],
  ['enable-cadvisor-json-endpoints', 'bool', '1.21', 'false'],
  ['really-crash-for-testing', 'bool', '1.22', 'false'],
  ['chaos-chance', 'float', '1.22', '0'],
  ['seccomp-profile-root', 'string', '1.23', '/var/lib/kubelet/seccomp', '/var/lib/kubelet/seccomp'],
  ['experimental-check-node-capabilities-before-mount', 'bool', '1.25', 'false'],
  ['bootstrap-checkpoint-path', 'string', '1.13', ''],
  ['allow-privileged', 'bool', '1.15', 'true', 'true'],
  ['host-network-sources', 'strings', '1.18', '*', '*'],
  ['host-pid-sources', 'strings', '1.18', '*', '*'],
  ['host-ipc-sources', 'strings', '1.18', '*', '*'],
  ['cadvisor-port', 'int32', '1.12', '0'],
  ['containerized', 'bool', '1.16', 'false'],
  ['google-json-key', 'string', '1.16', ''],
  ['windows-service', 'bool', 'Windows', 'false'],
  ['windows-priorityclass', 'string', 'Windows', 'NORMAL_PRIORITY_CLASS'],
  ['experimental-logging-sanitization', 'bool', '1.24', 'false', 'false'],
  ['logtostderr', 'bool', '1.26', 'true'],
  ['alsologtostderr', 'bool', '1.26', 'false'],
  ['stderrthreshold', 'string', '1.26', '2'],
  ['log-dir', 'string', '1.26', ''],
  ['log-file', 'string', '1.26', ''],
  ['log-file-max-size', 'uint64', '1.26', '1800'],
  ['add-dir-header', 'bool', '1.26', 'false'],
  ['skip-headers', 'bool', '1.26', 'false'],
  ['skip-log-headers', 'bool', '1.26', 'false'],
  ['one-output', 'bool', '1.26', 'false'],
  ['log-backtrace-at', 'string', '1.26', ':0'],
  ['azure-container-registry-config', 'string', '1.30', ''],
];

/** Flags of the metrics collector that the reference embeds and this node does not. */
const COLLECTOR: readonly (readonly [name: string, type: FlagType, shownDefault: string])[] = [
  ['docker-root', 'string', '/var/lib/docker'],
  ['housekeeping-interval', 'duration', '10s'],
  ['max-housekeeping-interval', 'duration', '15s'],
  ['application-metrics-count-limit', 'int', '100'],
  ['boot-id-file', 'string', '/proc/sys/kernel/random/boot_id'],
  ['machine-id-file', 'string', '/etc/machine-id,/var/lib/dbus/machine-id'],
  ['container-hints', 'string', '/etc/cadvisor/container_hints.json'],
  ['containerd', 'string', '/run/containerd/containerd.sock'],
  ['containerd-namespace', 'string', 'k8s.io'],
  ['docker', 'string', 'unix:///var/run/docker.sock'],
  ['docker-tls', 'bool', 'false'],
  ['docker-tls-ca', 'string', 'ca.pem'],
  ['docker-tls-cert', 'string', 'cert.pem'],
  ['docker-tls-key', 'string', 'key.pem'],
  ['docker-env-metadata-whitelist', 'string', ''],
  ['docker-only', 'bool', 'false'],
  ['enable-load-reader', 'bool', 'false'],
  ['log-cadvisor-usage', 'bool', 'false'],
  ['event-storage-age-limit', 'string', 'default=0'],
  ['event-storage-event-limit', 'string', 'default=0'],
  ['global-housekeeping-interval', 'duration', '1m0s'],
  ['storage-driver-user', 'string', 'root'],
  ['storage-driver-password', 'string', 'root'],
  ['storage-driver-host', 'string', 'localhost:8086'],
  ['storage-driver-db', 'string', 'cadvisor'],
  ['storage-driver-table', 'string', 'stats'],
  ['storage-driver-secure', 'bool', 'false'],
  ['storage-driver-buffer-duration', 'duration', '1m0s'],
];

function removedHint(removed: string): string {
  return removed === 'Windows' ? 'it has no effect: for Windows only' : `it has no effect: removed in ${removed}`;
}

export const OLD_FLAGS: readonly FlagSpec[] = [
  ...ROWS.map(([name, type, removed, shownDefault, onlyValue]) => ({
    name,
    type,
    removed,
    shownDefault,
    help: 'Accepted, no effect.',
    deprecated: removedHint(removed),
    ...(onlyValue === undefined ? {} : { onlyValue }),
  })),
  ...COLLECTOR.map(([name, type, shownDefault]) => ({
    name,
    type,
    removed: 'collector',
    shownDefault,
    help: 'Accepted, no effect.',
    deprecated: 'it has no effect: this node has no embedded metrics collector',
  })),
];
