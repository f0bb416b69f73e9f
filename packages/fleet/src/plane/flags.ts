/** The flags of each program of a local control plane. Pure. */
import type { ProgramName } from './messages.ts';

/** Key and certificate, as paths. */
export interface PairFiles {
  certFile: string;
  keyFile: string;
}

export interface PlaneFiles {
  /** Everything of it is below this folder. */
  dir: string;
  ca: PairFiles;
  /** It alone signs what etcd lets in: who has a client certificate of the API server has none of etcd. */
  etcdCa: PairFiles;
  etcd: PairFiles;
  etcdClient: PairFiles;
  serving: PairFiles;
  kubeletClient: PairFiles;
  /** Signs tokens of service accounts. */
  accounts: { privateFile: string; publicFile: string };
  kubeconfigs: { 'kube-controller-manager': string; 'kube-scheduler': string };
}

export interface PlaneFlags {
  files: PlaneFiles;
  ports: { etcd: number; api: number };
  /** Of the release, `1.Y`. */
  minor: number;
  /** Data that nobody needs after a power cut: etcd does not wait for the disk. */
  throwAway: boolean;
  /** Without a controller manager no namespace has a service account: pods are let in without one. */
  accounts: boolean;
}

export const LOOPBACK = '127.0.0.1';
export const SERVICE_RANGE = '10.251.0.0/24';
/** The first address of it. */
export const SERVICE_ADDRESS = '10.251.0.1';
const ISSUER = 'https://kubernetes.default.svc';
/** A Deployment of hundreds of pods takes seconds with the default of 20 requests a second. */
const CLIENT_LIMITS = ['--kube-api-qps=200', '--kube-api-burst=400'];
/** Kubernetes before 1.24 had ports without TLS, and opens them unless told not to; later ones refuse the flag. */
const PLAIN_PORTS_BEFORE = 24;

/** `more`: of the caller; of a flag given twice the last counts. */
export function flagsOf(name: ProgramName, o: PlaneFlags, more: readonly string[] = []): string[] {
  return [...FLAGS[name](o), ...more];
}

const noPlainPort = ({ minor }: PlaneFlags, flag: string): string[] => (minor < PLAIN_PORTS_BEFORE ? [flag] : []);

const FLAGS: Record<ProgramName, (o: PlaneFlags) => string[]> = {
  etcd: ({ files: { dir, etcd, etcdCa }, ports, throwAway }) => {
    const url = `https://${LOOPBACK}:${ports.etcd}`;
    // Nobody connects to the port for peers: there are none.
    const peers = `https://${LOOPBACK}:0`;
    return [
      `--data-dir=${dir}/etcd`,
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=${peers}`,
      ...['', 'peer-'].flatMap((of) => [
        `--${of}cert-file=${etcd.certFile}`,
        `--${of}key-file=${etcd.keyFile}`,
        `--${of}trusted-ca-file=${etcdCa.certFile}`,
        `--${of}client-cert-auth`,
      ]),
      '--log-level=warn',
      ...(throwAway ? ['--unsafe-no-fsync'] : []),
    ];
  },
  'kube-apiserver': (o) => {
    const { files, ports } = o;
    return [
      `--etcd-servers=https://${LOOPBACK}:${ports.etcd}`,
      `--etcd-cafile=${files.etcdCa.certFile}`,
      `--etcd-certfile=${files.etcdClient.certFile}`,
      `--etcd-keyfile=${files.etcdClient.keyFile}`,
      `--secure-port=${ports.api}`,
      `--bind-address=${LOOPBACK}`,
      // A machine without a network has no other address, and no pod asks for this one.
      `--advertise-address=${LOOPBACK}`,
      '--endpoint-reconciler-type=none',
      ...noPlainPort(o, '--insecure-port=0'),
      `--cert-dir=${files.dir}/pki`,
      `--tls-cert-file=${files.serving.certFile}`,
      `--tls-private-key-file=${files.serving.keyFile}`,
      `--client-ca-file=${files.ca.certFile}`,
      `--kubelet-client-certificate=${files.kubeletClient.certFile}`,
      `--kubelet-client-key=${files.kubeletClient.keyFile}`,
      '--kubelet-preferred-address-types=InternalIP,Hostname',
      `--service-account-issuer=${ISSUER}`,
      `--service-account-signing-key-file=${files.accounts.privateFile}`,
      `--service-account-key-file=${files.accounts.publicFile}`,
      `--api-audiences=${ISSUER}`,
      '--authorization-mode=Node,RBAC',
      '--enable-bootstrap-token-auth',
      '--enable-admission-plugins=NodeRestriction',
      ...(o.accounts ? [] : ['--disable-admission-plugins=ServiceAccount']),
      '--allow-privileged',
      `--service-cluster-ip-range=${SERVICE_RANGE}`,
    ];
  },
  'kube-controller-manager': (o) => [
    `--kubeconfig=${o.files.kubeconfigs['kube-controller-manager']}`,
    // It ends 10 s after an API server that went away, and is started again. One that goes on judges nodes by what it last saw: its
    // watches wait up to a minute for their next try, and nodes are NotReady after 50 s.
    '--leader-elect=true',
    ...noPlainPort(o, '--port=0'),
    '--secure-port=0',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${o.files.accounts.privateFile}`,
    `--root-ca-file=${o.files.ca.certFile}`,
    `--cluster-signing-cert-file=${o.files.ca.certFile}`,
    `--cluster-signing-key-file=${o.files.ca.keyFile}`,
    ...CLIENT_LIMITS,
  ],
  'kube-scheduler': (o) => [
    `--kubeconfig=${o.files.kubeconfigs['kube-scheduler']}`,
    '--leader-elect=false',
    ...noPlainPort(o, '--port=0'),
    '--secure-port=0',
    ...CLIENT_LIMITS,
  ],
};
