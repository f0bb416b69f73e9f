/** What follows a pod through kubectl (logs, exec, attach, port-forward) ends with the pod, or with the run of its container. */
import { describe, expect, it } from 'vitest';
import { until } from '../../e2e/lab/ports.ts';
import { sh } from '../../e2e/manifests.ts';
import { type Cluster, LONG, type Running, STAY, startKubectl } from '../cluster.ts';
import { onCluster } from '../hooks.ts';

let cluster: Cluster;
/** Between the end of what is followed and the end of kubectl. The reference takes less than a second. */
const END_MS = 5_000;

onCluster((made) => (cluster = made));

const kubectl = (...args: string[]): Running => startKubectl(cluster.plane, args, '', true);
/** Ends it if it does not end by itself. */
async function endOf(followed: Running, withinMs = END_MS): Promise<{ code: number | null; out: string }> {
  const late = setTimeout(() => followed.stop(), withinMs);
  const { code, out } = await followed.result;
  clearTimeout(late);
  return { code, out };
}
const chatty = (farewell: string) => `trap "echo ${farewell}; exit 0" TERM; echo hello; while :; do sleep 3600 & wait $!; done`;

describe('kubectl logs -f', () => {
  it.each([
    ['with its grace', []],
    ['by force', ['--grace-period=0', '--force']],
  ])('ends when the pod is deleted %s', async (how, flags) => {
    const name = how === 'by force' ? 'forced' : 'deleted';
    await cluster.create(name, { containers: [sh('main', chatty('bye'))], terminationGracePeriodSeconds: 10 });
    await cluster.ready(name);
    const followed = kubectl('logs', '-f', name);
    await until('its first line', () => followed.ran.out === 'hello\n', LONG);
    await cluster.kubectl('delete', 'pod', name, '--wait=false', ...flags);
    await cluster.gone(name);
    expect(await endOf(followed, END_MS)).toEqual({ code: 0, out: 'hello\nbye\n' });
  });

  it('ends with a pod that ends by itself', async () => {
    await cluster.create('ending', { restartPolicy: 'Never', containers: [sh('main', 'echo hello; sleep 3; echo bye')] });
    await cluster.ready('ending');
    const followed = kubectl('logs', '-f', 'ending');
    await cluster.podWhere('ending', 'has ended', (p) => p.status.phase === 'Succeeded');
    expect(await endOf(followed)).toEqual({ code: 0, out: 'hello\nbye\n' });
    await cluster.kubectl('delete', 'pod', 'ending');
  });

  it('ends with the run of a container that starts again, and the run before is given with -p', async () => {
    await cluster.create('again', { containers: [sh('main', 'echo run; sleep 4; exit 1')] });
    await cluster.podWhere('again', 'runs', (p) => p.status.containerStatuses?.[0]?.state.running !== undefined);
    const followed = kubectl('logs', '-f', 'again');
    await cluster.podWhere('again', 'starts again', (p) => (p.status.containerStatuses?.[0]?.restartCount ?? 0) > 0);
    expect(await endOf(followed)).toEqual({ code: 0, out: 'run\n' });
    expect(await endOf(kubectl('logs', '-f', '-p', 'again'))).toEqual({ code: 0, out: 'run\n' });
    await cluster.kubectl('delete', 'pod', 'again');
  });
});

describe('what is connected to a pod', () => {
  it('ends when the pod is deleted: exec, attach and port-forward', async () => {
    await cluster.create('held', { containers: [sh('main', STAY, { stdin: true })] });
    await cluster.ready('held');
    const exec = kubectl('exec', '-i', 'held', '--', 'sh', '-c', 'echo in; cat');
    const attach = kubectl('attach', '-i', 'held');
    const forward = kubectl('port-forward', 'pod/held', ':8080', '--address=127.0.0.1');
    await until('the command', () => exec.ran.out === 'in\n', LONG);
    await until('the port', () => /Forwarding from/.test(forward.ran.out), LONG);
    await cluster.kubectl('delete', 'pod', 'held', '--wait=false');
    await cluster.gone('held');
    expect((await endOf(exec)).code).not.toBeNull();
    expect((await endOf(attach)).code).not.toBeNull();
    // It looks at the pod with the next connection only.
    const port = /127\.0\.0\.1:(\d+) ->/.exec(forward.ran.out)?.[1];
    await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(END_MS) }).catch(() => undefined);
    expect((await endOf(forward)).code).not.toBeNull();
  });
});
