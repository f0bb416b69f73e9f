/** Environments that no process can be started with, on a real containerd and its kernel. */
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import { EXEC_STRING_BYTES_MAX } from '../../../src/machines/pod/execLimits.ts';
import { type Cri, CriError } from '../../../src/ports/ports.ts';
import type { Daemon } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { call, containerConfig, sandboxConfig } from '../lab/pods.ts';
import { quietLog, realClock, until } from '../lab/ports.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';

let lab: Containerd;
let daemon: Daemon;
let cri: Cri;

onContainerd((made) => {
  ({ lab, daemon } = made);
  cri = createGrpcCri({ endpoint: lab.endpoint, log: quietLog, clock: realClock });
});
afterAll(() => cri?.close());

const residentMiB = () => Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1]) / 1024;
/** With `L=`, and the zero byte, what Linux takes as one string. */
const LONGEST = 'x'.repeat(EXEC_STRING_BYTES_MAX - 'L='.length - 1);

describe('the daemon', () => {
  it('refuses variables that double 27 times, by name, and takes no memory for them', async () => {
    daemon.put('good.yaml', manifest('good', [steady()]));
    await daemon.phase('good', 'Running');
    const before = residentMiB();
    const env = Array.from({ length: 27 }, (_, i) => ({ name: `V${i}`, value: i === 0 ? '0123456789abcdef' : `$(V${i - 1})$(V${i - 1})` }));
    daemon.put('bomb.yaml', manifest('bomb', [steady('main', { env })]));
    const waiting = await daemon.wait('its status to tell', async () => {
      const state = (await daemon.pod('bomb'))?.status.containerStatuses?.[0]?.state.waiting;
      return state?.reason === 'CreateContainerConfigError' && state;
    });
    expect(waiting.message).toBe('container "main": env "V13": longer than the 131072 bytes that Linux takes as one string');
    expect((await daemon.why('bomb')).lines.join('\n')).toContain('env "V13"');
    const grown = residentMiB() - before;
    console.log(`resident at its most: ${before.toFixed(0)} MiB before, ${grown.toFixed(0)} MiB more after`);
    expect(grown).toBeLessThan(100);
    expect(daemon.alive()).toBe(true);
    daemon.remove('bomb.yaml');
  });

  it('starts what the kernel takes: one string of 128 KiB with its name and zero byte', async () => {
    const script = 'echo -n "$L" | wc -c > /dev/termination-log';
    const spec = { restartPolicy: 'Never' as const };
    daemon.put('full.yaml', manifest('full', [sh('main', script, { env: [{ name: 'L', value: LONGEST }] })], { spec }));
    await daemon.phase('full', 'Succeeded');
    expect((await daemon.pod('full'))?.status.containerStatuses?.[0]?.state.terminated?.message).toBe(`${LONGEST.length}\n`);
    daemon.remove('full.yaml');
  });
});

describe('containerd and the kernel', () => {
  it('do not run it with one byte more, and a request above 16 MiB is a certain failure', async () => {
    // It would remove a pod that it does not know.
    await daemon.end('SIGTERM');
    const sandbox = sandboxConfig({ name: 'direct', uid: 'uid-direct', cgroupParent: lab.cgroupParent });
    const { podSandboxId } = await call(cri, 'RunPodSandbox', { config: sandbox });
    const attempt = async (name: string, values: string[]) => {
      const config = {
        ...containerConfig({ name, pod: 'direct', uid: 'uid-direct', command: ['true'] }),
        envs: values.map((value, i) => ({ key: i === 0 ? 'L' : `L${i}`, value })),
      };
      const { containerId } = await call(cri, 'CreateContainer', { podSandboxId, config, sandboxConfig: sandbox });
      await call(cri, 'StartContainer', { containerId });
      return await until(`${name} to end`, async () => {
        const { status } = await call(cri, 'ContainerStatus', { containerId });
        return status?.state === 'CONTAINER_EXITED' && { code: status.exitCode };
      });
    };
    expect((await attempt('fits', [LONGEST])).code).toBe(0);
    // The runtime hears of it when it has let go of the container's first process.
    expect((await attempt('longer', [`${LONGEST}x`])).code).not.toBe(0);
    const error = await attempt(
      'large',
      Array.from({ length: 17 }, () => 'x'.repeat(1024 ** 2)),
    ).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(CriError);
    expect(error).toMatchObject({ code: 8, outcome: 'failed' });
  });
});
