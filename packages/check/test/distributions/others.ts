// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are systemd's.
/** OpenShift, k3s and what is made with it, Talos. */
import { CA, type Distribution, DROP, service, TOKEN, UNIT, yaml } from './parts.ts';

export const OTHERS: readonly Distribution[] = [
  {
    name: 'OpenShift 4.20',
    source: 'openshift/machine-config-operator templates/worker/01-worker-kubelet',
    files: {
      [UNIT]: `[Unit]\nRequires=crio.service kubelet-auto-node-size.service\n\n${service(
        'Type=notify',
        'ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests',
        'ExecStartPre=/bin/rm -f /var/lib/kubelet/cpu_manager_state',
        'ExecStartPre=/bin/rm -f /var/lib/kubelet/memory_manager_state',
        'EnvironmentFile=/etc/os-release',
        'EnvironmentFile=-/etc/kubernetes/kubelet-workaround',
        'EnvironmentFile=-/etc/kubernetes/kubelet-env',
        'EnvironmentFile=/etc/node-sizing.env',
        'ExecStart=/usr/local/bin/kubenswrapper \\',
        '    /usr/bin/kubelet \\',
        '      --config=/etc/kubernetes/kubelet.conf \\',
        '      --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig \\',
        '      --kubeconfig=/var/lib/kubelet/kubeconfig \\',
        '      --container-runtime-endpoint=/var/run/crio/crio.sock \\',
        '      --runtime-cgroups=/system.slice/crio.service \\',
        '      --node-labels=node-role.kubernetes.io/worker,node.openshift.io/os_id=${ID},${CUSTOM_KUBELET_LABELS} \\',
        '      --node-ip=${KUBELET_NODE_IP} \\',
        '      --minimum-container-ttl-duration=6m0s \\',
        '      --volume-plugin-dir=/etc/kubernetes/kubelet-plugins/volume/exec \\',
        '      --cloud-provider=external \\',
        '      --hostname-override=${KUBELET_NODE_NAME} \\',
        '      --provider-id=${KUBELET_PROVIDERID} \\',
        '      --pod-infra-container-image=quay.io/openshift/pod@sha256:0000 \\',
        '      --system-reserved=cpu=${SYSTEM_RESERVED_CPU},memory=${SYSTEM_RESERVED_MEMORY},ephemeral-storage=${SYSTEM_RESERVED_ES} \\',
        '      --v=${KUBELET_LOG_LEVEL}',
      )}`,
      [DROP('20-logging.conf')]: service('Environment="KUBELET_LOG_LEVEL=2"'),
      '/etc/os-release': 'ID="rhcos"\nVERSION="9.6"\n',
      '/etc/kubernetes/kubelet-env': 'KUBELET_NODE_IP=10.0.128.7\nKUBELET_NODE_NAME=worker-1\n',
      '/etc/node-sizing.env': 'SYSTEM_RESERVED_MEMORY=1Gi\nSYSTEM_RESERVED_CPU=500m\nSYSTEM_RESERVED_ES=1Gi\n',
      '/etc/kubernetes/kubeconfig': TOKEN,
      '/etc/kubernetes/kubelet-ca.crt': CA,
      '/etc/kubernetes/kubelet.conf': yaml(`authentication:
  x509: {clientCAFile: /etc/kubernetes/kubelet-ca.crt}
  anonymous: {enabled: false}
cgroupDriver: systemd
cgroupRoot: /
clusterDNS: [172.30.0.10]
clusterDomain: cluster.local
containerLogMaxSize: 50Mi
enableSystemLogQuery: true
failSwapOn: false
maxPods: 250
kubeAPIQPS: 50
kubeAPIBurst: 100
podPidsLimit: 4096
protectKernelDefaults: true
rotateCertificates: true
serializeImagePulls: false
staticPodPath: /etc/kubernetes/manifests
memorySwap: {swapBehavior: NoSwap}
systemCgroups: /system.slice
systemReservedCgroup: /system.slice
enforceNodeAllocatable: [pods, system-reserved-compressible]
nodeStatusUpdateFrequency: 10s
nodeStatusReportFrequency: 5m
serverTLSBootstrap: true
tlsMinVersion: VersionTLS12
tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
featureGates: {NodeLogQuery: true}
`),
    },
    refused: ['--pod-infra-container-image'],
    error: '--node-labels: node-role.kubernetes.io/worker: in a namespace of Kubernetes',
    said: ['warning feature gate NodeLogQuery=true: the gate is generally available'],
    config: {},
  },
  {
    name: 'OpenShift 4.8, by hyperkube',
    source: 'openshift/machine-config-operator templates/worker/01-worker-kubelet',
    files: {
      [UNIT]: service(
        'Type=notify',
        'Environment="KUBELET_LOG_LEVEL=4"',
        'EnvironmentFile=/etc/os-release',
        'ExecStart=/usr/bin/hyperkube \\',
        '    kubelet \\',
        '      --config=/etc/kubernetes/kubelet.conf \\',
        '      --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig \\',
        '      --kubeconfig=/var/lib/kubelet/kubeconfig \\',
        '      --container-runtime=remote \\',
        '      --container-runtime-endpoint=/var/run/crio/crio.sock \\',
        '      --node-labels=node-role.kubernetes.io/worker,node.openshift.io/os_id=${ID} \\',
        '      --cloud-provider= \\',
        '      --v=${KUBELET_LOG_LEVEL}',
      ),
      '/etc/os-release': 'ID="rhcos"\n',
      '/etc/kubernetes/kubeconfig': TOKEN,
      '/etc/kubernetes/kubelet-ca.crt': CA,
      '/etc/kubernetes/kubelet.conf': yaml(`authentication:
  x509: {clientCAFile: /etc/kubernetes/kubelet-ca.crt}
  anonymous: {enabled: false}
cgroupDriver: systemd
featureGates:
  IPv6DualStack: true
  LegacyNodeRoleBehavior: false
  NodeDisruptionExclusion: true
  RotateKubeletServerCertificate: true
  SCTPSupport: true
  ServiceNodeExclusion: true
  SupportPodPidsLimit: true
serverTLSBootstrap: true
`),
    },
    refused: ['--container-runtime'],
    error: '--node-labels: node-role.kubernetes.io/worker: in a namespace of Kubernetes',
    said: [
      'warning featureGates.LegacyNodeRoleBehavior (--feature-gates): is not a feature gate',
      'warning featureGates.NodeDisruptionExclusion (--feature-gates): is not a feature gate',
      'warning featureGates.SCTPSupport (--feature-gates): is not a feature gate',
      'warning featureGates.ServiceNodeExclusion (--feature-gates): is not a feature gate',
      'warning feature gate IPv6DualStack=true: the gate is generally available',
      'warning feature gate SupportPodPidsLimit=true: the gate is generally available',
      'note command line: Flag --container-runtime',
    ],
    config: {},
  },
  {
    name: 'k3s 1.36',
    source: 'k3s-io/k3s pkg/daemons/agent',
    words: [
      ...['--cloud-provider=external', '--config-dir=/var/lib/rancher/k3s/agent/etc/kubelet.conf.d', '--hostname-override=edge-1'],
      ...[
        '--kubeconfig=/var/lib/rancher/k3s/agent/kubelet.kubeconfig',
        '--node-ip=10.0.0.5,fd00::5',
        '--node-labels=',
        '--read-only-port=0',
      ],
      ...['--containerd=/run/k3s/containerd/containerd.sock', '--runtime-cgroups=/k3s'],
    ],
    files: {
      '/var/lib/rancher/k3s/agent/kubelet.kubeconfig': TOKEN,
      '/var/lib/rancher/k3s/agent/client-ca.crt': CA,
      '/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf': yaml(`address: 0.0.0.0
allowedUnsafeSysctls: [net.ipv4.ip_forward, net.ipv6.conf.all.forwarding]
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 2m0s, enabled: true}
  x509: {clientCAFile: /var/lib/rancher/k3s/agent/client-ca.crt}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 5m0s, cacheUnauthorizedTTL: 30s}}
cgroupDriver: systemd
clusterDNS: [10.43.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionHard: {imagefs.available: 5%, nodefs.available: 5%}
evictionMinimumReclaim: {imagefs.available: 10%, nodefs.available: 10%}
failCgroupV1: false
failSwapOn: false
healthzBindAddress: 127.0.0.1
logging: {flushFrequency: 5s, format: text, verbosity: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}}
memorySwap: {}
podLogsDir: /var/log/pods
registerWithTaints: null
serializeImagePulls: false
staticPodPath: /var/lib/rancher/k3s/agent/pod-manifests
`),
      '/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/10-cli-config.conf': yaml('maxPods: 42\n'),
    },
    said: ['note command line: Flag --containerd'],
    config: { maxPods: 42 },
  },
  {
    name: 'k3s without root',
    source: 'k3s-io/k3s pkg/daemons/agent, manual "Running Rootless Servers"',
    words: [
      ...['--config-dir=/home/u/.rancher/k3s/agent/etc/kubelet.conf.d', '--feature-gates=KubeletInUserNamespace=true'],
      ...[
        '--hostname-override=edge-1',
        '--kubeconfig=/home/u/.rancher/k3s/agent/kubelet.kubeconfig',
        '--node-labels=',
        '--read-only-port=0',
      ],
    ],
    files: {
      '/home/u/.rancher/k3s/agent/kubelet.kubeconfig': TOKEN,
      '/home/u/.rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf': yaml('failSwapOn: false\ncgroupDriver: cgroupfs\n'),
    },
    said: [],
    config: { featureGates: { KubeletInUserNamespace: true } },
  },
  {
    name: 'RKE2',
    source: 'rancher/rke2 pkg/executor/staticpod',
    words: [
      ...[
        '--volume-plugin-dir=/var/lib/kubelet/volumeplugins',
        '--file-check-frequency=5s',
        '--sync-frequency=30s',
        '--cloud-provider=external',
      ],
      ...['--config-dir=/var/lib/rancher/rke2/agent/etc/kubelet.conf.d', '--containerd=/run/k3s/containerd/containerd.sock'],
      ...[
        '--hostname-override=rke2-1',
        '--kubeconfig=/var/lib/rancher/rke2/agent/kubelet.kubeconfig',
        '--node-labels=',
        '--read-only-port=0',
      ],
    ],
    files: {
      '/var/lib/rancher/rke2/agent/kubelet.kubeconfig': TOKEN,
      '/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf': yaml(`cgroupDriver: systemd
containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock
failSwapOn: false
staticPodPath: /var/lib/rancher/rke2/agent/pod-manifests
evictionHard: {imagefs.available: 5%, nodefs.available: 5%}
evictionMinimumReclaim: {imagefs.available: 10%, nodefs.available: 10%}
protectKernelDefaults: true
`),
    },
    said: ['note command line: Flag --containerd'],
    config: { fileCheckFrequency: 5_000, syncFrequency: 30_000 },
  },
  {
    name: 'Talos',
    source: 'siderolabs/talos internal/app/machined/pkg/controllers/k8s',
    words: [
      ...['--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubeconfig', '--cert-dir=/var/lib/kubelet/pki', '--cloud-provider=external'],
      ...['--config=/etc/kubernetes/kubelet.yaml', '--hostname-override=talos-a1b', '--kubeconfig=/etc/kubernetes/kubeconfig-kubelet'],
      ...['--node-ip=10.5.0.2'],
    ],
    files: {
      '/etc/kubernetes/bootstrap-kubeconfig': TOKEN,
      '/etc/kubernetes/pki/ca.crt': CA,
      '/etc/kubernetes/kubelet.yaml': yaml(`address: 0.0.0.0
port: 10250
oomScoreAdj: -450
rotateCertificates: true
authentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}, webhook: {enabled: true}, anonymous: {enabled: false}}
authorization: {mode: Webhook}
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
serializeImagePulls: false
failSwapOn: false
cgroupRoot: /
systemCgroups: /system
kubeletCgroups: /podruntime/kubelet
systemReserved: {cpu: 50m, memory: 192Mi, pid: "100", ephemeral-storage: 256Mi}
logging: {format: json}
seccompDefault: true
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
streamingConnectionIdleTimeout: 5m
tlsMinVersion: VersionTLS13
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
resolvConf: /system/resolved/resolv.conf
protectKernelDefaults: true
`),
    },
    said: [],
    config: { oomScoreAdj: -450, seccompDefault: true, tlsMinVersion: 'VersionTLS13' },
  },
];
