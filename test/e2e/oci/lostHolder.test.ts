/** The process that holds the namespaces of OCI containers is ended while they run. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadImages } from '@actorlet/admin/src/images.ts';
import { signal } from '@actorlet/runtimes/src/process/container/procfs.ts';
import { layout } from '@actorlet/runtimes/src/process/store/store.ts';
import { describe, expect, it } from 'vitest';
import { calls, containerConfig, podConfig } from '../../../packages/runtimes/test/conformance.ts';
import { startRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import { canRunOci, makeRig } from './rig.ts';

describe.runIf(canRunOci())('kind oci without its holder', () => {
  it('starts, and names the processes that it cannot reach', async () => {
    const rig = makeRig();
    const runtime = await startRuntime({ args: ['--kind', 'oci'] });
    try {
      const c = calls(runtime.cri);
      await loadImages(join(runtime.rootDir, 'actorlet.sock'), { file: rig.archive, name: '' });
      const pod = podConfig('lost');
      const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
      const config = containerConfig('main', 'busybox', { command: ['sleep', '1000'], args: [] });
      await c.run(pod, config, podSandboxId);
      const { pid } = JSON.parse(readFileSync(layout(runtime.rootDir).holder, 'utf8')) as { pid: number };
      signal(pid, 'SIGKILL');
      await runtime.kill();
      await runtime.start();
      const [, holder, pids = ''] =
        /process (\d+), which held the namespaces of 1 running containers, .*kill -KILL (\d+)/.exec(runtime.log()) ?? [];
      expect(holder).toBe(String(pid));
      expect(readFileSync(`/proc/${pids}/cmdline`, 'utf8')).toContain('sleep');
      signal(Number(pids), 'SIGKILL');
      await c.call('RemovePodSandbox', { podSandboxId });
    } finally {
      await runtime.close();
      rig.close();
    }
  });
});
