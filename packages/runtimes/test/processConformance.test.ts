/** The process runtime against the conformance suite: as this user, and as plain processes. */
import type { ContainerConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import { criConformance, type Recipe } from './conformance.ts';
import { startRuntime } from './processRuntime.ts';

const SCRIPTS: Record<Recipe, string> = {
  forever: 'while :; do sleep 100; done',
  stubborn: 'trap "" TERM; echo ready; while :; do sleep 100; done',
  exit3: 'exit 3',
  exit0: 'exit 0',
};
const recipe = (kind: Recipe): Partial<ContainerConfig> => ({ command: ['sh', '-c', SCRIPTS[kind]] });

for (const args of [[], ['--isolation', 'plain']]) {
  criConformance(`process runtime ${args.join(' ')}`, async () => {
    const runtime = await startRuntime({ args });
    return {
      cri: runtime.cri,
      image: 'actorlet.dev/host:latest',
      missingImage: 'docker.io/library/nginx:latest',
      recipe,
      logDirectory: `${runtime.rootDir}/logs`,
      close: () => runtime.close(),
    };
  });
}
