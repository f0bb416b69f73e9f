/** The node of a long run: the real daemon on a real containerd, against the embedded API server, below a control group of its own. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCgroups } from '../../src/boot/dependencies/cgroups/cgroups.ts';
import { buildDaemon, createDaemon } from '../../test/e2e/daemon.ts';
import { startContainerd } from '../../test/e2e/lab/containerd.ts';
import { cleanUpOnce } from '../lib/cleanUp.ts';
import { SoakApi } from './api.ts';
import type { Soaked } from './churn.ts';

export interface SoakNode {
  soaked: Soaked;
  /** Of all pods. */
  group: string;
  /** Resolves with what stayed of the lab. */
  cleanUp(): Promise<readonly string[]>;
}

/** @param o `program`: `bin/actorlet` of an earlier state. `config`: more of the kubelet's configuration. The daemon is not started yet. */
export async function soakNode(o: {
  seed: number;
  program: string | undefined;
  config?: Readonly<Record<string, unknown>>;
}): Promise<SoakNode> {
  await buildDaemon();
  const group = `actorlet-soak-${process.pid}`;
  const cgroups = createCgroups();
  await cgroups.create(group);
  const api = await SoakApi.start(o.seed);
  const lab = await startContainerd();
  const kubeconfig = join(lab.dir, 'soak.kubeconfig');
  writeFileSync(kubeconfig, api.kubeconfig, { mode: 0o600 });
  const config = { cgroupsPerQOS: true, enforceNodeAllocatable: ['pods'], cgroupRoot: group, contentType: 'application/json', ...o.config };
  const daemon = await createDaemon(lab, config, [`--kubeconfig=${kubeconfig}`, '--node-ip=127.0.0.1']);
  let stays: readonly string[] = [];
  const stop = cleanUpOnce(async () => {
    await daemon.dispose();
    await api.stop();
    stays = await lab.stop();
    await cgroups.kill(group);
    await cgroups.remove(group);
    return stays;
  });
  return { soaked: { api, lab, daemon, program: o.program }, group, cleanUp: () => stop().then(() => stays) };
}
