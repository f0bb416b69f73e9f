/** `actorlet fleet FILE --seeds N`: each seed on an API server of its own, with the controller of the command line. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { FleetSpec } from '../../file.ts';
import { Fleet } from '../../fleet.ts';
import { Cluster } from '../../run/cluster.ts';
import { type FleetReport, FleetRun } from '../../run.ts';
import { limited } from '../api/limited.ts';
import type { Args } from '../args.ts';
import type { Inputs } from '../inputs.ts';
import { surroundingsOf } from '../surroundings.ts';
import { quietLog } from '../world.ts';
import { type Controller, startController } from './controller.ts';
import { fairClock } from './fairClock.ts';
import { runSeeds, type SeedsReport } from './seeds.ts';

export interface SeedsCommand {
  args: Args;
  inputs: Inputs;
  signal: AbortSignal;
  say(text: string): void;
}

export async function seedsReport({ args, inputs, signal, say }: SeedsCommand): Promise<SeedsReport> {
  const dir = await mkdtemp(join(tmpdir(), 'actorlet-seeds-'));
  const logFile = join(dir, 'controller.log');
  if (args.controller.length > 0) say(`log of the controller: ${logFile}\n`);
  let report: SeedsReport | undefined;
  try {
    report = await runSeeds({
      ...{ spec: inputs.spec, seeds: args.seeds, say, nowMs: () => performance.now() },
      run: (spec) => oneRun(spec, { args, inputs, signal, say, dir, logFile }),
    });
    return report;
  } finally {
    // The log says why it broke.
    if (args.controller.length === 0 || (report !== undefined && report.broken === null)) await rm(dir, { recursive: true, force: true });
  }
}

/** On an API server that nothing was done to. Null: it was interrupted. */
async function oneRun(spec: FleetSpec, o: SeedsCommand & { dir: string; logFile: string }): Promise<FleetReport | null> {
  const { args, inputs, signal, say, dir, logFile } = o;
  const clock = fairClock(createClock());
  const around = await surroundingsOf({
    ...{ ...args, seed: spec.seed, socket: '', port: 0, log: quietLog, signal, proxied: true, faultClock: clock },
    ...{ ownKubeconfig: join(dir, 'kubeconfig'), say: () => {} },
  }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    return null;
  });
  if (around === null) return null;
  const { world, proxy } = around;
  const fleet = new Fleet(spec, world);
  let controller: Controller | undefined;
  try {
    await around.announce();
    if (args.controller.length > 0) controller = startController({ command: args.controller, kubeconfig: around.kubeconfig, logFile, say });
    await controller?.asks(proxy, signal);
    const run = new FleetRun({
      ...{ fleet, spec, proxy, data: around.data, scenarios: inputs.scenarios, manifests: inputs.manifests, clock, signal },
      cluster: new Cluster(world.admin, { limited, clock, signal, welcome: around.podsWelcome }),
      ...{ onLook: () => {}, onTrouble: () => {} },
      onStep: ({ what, troubles: [trouble] }) => {
        if (trouble !== undefined) say(`step ${what} failed: ${trouble.node}: ${trouble.why}\n`);
      },
    });
    const report = await run.toTheEnd();
    return signal.aborted ? null : report;
  } finally {
    await controller?.stop();
    await fleet.stop();
    await around.close();
  }
}
