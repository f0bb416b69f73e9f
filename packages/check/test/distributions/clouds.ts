// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are systemd's.
/** Nodes of clouds. */
import { CA, type Distribution, DROP, EXEC, json, PROGRAM, PROVIDERS, SOCKET, service, TOKEN, UNIT, yaml } from './parts.ts';

export const CLOUDS: readonly Distribution[] = [
  {
    name: 'EKS (Amazon Linux 2023)',
    source: 'awslabs/amazon-eks-ami nodeadm/internal/kubelet',
    files: {
      [UNIT]: `[Unit]\nAfter=containerd.service\nWants=containerd.service\n\n${service(
        'Slice=runtime.slice',
        'EnvironmentFile=/etc/eks/kubelet/environment',
        'ExecStartPre=/sbin/iptables -P FORWARD ACCEPT -w 5',
        'ExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS',
        'Restart=on-failure',
        'KillMode=process',
      )}`,
      '/etc/eks/kubelet/environment':
        'NODEADM_KUBELET_ARGS=--cloud-provider=external --config=/etc/kubernetes/kubelet/config.json --config-dir=/etc/kubernetes/kubelet/config.json.d --hostname-override=ip-10-0-3-4.eu-west-1.compute.internal --image-credential-provider-bin-dir=/etc/eks/image-credential-provider --image-credential-provider-config=/etc/eks/image-credential-provider/config.json --kubeconfig=/var/lib/kubelet/kubeconfig --node-ip=10.0.3.4 --node-labels=eks.amazonaws.com/nodegroup=a --runtime-cgroups=/runtime.slice/containerd.service\nKUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n',
      '/etc/eks/image-credential-provider/config.json': PROVIDERS,
      '/etc/eks/image-credential-provider/ecr-credential-provider': PROGRAM,
      '/var/lib/kubelet/kubeconfig': EXEC('/usr/bin/aws-iam-authenticator'),
      '/etc/kubernetes/pki/ca.crt': CA,
      '/etc/kubernetes/kubelet/config.json': json({
        address: '0.0.0.0',
        authentication: {
          ...{ anonymous: { enabled: false }, webhook: { cacheTTL: '2m0s', enabled: true } },
          x509: { clientCAFile: '/etc/kubernetes/pki/ca.crt' },
        },
        authorization: { mode: 'Webhook', webhook: { cacheAuthorizedTTL: '5m0s', cacheUnauthorizedTTL: '30s' } },
        ...{ cgroupDriver: 'systemd', cgroupRoot: '/', clusterDNS: ['10.100.0.10'], clusterDomain: 'cluster.local' },
        containerRuntimeEndpoint: SOCKET,
        evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%', 'nodefs.inodesFree': '5%' },
        featureGates: { DynamicResourceAllocation: true, RotateKubeletServerCertificate: true },
        hairpinMode: 'hairpin-veth',
        kubeReserved: { cpu: '70m', 'ephemeral-storage': '1Gi', memory: '442Mi' },
        ...{ kubeReservedCgroup: '/runtime', logging: { verbosity: 2 }, maxPods: 17, protectKernelDefaults: true },
        ...{ providerID: 'aws:///eu-west-1a/i-0123456789abcdef0', readOnlyPort: 0, serializeImagePulls: false },
        ...{ serverTLSBootstrap: true, systemReservedCgroup: '/system' },
        tlsCipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'TLS_RSA_WITH_AES_256_GCM_SHA384'],
      }),
      '/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf': json({ maxPods: 58 }),
    },
    said: ['warning feature gate DynamicResourceAllocation=true: the gate is generally available', 'note hairpinMode'],
    config: { maxPods: 58, serverTLSBootstrap: true },
  },
  {
    name: 'GKE',
    source: 'GKE manual "Customizing node system configuration", kubernetes cluster/gce/gci/configure-helper.sh',
    files: {
      [UNIT]: service(
        'EnvironmentFile=/etc/default/kubelet',
        'ExecStart=/home/kubernetes/bin/kubelet $KUBELET_OPTS',
        'Restart=always',
        'KillMode=process',
      ),
      '/etc/default/kubelet': `KUBELET_OPTS="--v=2 --cloud-provider=external --experimental-mounter-path=/home/kubernetes/containerized_mounter/mounter --cert-dir=/var/lib/kubelet/pki/ --kubeconfig=/var/lib/kubelet/kubeconfig --max-pods=110 --volume-plugin-dir=/home/kubernetes/flexvolume --node-status-max-images=25 --container-runtime-endpoint=${SOCKET} --runtime-cgroups=/system.slice/containerd.service --registry-qps=10 --registry-burst=20 --config /home/kubernetes/kubelet-config.yaml --pod-sysctls='net.core.somaxconn=1024,net.ipv4.tcp_tw_reuse=0' --node-labels=cloud.google.com/gke-nodepool=a"\nKUBE_COVERAGE_FILE="/var/log/kubelet.cov"\n`,
      '/var/lib/kubelet/kubeconfig': EXEC('/home/kubernetes/bin/gke-exec-auth-plugin'),
      '/etc/srv/kubernetes/pki/ca-certificates.crt': CA,
      '/home/kubernetes/kubelet-config.yaml': yaml(`authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: /etc/srv/kubernetes/pki/ca-certificates.crt}
authorization: {mode: Webhook}
cgroupRoot: /
clusterDNS: [10.0.0.10]
clusterDomain: cluster.local
enableDebuggingHandlers: true
evictionHard: {memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%, pid.available: 10%}
featureGates: {DisableKubeletCloudCredentialProviders: true, RotateKubeletServerCertificate: true}
kubeReserved: {cpu: 60m, ephemeral-storage: 41Gi, memory: 1019Mi}
readOnlyPort: 10255
serverTLSBootstrap: true
staticPodPath: /etc/kubernetes/manifests
`),
    },
    refused: ['--pod-sysctls'],
    error: 'command line: unknown flag --pod-sysctls',
    said: [],
    config: {},
  },
  {
    name: 'AKS',
    source: 'Azure/AgentBaker parts/linux/cloud-init/artifacts',
    files: {
      [UNIT]: service(
        'EnvironmentFile=/etc/default/kubelet',
        'ExecStartPre=/bin/mkdir -p /var/lib/kubelet',
        'ExecStartPre=-/sbin/iptables -t nat --numeric --list',
        'ExecStart=/usr/local/bin/kubelet \\',
        '        --enable-server \\',
        '        --node-labels="${KUBELET_NODE_LABELS}" \\',
        '        --v=2 \\',
        '        --volume-plugin-dir=/etc/kubernetes/volumeplugins \\',
        '        $KUBELET_TLS_BOOTSTRAP_FLAGS \\',
        '        $KUBELET_CONFIG_FILE_FLAGS \\',
        '        $KUBELET_CONTAINERD_FLAGS \\',
        '        $KUBELET_CONTAINER_RUNTIME_FLAG \\',
        '        $KUBELET_CGROUP_FLAGS \\',
        '        $KUBELET_FLAGS',
      ),
      [DROP('10-componentconfig.conf')]: service('Environment="KUBELET_CONFIG_FILE_FLAGS=--config /etc/default/kubeletconfig.json"'),
      [DROP('10-tlsbootstrap.conf')]: service(
        'Environment="KUBELET_TLS_BOOTSTRAP_FLAGS=--kubeconfig /var/lib/kubelet/kubeconfig --bootstrap-kubeconfig /var/lib/kubelet/bootstrap-kubeconfig"',
      ),
      [DROP('10-containerd-base-flag.conf')]: service(
        `Environment="KUBELET_CONTAINERD_FLAGS=--runtime-request-timeout=15m --container-runtime-endpoint=${SOCKET} --runtime-cgroups=/system.slice/containerd.service"`,
      ),
      [DROP('10-cgroupv2.conf')]: service('Environment="KUBELET_CGROUP_FLAGS=--cgroup-driver=systemd"'),
      '/etc/default/kubelet':
        'KUBELET_FLAGS=--cloud-config= --cloud-provider=external --node-ip=10.224.0.4 --pod-infra-container-image=mcr.microsoft.com/oss/kubernetes/pause:3.6 --azure-container-registry-config=/etc/kubernetes/azure.json --keep-terminated-pod-volumes=false --image-credential-provider-config=/var/lib/kubelet/credential-provider-config.yaml --image-credential-provider-bin-dir=/var/lib/kubelet/credential-provider \nKUBELET_REGISTER_SCHEDULABLE=true\nKUBELET_NODE_LABELS=agentpool=nodepool1,kubernetes.azure.com/mode=system\n',
      '/var/lib/kubelet/credential-provider-config.yaml': PROVIDERS.replaceAll('ecr', 'acr'),
      '/var/lib/kubelet/credential-provider/acr-credential-provider': PROGRAM,
      '/var/lib/kubelet/bootstrap-kubeconfig': TOKEN,
      '/etc/kubernetes/certs/ca.crt': CA,
      '/etc/default/kubeletconfig.json': json({
        ...{ staticPodPath: '/etc/kubernetes/manifests', address: '0.0.0.0', rotateCertificates: true, serverTLSBootstrap: true },
        authentication: { x509: { clientCAFile: '/etc/kubernetes/certs/ca.crt' }, webhook: { enabled: true }, anonymous: {} },
        authorization: { mode: 'Webhook', webhook: {} },
        ...{ eventRecordQPS: 0, clusterDomain: 'cluster.local', clusterDNS: ['10.0.0.10'], streamingConnectionIdleTimeout: '4h' },
        ...{ nodeStatusUpdateFrequency: '10s', imageGCHighThresholdPercent: 85, imageGCLowThresholdPercent: 80, cgroupsPerQOS: true },
        ...{ maxPods: 110, podPidsLimit: -1, resolvConf: '/run/systemd/resolve/resolv.conf', protectKernelDefaults: true },
        evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%', 'nodefs.inodesFree': '5%', 'pid.available': '2000' },
        ...{ systemReserved: { cpu: '0', memory: '0' }, kubeReserved: { cpu: '100m', memory: '638Mi', pid: '1000' } },
        ...{ enforceNodeAllocatable: ['pods'], containerLogMaxSize: '50M', containerLogMaxFiles: 5, serializeImagePulls: false },
        ...{ featureGates: { RotateKubeletServerCertificate: true }, memorySwap: {}, failSwapOn: false },
      }),
    },
    refused: ['--azure-container-registry-config', '--cloud-config', '--keep-terminated-pod-volumes', '--pod-infra-container-image'],
    said: ['note command line: Flag --azure-container-registry-config', 'note command line: Flag --keep-terminated-pod-volumes'],
    config: { cgroupDriver: 'systemd', runtimeRequestTimeout: 900_000, maxPods: 110 },
  },
  {
    name: 'Bottlerocket',
    source: 'bottlerocket-os/bottlerocket-core-kit packages/kubernetes-1.36',
    files: {
      '/usr/lib/systemd/system/kubelet.service': service(
        'Slice=runtime.slice',
        'EnvironmentFile=/etc/network/proxy.env',
        'EnvironmentFile=/etc/kubernetes/kubelet/env',
        'ExecStartPre=/sbin/iptables -P FORWARD ACCEPT',
        'ExecStart=/usr/bin/kubelet',
        'KillMode=process',
      ),
      [DROP('exec-start.conf')]: service(
        'ExecStart=',
        'ExecStart=/usr/bin/kubelet \\',
        '    --cloud-provider external \\',
        '    --kubeconfig /etc/kubernetes/kubelet/kubeconfig \\',
        '    --config /etc/kubernetes/kubelet/config \\',
        `    --container-runtime-endpoint=${SOCKET} \\`,
        '    --containerd=/run/containerd/containerd.sock \\',
        '    --root-dir /var/lib/kubelet \\',
        '    --cert-dir /var/lib/kubelet/pki \\',
        '    --image-credential-provider-bin-dir /usr/libexec/kubernetes/kubelet/plugins \\',
        '    --image-credential-provider-config /etc/kubernetes/kubelet/credential-provider-config.yaml \\',
        '    --hostname-override ip-10-0-1-2.ec2.internal \\',
        '    --node-ip ${NODE_IP} \\',
        '    --node-labels "${NODE_LABELS}" \\',
        '    --register-with-taints "${NODE_TAINTS}" \\',
        '    --config-dir=/etc/kubernetes/kubelet/config.d \\',
        '    --runtime-cgroups=/runtime.slice/containerd.service',
      ),
      '/etc/network/proxy.env': '',
      '/etc/kubernetes/kubelet/env': 'NODE_IP=10.0.1.2\nNODE_LABELS=\nNODE_TAINTS=\n',
      '/etc/kubernetes/kubelet/config.d/40-node.conf': yaml('maxPods: 58\n'),
      '/etc/kubernetes/kubelet/credential-provider-config.yaml': PROVIDERS,
      '/usr/libexec/kubernetes/kubelet/plugins/ecr-credential-provider': PROGRAM,
      '/etc/kubernetes/kubelet/kubeconfig': EXEC('/usr/bin/aws-iam-authenticator'),
      '/etc/kubernetes/pki/ca.crt': CA,
      '/etc/kubernetes/kubelet/config': `---
${yaml(`address: 0.0.0.0
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 2m0s, enabled: true}
  x509: {clientCAFile: "/etc/kubernetes/pki/ca.crt"}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 5m0s, cacheUnauthorizedTTL: 30s}}
