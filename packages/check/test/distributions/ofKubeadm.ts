// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are systemd's.
/** kubeadm, and what is made with it. */
import { PACKAGE } from '../unit/cases.ts';
import { CA, type Distribution, DROP, SOCKET, service, TOKEN, yaml } from './parts.ts';

const KUBEADM_CONFIG = (more = '') =>
  yaml(`authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ${SOCKET}
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
${more}`);
const KUBEADM = {
  ...PACKAGE,
  '/etc/kubernetes/bootstrap-kubelet.conf': TOKEN,
  '/etc/kubernetes/kubelet.conf': TOKEN,
  '/etc/kubernetes/pki/ca.crt': CA,
};

export const OF_KUBEADM: readonly Distribution[] = [
  {
    name: 'kubeadm 1.36',
    source: 'kubernetes/release, kubeadm',
    files: {
      ...KUBEADM,
      '/var/lib/kubelet/config.yaml': KUBEADM_CONFIG('crashLoopBackOff: {}\nimagePullCredentialsVerificationPolicy: ""\n'),
      '/var/lib/kubelet/kubeadm-flags.env': 'KUBELET_KUBEADM_ARGS="--hostname-override=n1 --node-ip=192.0.2.7"\n',
    },
    said: [],
    config: { cgroupDriver: 'systemd', rotateCertificates: true },
  },
  {
    name: 'kubeadm 1.31',
    source: 'kubernetes/release, kubeadm',
    files: {
      ...KUBEADM,
      '/var/lib/kubelet/config.yaml': KUBEADM_CONFIG(),
      '/var/lib/kubelet/kubeadm-flags.env': `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=${SOCKET} --pod-infra-container-image=registry.k8s.io/pause:3.10"\n`,
    },
    refused: ['--pod-infra-container-image'],
    said: [],
    config: { cgroupDriver: 'systemd' },
  },
  {
    name: 'kind',
    source: 'kubernetes-sigs/kind images/base, pkg/cluster/internal/kubeadm',
    files: {
      ...KUBEADM,
      [DROP('11-kind.conf')]: service(
        'ExecStartPre=/bin/sh -euc "if [ -f /sys/fs/cgroup/cgroup.controllers ]; then /kind/bin/create-kubelet-cgroup-v2; fi"',
        'ExecStartPre=/bin/sh -euc "if [ ! -d /sys/fs/cgroup/systemd/kubelet ]; then mkdir -p /sys/fs/cgroup/systemd/kubelet; fi"',
      ),
      '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--runtime-cgroups=/system.slice/containerd.service',
      '/var/lib/kubelet/kubeadm-flags.env':
        'KUBELET_KUBEADM_ARGS="--node-ip=172.18.0.2 --node-labels= --provider-id=kind://docker/kind/kind-control-plane"\n',
      '/var/lib/kubelet/config.yaml': KUBEADM_CONFIG(`cgroupRoot: /kubelet
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard: {nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
`),
    },
    said: [],
    config: { cgroupRoot: '/kubelet', imageGCHighThresholdPercent: 100 },
  },
  {
    name: 'minikube',
    source: 'kubernetes/minikube pkg/minikube/bootstrapper/bsutil',
    files: {
      '/lib/systemd/system/kubelet.service': service(
        'ExecStart=/var/lib/minikube/binaries/v1.36.0/kubelet',
        'Restart=always',
        'StartLimitInterval=0',
        'RestartSec=600ms',
      ),
      [DROP('10-kubeadm.conf')]: `[Unit]\nWants=containerd.service\n\n${service(
        'ExecStart=',
        'ExecStart=/var/lib/minikube/binaries/v1.36.0/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --config=/var/lib/kubelet/config.yaml --hostname-override=minikube --kubeconfig=/etc/kubernetes/kubelet.conf --node-ip=192.168.49.2',
      )}\n[Install]\n`,
      '/etc/kubernetes/kubelet.conf': TOKEN,
      '/var/lib/minikube/certs/ca.crt': CA,
      '/var/lib/kubelet/config.yaml': yaml(`authentication: {x509: {clientCAFile: /var/lib/minikube/certs/ca.crt}}
cgroupDriver: systemd
containerRuntimeEndpoint: ${SOCKET}
hairpinMode: hairpin-veth
runtimeRequestTimeout: 15m
clusterDomain: "cluster.local"
imageGCHighThresholdPercent: 100
evictionHard: {nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
failSwapOn: false
staticPodPath: /etc/kubernetes/manifests
`),
    },
    said: ['note hairpinMode'],
    config: { runtimeRequestTimeout: 900_000, failSwapOn: false },
  },
  {
    name: 'Flatcar',
    source: 'flatcar.org "Kubernetes", kubernetes-sigs/image-builder (kubeadm below /opt)',
    files: {
      ...KUBEADM,
      '/usr/lib/systemd/system/kubelet.service': service('ExecStart=/opt/bin/kubelet', 'Restart=always', 'StartLimitInterval=0'),
      '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf': '',
      [DROP('10-kubeadm.conf')]: service(
        'Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"',
        'Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"',
        'EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env',
        'EnvironmentFile=-/etc/sysconfig/kubelet',
        'ExecStart=',
        'ExecStart=/opt/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS',
      ),
      '/var/lib/kubelet/kubeadm-flags.env': `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=${SOCKET} --volume-plugin-dir=/opt/libexec/kubernetes/kubelet-plugins/volume/exec/"\n`,
      '/var/lib/kubelet/config.yaml': KUBEADM_CONFIG('volumePluginDir: /opt/libexec/kubernetes/kubelet-plugins/volume/exec/\n'),
    },
    said: [],
    config: { cgroupDriver: 'systemd' },
  },
];
