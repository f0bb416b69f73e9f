/** One container: its bundle on disk, and the command that its shim runs. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { ContainerConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { ContainerPlan } from '../process/container/plan.ts';
import { MARK } from '../process/container/shim.ts';
import { signalNumber } from '../process/container/signals.ts';
import type { Layout, StoredSandbox } from '../process/store/store.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { checkPod, type HostFacts, pidNamespace, refuse, specOf } from './bundle/spec.ts';
import { makeGroup, parentOf } from './cgroups.ts';
import type { Records } from './images/records.ts';
import { namespacePid } from './infra.ts';
import { podFiles } from './pod.ts';
import type { Programs } from './programs.ts';
import type { OciPlan } from './rows.ts';
import { inTerminal, terminalFile, WITH_INPUT } from './terminal.ts';

/**
 * In a mount namespace of its own, which goes with the container: the overlay, then the runtime in this shell's place. With
 * `nodev`, devices of an image are none.
 */
const RUN = `mount -t overlay overlay -o "$1" "$2" || { echo "the overlay cannot be mounted" >&2; exit 125; }
shift 2
exec "$@"`;

export interface OciInput {
  id: string;
  config: ContainerConfig;
  sandbox: StoredSandbox;
  /** Pid of a running container's first process; null where it does not run. */
  innerPid(containerId: string): number | null;
}
export interface Where {
  host: HostFacts;
  records: Records;
  layout: Layout;
  programs: Programs;
  parent: string | null;
}

/** @throws RuntimeRefusal naming what cannot be had. */
export function planOci(i: OciInput, w: Where): { plan: ContainerPlan; imageId: string } {
  const { config, sandbox, id } = i;
  const { layout, records, host, programs } = w;
  const image = records.find(config.image.image);
  if (image === undefined) throw new RuntimeRefusal(CODE.notFound, `image ${JSON.stringify(config.image.image)} not found`);
  const dir = layout.containerDir(id);
  const rootfs = join(dir, 'rootfs');
  const { infra } = sandbox;
  const pod = infra ? namespacePid(infra) : null;
  const asked = { ...sandbox.namespaces, ...config.linux?.securityContext?.namespaceOptions };
  checkPod({ namespaceOptions: asked });
  const cgroupsPath = w.parent === null ? null : join(parentOf(sandbox.cgroupParent, w.parent, host), id, 'run');
  const shared = (mode: string | undefined, kind: 'ipc' | 'net'): string | null =>
    mode === 'NODE' ? null : pod === null ? '' : `/proc/${pod}/ns/${kind}`;
  const spec = specOf({
    ...{ config, image, rootfs, host, cgroupsPath },
    imageRootfs: records.rootfs(image.id),
    hostname: sandbox.hostname || hostname(),
    namespaces: {
      pid: pidNamespace(asked, { pod: infra?.pid === true ? pod : null, target: i.innerPid }),
      ipc: shared(asked.ipc, 'ipc'),
      network: shared(asked.network, 'net'),
    },
    files: { ready: layout.ready(id), ...podFiles(layout, sandbox.id) },
    rootfsOf: (ref) => {
      const found = records.find(ref);
      return found === undefined ? null : records.rootfs(found.id);
    },
    mark: `${MARK}=${id}`,
  });
  // Names without a comma or a colon: the folders of this runtime are hexadecimal, but its root directory is the user's.
  const lower = records.rootfs(image.id);
  if (/[,:\\]/.test(`${lower}${dir}`))
    refuse(`the root directory has a comma, a colon or a backslash in its name (${layout.base}): choose another`);
  const overlay = `nodev,${host.root ? '' : 'userxattr,'}lowerdir=${lower},upperdir=${join(dir, 'upper')},workdir=${join(dir, 'work')}`;
  const run = [programs.runtime.path, '--root', join(dir, 'run'), ...noCgroups(programs, cgroupsPath), 'run', '--bundle', dir, id];
  const input = config.stdin === true || config.tty === true ? { tty: config.tty === true, once: config.stdinOnce === true } : undefined;
  const command = input === undefined ? run : withInput(run, { tty: input.tty, dir, sh: host.sh });
  const inside = ['--mount', '--propagation', 'slave', '--', host.sh, '-c', RUN, 'actorlet-oci', overlay, rootfs, ...command];
  return {
    imageId: image.id,
    plan: {
      env: { PATH: process.env.PATH ?? '', [MARK]: id },
      oci: { imageId: image.id, cgroupsPath, process: spec.process, spec, ...(input === undefined ? {} : { input }) },
      shim: {
        argv: [programs.unshare, ...inside],
        ...{ cwd: '/', hostname: '', binds: [], credentials: {}, oddEnv: [] },
        namespaces: { pid: false, mount: false, uts: false, ipc: false },
        stopSignal: stopSignalOf(config, image.config.stopSignal),
        saysReady: true,
      },
    },
  };
}

/** What the runtime has to say of a start goes to stderr, as ever: in a terminal it would be output. */
function withInput(run: readonly string[], o: { tty: boolean; dir: string; sh: string }): string[] {
  const errors = join(o.dir, 'err');
  const command = o.tty ? inTerminal(run, { name: terminalFile(o.dir), size: null, opens: '', errors }) : run;
  return [o.sh, '-c', WITH_INPUT, 'actorlet-input', join(o.dir, 'in'), ...command];
}

/** runc finds out by itself. */
export const noCgroups = (programs: Programs, cgroupsPath: string | null): string[] =>
  programs.runtime.name !== 'crun' ? [] : [`--cgroup-manager=${cgroupsPath === null ? 'disabled' : 'cgroupfs'}`];

function stopSignalOf(config: ContainerConfig, ofImage: string): number {
  if (config.stopSignal && config.stopSignal !== 'RUNTIME_DEFAULT') return signalNumber(config.stopSignal);
  const number = Number(ofImage || Number.NaN);
  if (Number.isInteger(number) && number > 0 && number <= 64) return number;
  return signalNumber(ofImage === '' ? undefined : ofImage.startsWith('SIG') ? ofImage : `SIG${ofImage}`);
}

/** Its folder is there. What is only needed now is not kept in its state. */
export function prepareContainer(plan: OciPlan, o: { id: string; layout: Layout }): void {
  const dir = o.layout.containerDir(o.id);
  for (const name of ['rootfs', 'upper', 'work', 'run'])
    mkdirSync(join(dir, name), { mode: name === 'upper' || name === 'rootfs' ? 0o755 : 0o700 });
  if (plan.cgroupsPath !== null) makeGroup(plan.cgroupsPath);
  writeFileSync(join(dir, 'config.json'), JSON.stringify(plan.spec), { mode: 0o600 });
  delete plan.spec;
}
