/** The kind `oci` of the embedded runtime on real programs: as root, and as a user who is not. */
import { criConformance, type Recipe } from '../../../packages/runtimes/test/conformance.ts';
import { startRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import type { ContainerConfig } from '../../../src/machines/wire/cri.ts';
import { rotating } from '../../rotation.ts';
import { startRegistry } from '../lab/registry.ts';
import { canRunOci, makeRig, USER_ID } from './rig.ts';

const SCRIPTS: Record<Recipe, string> = {
  forever: 'trap "exit 143" TERM; while :; do sleep 100 & wait $!; done',
  stubborn: 'trap "" TERM; echo ready; while :; do sleep 100; done',
  exit3: 'exit 3',
  exit0: 'exit 0',
};
const recipe = (kind: Recipe): Partial<ContainerConfig> => ({ command: ['sh', '-c', SCRIPTS[kind]] });

// `containers.test.ts` of the same commit runs as the other.
for (const who of canRunOci() ? rotating('conformance of kind oci', ['user', 'root'] as const, 2) : []) {
  criConformance(`kind oci as ${who}`, async () => {
    const rig = makeRig();
    const user = who === 'user' ? { uid: USER_ID, launch: rig.launch, env: rig.env } : {};
    const runtime = await startRuntime({ ...user, args: ['--kind', 'oci'] });
    const registry = await startRegistry({ username: '', password: '' });
    return {
      cri: runtime.cri,
      image: registry.image,
      missingImage: '127.0.0.1:1/no/such:1',
      recipe,
      logDirectory: `${runtime.rootDir}/logs`,
      async close() {
        await runtime.close();
        await registry.stop();
        rig.close();
      },
    };
  });
}
