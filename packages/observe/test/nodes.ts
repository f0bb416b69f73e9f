/** Machines with a kubelet: a /proc with processes in it, and a root with the kubelet's files. Command lines are those of distributions. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { FindOptions } from '../src/found/found.ts';

export interface FakeProcess {
  comm: string;
  words: readonly string[];
  uid?: number;
  parent?: number;
  /** Its numbers in namespaces below; default: it has one. */
  inner?: readonly number[];
  cgroup?: string;
  startTicks?: number;
  state?: string;
}

/** At these seconds since 1970 the machine was booted. */
export const BOOT_SECONDS = 1_700_000_000;

export class FakeNode implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'actorlet-found-'));
  readonly proc = join(this.folder, 'proc');
  readonly root = join(this.folder, 'root');

  constructor() {
    mkdirSync(this.proc);
    mkdirSync(this.root);
    writeFileSync(join(this.proc, 'stat'), `cpu  1 2 3\nbtime ${BOOT_SECONDS}\n`);
    this.start(1, { comm: 'systemd', words: ['/sbin/init'] });
  }

  start(pid: number, p: FakeProcess): void {
    const folder = join(this.proc, String(pid));
    mkdirSync(folder, { recursive: true });
    const fields = [p.state ?? 'S', p.parent ?? 1, ...new Array<number>(17).fill(0), p.startTicks ?? 4_200, 0, 0];
    rmSync(join(folder, 'stat'), { recursive: true, force: true });
    writeFileSync(join(folder, 'comm'), `${p.comm}\n`);
    writeFileSync(join(folder, 'stat'), `${pid} (${p.comm}) ${fields.join(' ')}\n`);
    const uid = p.uid ?? 0;
    writeFileSync(
      join(folder, 'status'),
      `Name:\t${p.comm}\nUid:\t${uid}\t${uid}\t${uid}\t${uid}\nNSpid:\t${[pid, ...(p.inner ?? [])].join('\t')}\n`,
    );
    writeFileSync(join(folder, 'cgroup'), `0::${p.cgroup ?? '/system.slice/kubelet.service'}\n`);
    writeFileSync(join(folder, 'cmdline'), p.words.map((word) => `${word}\0`).join(''));
  }

  /** Its state cannot be read. */
  unread(pid: number): void {
    const stat = join(this.proc, String(pid), 'stat');
    rmSync(stat);
    mkdirSync(stat);
  }

  end(pid: number): void {
    rmSync(join(this.proc, String(pid)), { recursive: true });
  }

  write(path: string, text: string): void {
    const at = join(this.root, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text);
  }

  options(over: Partial<FindOptions> = {}): FindOptions {
    return {
      ...{ proc: this.proc, pid: null, asKubelet: false, hostRoot: this.root, own: new Map(), env: {}, clock: createClock() },
      ...{ signal: new AbortController().signal, accountFolder: join(this.folder, 'account') },
      ...over,
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export const kubelet = (words: readonly string[], over: Partial<FakeProcess> = {}): FakeProcess => ({ comm: 'kubelet', words, ...over });

export const CONFIG = (fields: string): string => `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${fields}`;

interface Expected {
  rootDir?: string;
  kubeconfig: string;
  runtime?: string;
  cgroupDriver?: string;
  nodeName?: string;
  staticPods?: string;
  maxPods?: number;
  /** Flags that are named as not read. */
  unread?: readonly string[];
}
interface Shape {
  name: string;
  process: FakeProcess;
  files: Readonly<Record<string, string>>;
  expected: Expected;
}

const SOCKET = 'unix:///run/containerd/containerd.sock';

/** What nodes of distributions look like from outside. */
export const SHAPES: readonly Shape[] = [
  {
    name: 'kubeadm',
    process: kubelet([
      ...['/usr/bin/kubelet', '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf', '--kubeconfig=/etc/kubernetes/kubelet.conf'],
      ...[
        '--config=/var/lib/kubelet/config.yaml',
        `--container-runtime-endpoint=${SOCKET}`,
        '--pod-infra-container-image=registry.k8s.io/pause:3.9',
      ],
    ]),
    files: {
      '/var/lib/kubelet/config.yaml': CONFIG('cgroupDriver: systemd\nstaticPodPath: /etc/kubernetes/manifests\nrotateCertificates: true\n'),
    },
    expected: {
      kubeconfig: '/etc/kubernetes/kubelet.conf',
      runtime: SOCKET,
      cgroupDriver: 'systemd',
      staticPods: '/etc/kubernetes/manifests',
    },
  },
  {
    name: 'k3s, whose kubelet is in its own process',
    process: { comm: 'k3s-server', words: ['/usr/local/bin/k3s server'] },
    files: {
      '/etc/rancher/k3s/config.yaml': 'token: secret\nnode-name: Edge-1\nkubelet-arg:\n  - max-pods=42\n',
      '/etc/rancher/k3s/config.yaml.d/10-data.yaml': 'data-dir: /data/k3s\n',
      '/data/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf': CONFIG(
        'cgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock\n',
      ),
    },
    expected: {
      ...{ kubeconfig: '/data/k3s/agent/kubelet.kubeconfig', runtime: 'unix:///run/k3s/containerd/containerd.sock' },
      ...{ cgroupDriver: 'systemd', nodeName: 'edge-1', maxPods: 42 },
    },
  },
  {
    name: 'k3s before 1.32, with words in its unit',
    process: { comm: 'k3s-agent', words: ['/usr/local/bin/k3s agent'] },
    files: {
      '/etc/systemd/system/k3s-agent.service':
        "[Service]\nExecStart=/usr/local/bin/k3s \\\n    agent \\\n\t'--node-name' \\\n\t'edge-2' \\\n\t'--kubelet-arg=max-pods=43' \\\n",
    },
    expected: {
      ...{ kubeconfig: '/var/lib/rancher/k3s/agent/kubelet.kubeconfig', runtime: 'unix:///run/k3s/containerd/containerd.sock' },
      ...{ nodeName: 'edge-2', maxPods: 43 },
    },
  },
  {
    name: 'RKE2',
    process: kubelet([
      ...['kubelet', '--volume-plugin-dir=/var/lib/kubelet/volumeplugins', '--file-check-frequency=5s', '--sync-frequency=30s'],
      ...[
        '--cloud-provider=external',
        '--config-dir=/var/lib/rancher/rke2/agent/etc/kubelet.conf.d',
        '--containerd=/run/k3s/containerd/containerd.sock',
      ],
      ...[
        '--hostname-override=rke2-1',
        '--kubeconfig=/var/lib/rancher/rke2/agent/kubelet.kubeconfig',
        '--node-labels=',
        '--read-only-port=0',
      ],
      ...[
        '--log-file=/var/lib/rancher/rke2/agent/logs/kubelet.log',
        '--log-file-max-size=50',
        '--alsologtostderr=false',
        '--logtostderr=false',
      ],
    ]),
    files: {
      '/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf': CONFIG(
        'cgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock\nstaticPodPath: /var/lib/rancher/rke2/agent/pod-manifests\n',
      ),
    },
    expected: {
      ...{ kubeconfig: '/var/lib/rancher/rke2/agent/kubelet.kubeconfig', runtime: 'unix:///run/k3s/containerd/containerd.sock' },
      ...{ nodeName: 'rke2-1', cgroupDriver: 'systemd', staticPods: '/var/lib/rancher/rke2/agent/pod-manifests' },
    },
  },
  {
    name: 'Talos',
    process: kubelet(
      [
        ...['/usr/local/bin/kubelet', '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubeconfig', '--cert-dir=/var/lib/kubelet/pki'],
        ...['--config=/etc/kubernetes/kubelet.yaml', '--hostname-override=talos-a1b', '--kubeconfig=/etc/kubernetes/kubeconfig-kubelet'],
        ...['--node-ip=10.5.0.2', '--runtime-cgroups=/system/runtime'],
      ],
      { cgroup: '/podruntime/kubelet' },
    ),
    files: { '/etc/kubernetes/kubelet.yaml': CONFIG('cgroupRoot: /\nstaticPodURL: http://127.0.0.1:39463\nseccompDefault: true\n') },
    expected: { kubeconfig: '/etc/kubernetes/kubeconfig-kubelet', nodeName: 'talos-a1b', cgroupDriver: 'cgroupfs' },
  },
  {
    name: 'Bottlerocket, with flags and values as two words',
    process: kubelet(
      [
        ...['/usr/bin/kubelet', '--cloud-provider', 'external', '--kubeconfig', '/etc/kubernetes/kubelet/kubeconfig'],
        ...[
          '--config',
          '/etc/kubernetes/kubelet/config',
          `--container-runtime-endpoint=${SOCKET}`,
          '--containerd=/run/containerd/containerd.sock',
        ],
        ...[
          '--root-dir',
          '/var/lib/kubelet',
          '--cert-dir',
          '/var/lib/kubelet/pki',
          '--image-credential-provider-bin-dir',
          '/usr/libexec/kubernetes/kubelet/plugins',
        ],
        ...[
          '--image-credential-provider-config',
          '/etc/kubernetes/kubelet/credential-provider-config.yaml',
          '--hostname-override',
          'ip-10-0-1-2.ec2.internal',
        ],
        ...[
          '--node-ip',
          '10.0.1.2',
          '--node-labels',
          '',
          '--register-with-taints',
          '',
          '--pod-infra-container-image',
          'localhost/kubernetes/pause:0.1.0',
        ],
      ],
      { cgroup: '/runtime.slice/kubelet.service' },
    ),
    files: {
      '/etc/kubernetes/kubelet/config':
        '---\nkind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\ncgroupDriver: systemd\nmaxPods: 29\n',
    },
    expected: {
      kubeconfig: '/etc/kubernetes/kubelet/kubeconfig',
      nodeName: 'ip-10-0-1-2.ec2.internal',
      cgroupDriver: 'systemd',
      maxPods: 29,
    },
  },
  {
    name: 'EKS, JSON with drop-ins',
    process: kubelet([
      ...[
        '/usr/bin/kubelet',
        '--cloud-provider=external',
        '--config=/etc/kubernetes/kubelet/config.json',
        '--config-dir=/etc/kubernetes/kubelet/config.json.d',
      ],
      ...[
        '--hostname-override=ip-10-0-3-4.eu-west-1.compute.internal',
        '--image-credential-provider-bin-dir=/etc/eks/image-credential-provider',
      ],
      ...['--image-credential-provider-config=/etc/eks/image-credential-provider/config.json', '--kubeconfig=/var/lib/kubelet/kubeconfig'],
      ...['--node-ip=10.0.3.4', '--node-labels=eks.amazonaws.com/nodegroup=a', '--runtime-cgroups=/runtime.slice/containerd.service'],
    ]),
    files: {
      '/etc/kubernetes/kubelet/config.json': JSON.stringify({
        kind: 'KubeletConfiguration',
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        cgroupDriver: 'systemd',
        containerRuntimeEndpoint: SOCKET,
        maxPods: 17,
      }),
      '/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf': JSON.stringify({
        kind: 'KubeletConfiguration',
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        maxPods: 58,
      }),
    },
    expected: {
      kubeconfig: '/var/lib/kubelet/kubeconfig',
      nodeName: 'ip-10-0-3-4.eu-west-1.compute.internal',
      runtime: SOCKET,
      maxPods: 58,
    },
  },
  {
    name: 'GKE, with a flag that another release has',
    process: kubelet([
      ...[
        '/home/kubernetes/bin/kubelet',
        '--v=2',
        '--cloud-provider=external',
        '--experimental-mounter-path=/home/kubernetes/containerized_mounter/mounter',
      ],
      ...[
        '--cert-dir=/var/lib/kubelet/pki/',
        '--kubeconfig=/var/lib/kubelet/kubeconfig',
        '--max-pods=110',
        '--volume-plugin-dir=/home/kubernetes/flexvolume',
      ],
      ...[
        '--node-status-max-images=25',
        '--bootstrap-kubeconfig=/var/lib/kubelet/bootstrap-kubeconfig',
        '--config',
        '/home/kubernetes/kubelet-config.yaml',
      ],
      ...['--pod-sysctls=net.core.somaxconn=1024', '--container-runtime-endpoint=unix:///run/containerd/containerd.sock'],
    ]),
    files: {
      '/home/kubernetes/kubelet-config.yaml': CONFIG(
        'staticPodPath: /etc/kubernetes/manifests\nkubeReserved: {cpu: 70m, memory: 1Gi}\naFieldOfTomorrow: 1\n',
      ),
    },
    expected: { kubeconfig: '/var/lib/kubelet/kubeconfig', staticPods: '/etc/kubernetes/manifests', unread: ['--pod-sysctls'] },
  },
  {
    name: 'AKS, flags alone',
    process: kubelet([
      ...[
        '/opt/bin/kubelet',
        '--enable-server',
        '--node-labels=kubernetes.azure.com/role=agent',
        '--v=2',
        '--volume-plugin-dir=/etc/kubernetes/volumeplugins',
      ],
      ...[
        '--kubeconfig',
        '/var/lib/kubelet/kubeconfig',
        '--bootstrap-kubeconfig',
        '/var/lib/kubelet/bootstrap-kubeconfig',
        '--runtime-request-timeout=15m',
      ],
      ...[
        '--container-runtime-endpoint=unix:///run/containerd/containerd.sock',
        '--runtime-cgroups=/system.slice/containerd.service',
        '--cgroup-driver=systemd',
      ],
      ...[
        '--address=0.0.0.0',
        '--anonymous-auth=false',
        '--authorization-mode=Webhook',
        '--azure-container-registry-config=/etc/kubernetes/azure.json',
      ],
      ...[
        '--eviction-hard=memory.available<100Mi,nodefs.available<10%',
        '--max-pods=30',
        '--pod-manifest-path=/etc/kubernetes/manifests/',
        '--keep-terminated-pod-volumes=false',
      ],
    ]),
    files: {},
    expected: {
      kubeconfig: '/var/lib/kubelet/kubeconfig',
      cgroupDriver: 'systemd',
      maxPods: 30,
      staticPods: '/etc/kubernetes/manifests',
      runtime: SOCKET,
    },
  },
  {
    name: 'microk8s, whose kubelet is in kubelite',
    process: {
      comm: 'kubelite',
      words: ['/snap/microk8s/9044/kubelite', '--kubelet-args-file=/var/snap/microk8s/9044/args/kubelet', '--start-control-plane=true'],
    },
    files: {
      '/var/snap/microk8s/9044/args/kubelet': `# flags\n--resolv-conf=/run/systemd/resolve/resolv.conf\n--kubeconfig=\${SNAP_DATA}/credentials/kubelet.config\n--root-dir=\${SNAP_COMMON}/var/lib/kubelet\n--container-runtime-endpoint=\${SNAP_COMMON}/run/containerd.sock\n`,
    },
    expected: {
      ...{ kubeconfig: '/var/snap/microk8s/9044/credentials/kubelet.config', rootDir: '/var/snap/microk8s/common/var/lib/kubelet' },
      runtime: 'unix:///var/snap/microk8s/common/run/containerd.sock',
    },
  },
  {
    name: 'OpenShift, with CRI-O',
    process: kubelet([
      ...['/usr/bin/kubelet', '--config=/etc/kubernetes/kubelet.conf', '--bootstrap-kubeconfig=/etc/kubernetes/kubeconfig'],
      ...['--kubeconfig=/var/lib/kubelet/kubeconfig', '--container-runtime-endpoint=/var/run/crio/crio.sock'],
      ...['--runtime-cgroups=/system.slice/crio.service', '--node-labels=node-role.kubernetes.io/worker,node.openshift.io/os_id=rhcos'],
      ...['--node-ip=', '--minimum-container-ttl-duration=6m0s', '--cloud-provider=', '--hostname-override=', '--register-with-taints='],
      ...['--volume-plugin-dir=/etc/kubernetes/kubelet-plugins/volume/exec', '--system-reserved=cpu=500m,memory=1Gi', '--v=2'],
    ]),
    files: { '/etc/kubernetes/kubelet.conf': CONFIG('cgroupDriver: systemd\nstaticPodPath: /etc/kubernetes/manifests\nmaxPods: 250\n') },
    expected: {
      ...{ kubeconfig: '/var/lib/kubelet/kubeconfig', runtime: 'unix:///var/run/crio/crio.sock', cgroupDriver: 'systemd', maxPods: 250 },
      staticPods: '/etc/kubernetes/manifests',
    },
  },
  {
    name: 'hyperkube',
    process: {
      comm: 'hyperkube',
      words: ['/hyperkube', 'kubelet', '--kubeconfig=/etc/kubernetes/kubelet.conf', '--root_dir=/data/kubelet'],
    },
    files: {},
    expected: { kubeconfig: '/etc/kubernetes/kubelet.conf', rootDir: '/data/kubelet' },
  },
];
