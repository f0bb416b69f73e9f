/** How long a node's memory is below its threshold before the pod that took it is killed. */
import { createHost } from '../../src/boot/dependencies/machine/host.ts';
import { BUSYBOX_IMAGES } from '../../test/e2e/lab/images.ts';
import { LONG_MS, type Member, withSamples } from './member.ts';
import { say, sleep, until } from './report.ts';

/** Of what is free at the start: so much may go before the threshold is crossed. */
const ROOM_BYTES = 300 * 2 ** 20;
/** What the pod writes into its volume in memory. */
const TAKEN_MIB = 600;
const LOOK_EVERY_MS = 2;
const call = { timeoutMs: 10_000, signal: new AbortController().signal };

function greedy(name: string) {
  const command = ['sh', '-c', `trap "exit 0" TERM; dd if=/dev/zero of=/memory/taken bs=1M count=${TAKEN_MIB} & wait; sleep 3600 & wait`];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      containers: [
        {
          name: 'main',
          image: BUSYBOX_IMAGES[1],
          imagePullPolicy: 'IfNotPresent',
          command,
          resources: { requests: { memory: '1Mi' } },
          volumeMounts: [{ name: 'memory', mountPath: '/memory' }],
        },
      ],
      volumes: [{ name: 'memory', emptyDir: { medium: 'Memory' } }],
    },
  };
}

/** One pod at a time, which obeys TERM, with `kernelMemcgNotification`. The time of the kill is what the runtime recorded as the container's end. */
export async function evicted(bench: Member, samples: number): Promise<object> {
  const { memory } = createHost();
  if (memory === undefined) throw new Error('this machine does not tell its memory');
  const available = (): number => memory().availableBytes;
  const threshold = available() - ROOM_BYTES;
  const { daemon, view, lab } = bench;
  const restart = async (config: Record<string, unknown>): Promise<void> => {
    await daemon.end('SIGTERM');
    daemon.configure(config);
    await daemon.start();
  };
  // Without the notification, memory is looked at every 10 s, as by the reference.
  await restart({
    evictionHard: { 'memory.available': String(threshold) },
    evictionPressureTransitionPeriod: '1s',
    kernelMemcgNotification: true,
  });
  const endOf = async (name: string): Promise<number | undefined> => {
    const { containers } = await lab.cri.call('ListContainers', {}, call);
    const found = containers.find((c) => c.labels['io.kubernetes.pod.name'] === name);
    if (found === undefined) return undefined;
    const { status } = await lab.cri.call('ContainerStatus', { containerId: found.id, verbose: false }, call);
    const finishedAt = Number(status?.finishedAt ?? 0);
    return finishedAt > 0 ? finishedAt / 1e6 : undefined;
  };
  const ms: number[] = [];
  for (let i = 0; i < samples; i++) {
    say(`evicted ${i + 1} of ${samples}`);
    await until('memory to be free', async () => (available() > threshold + ROOM_BYTES / 2 ? true : undefined), {
      timeoutMs: LONG_MS,
      everyMs: 200,
    });
    // Samples fall anywhere in the periods of the node's own timers. Its condition of pressure is over by then.
    await sleep(3_000 + Math.random() * 1000);
    const name = `greedy${i}`;
    const made = await view.create(greedy(name));
    const crossedMs = await until('memory to fall short', async () => (available() < threshold ? Date.now() : undefined), {
      timeoutMs: LONG_MS,
      everyMs: LOOK_EVERY_MS,
    });
    const endedMs = await until('the pod to be killed', () => endOf(name), { timeoutMs: LONG_MS, everyMs: 100 });
    ms.push(endedMs - crossedMs);
    await bench.remove([made]);
    await view.gone([made], LONG_MS);
  }
  await restart({ evictionHard: { 'memory.available': '0%' }, kernelMemcgNotification: false });
  return { unit: 'ms', crossedToKilled: withSamples(ms) };
}
