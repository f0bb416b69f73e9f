/** What a cluster of kubeadm runs, as archives that `ctr images import` takes: programs of this machine, and stand-ins for addons. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { program } from '../../lab/cluster/controlPlane.ts';
import { busyboxFiles, dockerArchive, ROOT } from '../../lab/images.ts';
import type { TarEntry } from '../../lab/tar.ts';

const BIN: readonly TarEntry[] = ['usr/', 'usr/local/', 'usr/local/bin/'].map((path) => ({ kind: 'dir', path, mode: 0o755 }));
const file = (path: string, data: Uint8Array): TarEntry => ({ kind: 'file', path, data, mode: 0o755 });
const script = (path: string, lines: string): TarEntry => file(path, Buffer.from(`#!/bin/sh\n${lines}\n`));

/** The libraries that a program is linked with, where it is not static, and the folders above them. */
function librariesOf(path: string): TarEntry[] {
  let listed = '';
  try {
    listed = execFileSync('ldd', [path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return [];
  }
  const paths = [...listed.matchAll(/\s(\/\S+)/g)].flatMap(([, found]) => found ?? []);
  const folders = new Set(
    paths.flatMap((found) =>
      found
        .split('/')
        .slice(1, -1)
        .map((_, i, all) => `${all.slice(0, i + 1).join('/')}/`),
    ),
  );
  return [
    ...[...folders].map((folder): TarEntry => ({ kind: 'dir', path: folder, mode: 0o755 })),
    ...paths.map((found) => file(found.slice(1), readFileSync(found))),
  ];
}

/** kubeadm 1.36 gives etcd flags of 3.6. Debian's is 3.5: it does without them. */
const ETCD = `for a; do
  shift
  case $a in --feature-gates=*|--watch-progress-notify-interval=*) ;; *) set -- "$@" "$a" ;; esac
done
exec etcd-3.5 "$@"`;

function etcdFiles(assets?: string): TarEntry[] {
  const path = program('etcd', assets);
  const is35 = /Version: 3\.5/.test(execFileSync(path, ['--version'], { encoding: 'utf8' }));
  const data = readFileSync(path);
  const own = is35 ? [file('usr/local/bin/etcd-3.5', data), script('usr/local/bin/etcd', ETCD)] : [file('usr/local/bin/etcd', data)];
  return [...busyboxFiles(), ...BIN, ...librariesOf(path), ...own];
}

const FILTERS = ['iptables', 'iptables-save', 'iptables-restore', 'ip6tables', 'ip6tables-save', 'ip6tables-restore'];

/** What kube-proxy sets its rules by, of the packages iptables and nftables of this machine. */
export const RULE_PROGRAMS = ['/usr/sbin/xtables-nft-multi', '/usr/sbin/nft'];

export function kubeProxyArchive(reference: string, assets?: string): Buffer {
  const folder = '/usr/lib/x86_64-linux-gnu/xtables';
  const modules = readdirSync(folder).map((name) => `${folder}/${name}`);
  const layer: TarEntry[] = [
    ...busyboxFiles(),
    ...BIN,
    // Of the modules that kube-proxy's rules name, this one needs a library more.
    ...[...RULE_PROGRAMS, `${folder}/libxt_statistic.so`].flatMap(librariesOf),
    ...['usr/sbin/', 'usr/lib/', 'usr/lib/x86_64-linux-gnu/', 'usr/lib/x86_64-linux-gnu/xtables/'].map(
      (path): TarEntry => ({ kind: 'dir', path, mode: 0o755 }),
    ),
    ...RULE_PROGRAMS.map((path) => file(path.slice(1), readFileSync(path))),
    ...FILTERS.map((name): TarEntry => ({ kind: 'symlink', path: `usr/sbin/${name}`, target: 'xtables-nft-multi' })),
    ...modules.map((path) => file(path.slice(1), readFileSync(path))),
    file('usr/local/bin/kube-proxy', readFileSync(program('kube-proxy', assets))),
  ];
  return dockerArchive({ tags: [reference], layer });
}

/** CoreDNS itself, where its program is there: with kube-proxy, it reaches the API server. */
export const coredns = join(process.env.KUBEBUILDER_ASSETS ?? '', 'coredns');
export const corednsArchive = (reference: string): Buffer =>
  dockerArchive({ tags: [reference], layer: [...ROOT, file('coredns', readFileSync(coredns))], entrypoint: ['/coredns'] });

/** Answers the probes that kubeadm's manifest has for CoreDNS. No name is resolved by it. */
function corednsFiles(): TarEntry[] {
  return [
    ...busyboxFiles(),
    { kind: 'dir', path: 'w/', mode: 0o755 },
    file('w/health', Buffer.from('OK')),
    file('w/ready', Buffer.from('OK')),
    script('coredns', 'httpd -p 8181 -h /w; exec httpd -f -p 8080 -h /w'),
  ];
}

/** By the last part of their name, without version. */
const IMAGES: Readonly<Record<string, (assets?: string) => { layer: readonly TarEntry[]; entrypoint?: string[] }>> = {
  ...Object.fromEntries(
    (['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const).map((name) => [
      name,
      (assets?: string) => ({ layer: [...ROOT, ...BIN, file(`usr/local/bin/${name}`, readFileSync(program(name, assets)))] }),
    ]),
  ),
  etcd: (assets) => ({ layer: etcdFiles(assets) }),
  // Runs, and changes no rule: user-mode Linux has no iptables for IPv4.
  'kube-proxy': () => ({ layer: [...busyboxFiles(), ...BIN, script('usr/local/bin/kube-proxy', 'exec sleep 1000000')] }),
  coredns: () => ({ layer: corednsFiles(), entrypoint: ['/coredns'] }),
};

/**
 * Of one image of `kubeadm config images list`. Undefined for pause, which the machine has.
 * @param assets Folder of the programs, as `program` takes it.
 */
export function archiveOf(reference: string, assets?: string): Buffer | undefined {
  const name = /([^/:]+):[^/:]+$/.exec(reference)?.[1] ?? '';
  if (name === 'pause') return undefined;
  const make = IMAGES[name];
  if (make === undefined) throw new Error(`kubeadm asks for an image that nothing here makes: ${reference}`);
  return dockerArchive({ tags: [reference], ...make(assets) });
}
