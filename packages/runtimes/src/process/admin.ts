/** What a person does with a whole process runtime from outside: look, and stop everything. Speaks CRI to it. */

import { existsSync } from 'node:fs';
import { CRI_ANNOTATIONS, CRI_LABELS } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { readStat, signal } from './container/procfs.ts';
import { answers, ensureProcessRuntime } from './ensure.ts';
import { loadServices } from './proto.ts';
import { layout, readPidFile } from './store/store.ts';

/** Grace where the pod names none, and the longest that a stop of everything waits for one container by default. */
const GRACE_SECONDS = 10;
const CALL_MS = 60_000;
const END_WITHIN_MS = 5000;
const ATTACH_ATTEMPTS_MAX = 5;

/** A CRI client on any unix socket. Close it. */
export function connectTo(socketPath: string) {
  const { runtime, image } = loadServices();
  const client = new Client(`unix://${socketPath}`, credentials.createInsecure(), { 'grpc.default_authority': 'localhost' });
  return {
    call<M extends CriMethod>(method: M, req: CriRequest<M>): Promise<CriResponse<M>> {
      const def = runtime[method] ?? image[method];
      if (def === undefined) return Promise.reject(new Error(`no CRI call ${method}`));
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          def.path,
          def.requestSerialize,
          def.responseDeserialize,
          req,
          { deadline: Date.now() + CALL_MS },
          (error, value) => {
            if (error) reject(error);
            else resolve(value as CriResponse<M>);
          },
        );
      });
    },
    close: () => client.close(),
  };
}

export interface StopAllOptions {
  say(line: string): void;
  execPath: string;
  entry: string;
  /** No container is given longer than this, whatever its pod asks for. Default 10. */
  graceSecondsMax?: number;
  /** Its images, too. */
  purge?: boolean;
}

/**
 * Stops and removes every pod of a root directory, then ends its runtime. A runtime that is not there but left state
 * is started for this. Stop the node daemon first: it would start its pods again.
 */
export async function stopAll(rootDir: string, o: StopAllOptions): Promise<{ pods: number }> {
  const l = layout(rootDir);
  if (!existsSync(l.base)) {
    o.say(`no embedded runtime was ever started below ${rootDir}`);
    return { pods: 0 };
  }
  const { cri, containers } = await attach(rootDir, l.socket, o);
  let pods = 0;
  try {
    await Promise.all(
      containers
        .filter((c) => c.state === 'CONTAINER_RUNNING')
        .map((c) => {
          const most = o.graceSecondsMax ?? GRACE_SECONDS;
          const asked = Number(c.annotations[CRI_ANNOTATIONS.podTerminationGracePeriod] ?? most);
          const timeout = Math.min(Number.isFinite(asked) && asked >= 0 ? asked : most, most);
          return cri.call('StopContainer', { containerId: c.id, timeout });
        }),
    );
    const { items } = await cri.call('ListPodSandbox', {});
    await Promise.all(items.map((s) => cri.call('RemovePodSandbox', { podSandboxId: s.id })));
    pods = items.length;
    if (o.purge === true) {
      const { images } = await cri.call('ListImages', {});
      await Promise.all(images.map(({ id }) => cri.call('RemoveImage', { image: { image: id } })));
    }
  } finally {
    cri.close();
  }
  const pid = readPidFile(l);
  if (pid > 0) signal(pid, 'SIGTERM');
  const deadlineMs = performance.now() + END_WITHIN_MS;
  while (pid > 0 && (readStat(pid)?.state ?? 'Z') !== 'Z' && performance.now() < deadlineMs)
    await new Promise((wake) => setTimeout(wake, 20));
  o.say(`${pods} ${pods === 1 ? 'pod' : 'pods'} stopped and removed; the embedded runtime has ended`);
  return { pods };
}

/**
 * A connection to the runtime, started where needed, and what it lists. One that was killed a moment ago may take a
 * connection with its last breath and never answer on it: such a one is asked for again.
 */
async function attach(rootDir: string, socketPath: string, o: StopAllOptions) {
  for (let attempt = 1; ; attempt += 1) {
    await ensureProcessRuntime({ rootDir, execPath: o.execPath, entry: o.entry, log: { info: () => undefined } });
    const cri = connectTo(socketPath);
    try {
      return { cri, containers: (await cri.call('ListContainers', {})).containers };
    } catch (error) {
      cri.close();
      if (attempt === ATTACH_ATTEMPTS_MAX || (error as Partial<ServiceError>).code !== status.UNAVAILABLE) throw error;
    }
  }
}

/** Prints one line per container, and says whether the runtime is up. */
export async function statusOf(rootDir: string, say: (line: string) => void): Promise<void> {
  const l = layout(rootDir);
  if (!(await answers(l.socket))) {
    say(`no embedded runtime serves ${rootDir}`);
    return;
  }
  const cri = connectTo(l.socket);
  try {
    const { info } = await cri.call('Status', { verbose: true });
    say(
      `embedded runtime of ${rootDir}: pid ${info.pid ?? '?'}, isolation ${info.isolation ?? '?'}, kind ${info.kind ?? '?'}${info.oci ? ` ${info.oci}` : ''}`,
    );
    const { containers } = await cri.call('ListContainers', {});
    for (const c of containers) {
      const pod = `${c.labels[CRI_LABELS.podNamespace] ?? '?'}/${c.labels[CRI_LABELS.podName] ?? '?'}`;
      say(`${c.id.slice(0, 12)}  ${c.state.slice('CONTAINER_'.length).padEnd(8)} ${pod}  ${c.metadata?.name ?? ''}`);
    }
  } finally {
    cri.close();
  }
}