clusterDomain: cluster.local
clusterDNS:
- 172.20.0.10
kubeReserved: {cpu: "60m", memory: "255Mi", ephemeral-storage: "1Gi"}
kubeReservedCgroup: "/runtime"
cpuCFSQuota: true
cpuManagerPolicy: none
podPidsLimit: 1048576
providerID: aws:///us-west-2a/i-0123456789abcdef0
resolvConf: "/run/netdog/resolv.conf"
hairpinMode: hairpin-veth
readOnlyPort: 0
cgroupDriver: systemd
cgroupRoot: "/"
runtimeRequestTimeout: 15m
protectKernelDefaults: true
serializeImagePulls: false
seccompDefault: false
serverTLSBootstrap: true
tlsCipherSuites:
- TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
- TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305
volumePluginDir: "/var/lib/kubelet/plugins/volume/exec"
maxPods: 29
staticPodPath: "/etc/kubernetes/static-pods/"
failSwapOn: false
failCgroupV1: false
featureGates:
  DynamicResourceAllocation: true
  MutableCSINodeAllocatableCount: true
`)}`,
    },
    said: [
      'warning feature gate DynamicResourceAllocation=true: the gate is generally available',
      'warning feature gate MutableCSINodeAllocatableCount=true: the gate is generally available',
      'note command line: Flag --containerd',
      'note hairpinMode',
    ],
    config: { failCgroupV1: false, podPidsLimit: 1_048_576, maxPods: 58 },
  },
];
