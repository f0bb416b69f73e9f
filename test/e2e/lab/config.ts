/** The configuration files of one containerd instance. */
import { existsSync } from 'node:fs';

export interface InstanceNames {
  dir: string;
  socket: string;
  bridge: string;
  /** `10.x.y`: the first three parts of a /24. */
  subnet: string;
  pauseImage: string;
}

export function cniBinDir(): string {
  for (const dir of ['/usr/lib/cni', '/opt/cni/bin']) if (existsSync(`${dir}/bridge`)) return dir;
  throw new Error('no CNI plugins on this machine: run scripts/setup/e2e-setup.sh first');
}

export function containerdConfig(o: InstanceNames): string {
  return `version = 2
root = "${o.dir}/root"
state = "${o.dir}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]

[grpc]
  address = "${o.socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "${o.dir}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${o.pauseImage}"
  # Without CAP_SYS_RESOURCE a score below our own cannot be set, and every sandbox would fail.
  restrict_oom_score_adj = true
  # Network namespaces are mounted below our own folder, so that nothing of ours is elsewhere.
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  # Since containerd 1.7: devices of drivers of dynamic resources.
  enable_cdi = true
  cdi_spec_dirs = ["${o.dir}/cdi"]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniBinDir()}"
    conf_dir = "${o.dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${o.dir}/certs.d"
  # The handler that Kubernetes' own tests ask for. With one named, containerd 1.6 has no other.
${['runc', 'test-handler'].map((name) => `  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.${name}]\n    runtime_type = "io.containerd.runc.v2"`).join('\n')}
`;
}

export function cniConfig(o: InstanceNames): string {
  return JSON.stringify({
    cniVersion: '0.4.0',
    name: o.bridge,
    plugins: [
      {
        type: 'bridge',
        bridge: o.bridge,
        isGateway: true,
        ipMasq: false,
        ipam: {
          type: 'host-local',
          dataDir: `${o.dir}/ipam`,
          ranges: [[{ subnet: `${o.subnet}.0/24` }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  });
}
