/** Pods that come and go, and what befalls the node meanwhile. */

import type { Pod } from '../../src/machines/kube/types.ts';
import type { Daemon } from '../../test/e2e/daemon.ts';
import { NODE_NAME } from '../../test/e2e/daemon.ts';
import type { Containerd } from '../../test/e2e/lab/containerd.ts';
import { until } from '../../test/e2e/lab/ports.ts';
import { containers } from '../../test/e2e/runtime.ts';
import type { SoakApi } from './api.ts';

const PODS = '/api/v1/namespaces/default/pods';
const IMAGE = 'actorlet.test/busybox:1';
const STAY = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
/** A machine that is busy with other things is no failure. */
const WAIT = { timeoutMs: 300_000, everyMs: 500 };

export interface Soaked {
  api: SoakApi;
  lab: Containerd;
  daemon: Daemon;
  /** Of an earlier state, until the upgrade. */
  program: string | undefined;
}

export const start = ({ daemon, program }: Soaked): Promise<void> => daemon.start(program === undefined ? {} : { program });

const sh = (script: string, more: object = {}) => ({ name: 'main', image: IMAGE, command: ['sh', '-c', script], ...more });
const probe = (file: string) => ({ exec: { command: ['test', '-e', file] }, periodSeconds: 2, timeoutSeconds: 30 });

/** Of each kind what there is for a node to set up and to take down. `done`: what it comes to. */
const KINDS: Readonly<Record<string, { spec: object; comesTo: 'Ready' | 'Succeeded' | 'restarts' }>> = {
  plain: { spec: { containers: [sh(STAY)] }, comesTo: 'Ready' },
  volumes: {
    spec: {
      containers: [
        sh(`cp /settings/value /scratch && ${STAY}`, {
          volumeMounts: ['settings', 'scratch', 'memory', 'about'].map((name) => ({ name, mountPath: `/${name}` })),
          readinessProbe: probe('/scratch/value'),
        }),
      ],
      volumes: [
        { name: 'settings', configMap: { name: 'settings' } },
        { name: 'scratch', emptyDir: {} },
        { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        { name: 'about', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
      ],
    },
    comesTo: 'Ready',
  },
  several: {
    spec: {
      initContainers: [
        { ...sh(STAY), name: 'beside', restartPolicy: 'Always' },
        { ...sh('echo first'), name: 'first' },
      ],
      containers: [sh(`touch /tmp/up; ${STAY}`, { startupProbe: probe('/tmp/up'), livenessProbe: probe('/tmp/up') })],
    },
    comesTo: 'Ready',
  },
  once: { spec: { restartPolicy: 'Never', containers: [sh('echo done')] }, comesTo: 'Succeeded' },
  falls: { spec: { containers: [sh('echo falls; exit 3')] }, comesTo: 'restarts' },
};

export async function make({ api }: Soaked, name: string, kind: string): Promise<void> {
  const { spec } = KINDS[kind] ?? {};
  await api.ask('POST', PODS, {
    body: {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { kind } } },
      spec: { nodeName: NODE_NAME, terminationGracePeriodSeconds: 2, automountServiceAccountToken: false, ...spec },
    },
  });
}

export const pods = async ({ api }: Soaked): Promise<Pod[]> => (await api.ask<{ items: Pod[] }>('GET', PODS))?.items ?? [];

function isThere(pod: Pod): boolean {
  const { phase, conditions = [], containerStatuses = [] } = pod.status;
  switch (KINDS[pod.metadata.labels?.kind ?? '']?.comesTo) {
    case 'Ready':
      return conditions.some((c) => c.type === 'Ready' && c.status === 'True');
    case 'Succeeded':
      return phase === 'Succeeded';
    default:
      return containerStatuses.some((c) => c.restartCount > 0);
  }
}

/** One of each kind under this name, until each is what it comes to. */
export async function comes(soaked: Soaked, name: string, during: () => Promise<void>): Promise<void> {
  for (const kind of Object.keys(KINDS)) await make(soaked, `${name}-${kind}`, kind);
  await during();
  await soaked.daemon.wait(
    `the pods of ${name}`,
    async () => {
      const mine = (await pods(soaked)).filter((p) => p.metadata.name.startsWith(`${name}-`));
      return mine.length === Object.keys(KINDS).length && mine.every(isThere);
    },
    WAIT,
  );
}

/** Until neither the API server nor the runtime has anything of them. */
export async function goes(soaked: Soaked, name: string): Promise<void> {
  for (const kind of Object.keys(KINDS)) await soaked.api.ask('DELETE', `${PODS}/${name}-${kind}`);
  await soaked.daemon.wait(
    `the end of ${name}`,
    async () => {
      const left = (await pods(soaked)).some((p) => p.metadata.name.startsWith(`${name}-`));
      return !left && !(await containers(soaked.lab)).some((c) => c.pod.startsWith(`${name}-`));
    },
    WAIT,
  );
}

const away = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const AWAY_MS = 6_000;

/** What befalls a node. None of it may cost a pod that runs anything. */
export const TROUBLES: Readonly<Record<string, (soaked: Soaked) => Promise<void>>> = {
  nothing: async () => {},
  'a partition': async ({ api }) => {
    api.weather = 'silent';
    await away(AWAY_MS);
    api.weather = 'well';
  },
  'connections refused': async ({ api }) => {
    api.weather = 'refused';
    await away(AWAY_MS);
    api.weather = 'well';
  },
  'a runtime that hangs': async ({ lab }) => {
    await lab.freeze(true);
    await away(AWAY_MS);
    await lab.freeze(false);
  },
  'a runtime that falls': async ({ lab }) => {
    await lab.kill();
    await away(AWAY_MS / 3);
    await lab.start();
  },
  questions: async ({ daemon }) => {
    for (const path of ['/pods', '/stats/summary', '/metrics', '/metrics/cadvisor', '/metrics/resource'])
      for (let i = 0; i < 5; i++) await (await fetch(`${daemon.readOnlyUrl}${path}`, { signal: AbortSignal.timeout(30_000) })).text();
    await daemon.ctl('why', 'node');
  },
  'a kubelet killed with -9': async (soaked) => {
    await soaked.daemon.end('SIGKILL');
    await start(soaked);
  },
  'a kubelet restarted': async (soaked) => {
    await soaked.daemon.end('SIGTERM');
    await start(soaked);
  },
};
/** They begin another process, whose memory is another line. */
export const RESTARTS: readonly string[] = ['a kubelet killed with -9', 'a kubelet restarted'];

/** Pods that stay: as they were, by container and since when they are Ready. */
export async function steadyLives(soaked: Soaked): Promise<string[]> {
  const mine = (await pods(soaked)).filter((p) => p.metadata.name.startsWith('steady-'));
  return mine
    .map(({ metadata, status }) => {
      const ready = status.conditions?.find((c) => c.type === 'Ready');
      const of = status.containerStatuses?.map((c) => `${c.containerID} ${c.restartCount}`).join();
      return `${metadata.name} ${ready?.status} since ${ready?.lastTransitionTime} ${of}`;
    })
    .sort();
}

export async function makeSteady(soaked: Soaked): Promise<void> {
  await soaked.api.ask('POST', '/api/v1/namespaces/default/configmaps', {
    body: { metadata: { name: 'settings' }, data: { value: 'one' } },
  });
  const kinds = ['plain', 'volumes', 'several'];
  for (const kind of kinds) await make(soaked, `steady-${kind}`, kind);
  await until('the pods that stay', async () => (await pods(soaked)).filter(isThere).length === kinds.length, WAIT);
}
