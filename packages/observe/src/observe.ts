/** `actorlet observe`: the whole tree on a node whose kubelet is another program. It changes nothing but its own folder. */

import { availableParallelism, loadavg } from 'node:os';
import { resolve } from 'node:path';
import { deathBundles } from '@actorlet/deaths/src/extension.ts';
import { createNode } from '@actorlet/kubelet/actors/node.ts';
import { boot, processIo } from '@actorlet/kubelet/boot/boot.ts';
import { runnable } from '@actorlet/kubelet/boot/config/runnable.ts';
import { isEmbeddedEndpoint } from '@actorlet/kubelet/boot/dependencies/embedded.ts';
import { createRealPorts } from '@actorlet/kubelet/boot/dependencies/realPorts.ts';
import { EXIT, StartError } from '@actorlet/kubelet/boot/errors.ts';
import * as configure from '@actorlet/kubelet/boot/steps/configure.ts';
import { need, type Step } from '@actorlet/kubelet/boot/steps/context.ts';
import { serveInspection } from '@actorlet/kubelet/boot/steps/inspection.ts';
import * as prepare from '@actorlet/kubelet/boot/steps/prepare.ts';
import { recordTheNode } from '@actorlet/kubelet/boot/steps/recording.ts';
import * as run from '@actorlet/kubelet/boot/steps/run.ts';
import { traceTheNode } from '@actorlet/kubelet/boot/steps/tracing.ts';
import type { KubeletConfiguration, NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { layout } from '@actorlet/runtimes/src/process/store/store.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { serveTheApi } from './api/step.ts';
import { observedPorts } from './border/border.ts';
import type { Expectations } from './border/expectations.ts';
import { findTheKubelet, observeArguments, watchTheKubelet } from './found/step.ts';
import { observer } from './observer.ts';

/** What the kubelet alone may do or listen at. The rest of its configuration holds for the observer, too. */
const NOT_HERE = {
  enableServer: false,
  healthzPort: 0,
  readOnlyPort: 0,
  serverTLSBootstrap: false,
  rotateCertificates: false,
  makeIPTablesUtilChains: false,
  shutdownGracePeriod: 0,
  shutdownGracePeriodCriticalPods: 0,
  shutdownGracePeriodByPodPriority: [],
  kubeletCgroups: '',
  systemCgroups: '',
  runOnce: false,
  /** The kubelet looks at its pods anew. What it does comes by the watch, and from the runtime. */
  syncFrequency: 600_000,
} as const satisfies Partial<KubeletConfiguration>;

/** A daemon's steps speak of its root directory. */
const ofOwnFolder = (step: Step): Step => ({
  name: step.name,
  async run(ctx) {
    try {
      return await step.run(ctx);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      const problems = error.problems.map(({ where, what }) => ({ where: where === '--root-dir' ? '--observe-dir' : where, what }));
      throw new StartError("the observer's folder cannot be used", problems);
    }
  },
});

/** A process that stands back may collect its heap at rest, each minute. */
const GROWN_BYTES = 4 << 20;

const configureTheObserver: Step = {
  name: 'configure the observer',
  run(ctx) {
    const loaded = need(ctx, 'loaded');
    const gates = need(ctx, 'gates');
    const { folder } = observeArguments(ctx.argv, { cwd: ctx.io.cwd });
    const { flags } = loaded;
    // Another release takes what this one refuses.
    for (const { where, what } of ctx.problems.splice(0))
      ctx.remarks.push({ level: 'warn', text: `the kubelet runs with what this tree does not: ${where}: ${what}` });
    const { config } = runnable({ config: loaded.config, flags, gates });
    ctx.state.nodeConfig = {
      flags: {
        ...flags,
        ...{ bootstrapKubeconfig: '', lockFile: '', faultInjection: false },
        ...{ imageCredentialProviderConfig: '', imageCredentialProviderBinDir: '' },
      },
      config: { ...config, ...NOT_HERE, containerRuntimeEndpoint: endpointOf({ flags, config }) },
      gates,
    };
    // The steps of the boot keep what is theirs below the root directory of the program that they are of.
    ctx.state.loaded = { ...loaded, flags: { ...flags, rootDir: folder } };
    return undefined;
  },
};

/** An embedded runtime is reached where its daemon has it listen: it is not started here. */
function endpointOf({ flags, config }: Pick<NodeConfig, 'flags' | 'config'>): string {
  const { containerRuntimeEndpoint: endpoint } = config;
  if (!isEmbeddedEndpoint(endpoint)) return endpoint;
  if (endpoint === 'embedded://hollow')
    throw new StartError('the runtime cannot be reached', [
      { where: 'containerRuntimeEndpoint', what: `${endpoint} is inside its kubelet` },
    ]);
  return `unix://${layout(resolve(flags.rootDir)).socket}`;
}

const observeSteps = (kubelet: Parameters<typeof watchTheKubelet>[0]): readonly Step[] => [
  findTheKubelet,
  configure.setFeatureGates,
  configureTheObserver,

  prepare.startLog,
  prepare.handleSignals,
  prepare.handleCrashes,
  run.keepWatch,
  ofOwnFolder(prepare.makeRootDirectory),
  ofOwnFolder(prepare.lockRootDirectory),
  prepare.connectNotify,

  run.noteWhatIsHandled,
  run.createDependencies,
  run.createTheNode,
  recordTheNode,
  traceTheNode,
  run.startTheNode,
  serveInspection,
  serveTheApi,
  run.notifyReady,
  run.feedSystemd,
  run.giveBackPages({ grownBytes: GROWN_BYTES, inBursts: false }),
  watchTheKubelet(kubelet),
  run.serve,
];

/** Resolves with the exit code. */
export async function observe(argv: readonly string[]): Promise<number> {
  let folder: string;
  let expectations: Expectations | undefined;
  try {
    ({ folder } = observeArguments(argv, { cwd: process.cwd() }));
  } catch (error) {
    process.stderr.write(`actorlet: ${messageOf(error)}\n`);
    return EXIT.fatal;
  }
  return boot(argv, process.env, {
    io: processIo(),
    steps: observeSteps({
      starts: () => expectations?.starts(),
      goesOn: () => expectations?.goesOn(),
      stops: () => expectations?.stops(),
    }),
    wiring: {
      async createPorts(config, input) {
        // Its own sockets and files are below its own folder.
        const real = await createRealPorts({ ...config, flags: { ...config.flags, rootDir: folder } }, input);
        const observed = observedPorts(real, { config, stateDir: folder, load: () => (loadavg()[0] ?? 0) / availableParallelism() });
        expectations = observed.expectations;
        return observed.ports;
      },
      createNode: (config, ports, options) => createNode(config, ports, { ...options, extensions: [deathBundles, observer, shownPages] }),
    },
  });
}
