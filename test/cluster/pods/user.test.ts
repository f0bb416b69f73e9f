/** What a person sees of pods of a real cluster with kubectl: columns, descriptions, events, logs, terminals, forwarded ports, a drained node. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import { IMAGE, sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, isReady, LONG, STAY, startKubectl } from '../cluster.ts';
import { onCluster } from '../hooks.ts';

let cluster: Cluster;
onCluster((made) => (cluster = made), { args: ['--actorlet-inspect=127.0.0.1:0', '--actorlet-inspect-actions'] });

/** The columns of one pod as `kubectl get pod` prints them. */
const columns = async (name: string) => (await cluster.kubectl('get', 'pod', name, '--no-headers')).trim().split(/\s+/);
const describePod = (name: string) => cluster.kubectl('describe', 'pod', name);

/** kubectl on a terminal of its own: what came on it so far, and what is typed. */
function terminal(args: readonly string[]) {
  const quoted = [program('kubectl'), ...args].map((a) => `'${a.replaceAll("'", "'\\''")}'`).join(' ');
  const env = { PATH: process.env.PATH ?? '', HOME: cluster.plane.dir, KUBECONFIG: cluster.plane.adminKubeconfig, TERM: 'dumb' };
  const child = spawn('script', ['-qec', `stty rows 41 cols 101; ${quoted}`, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let seen = '';
  child.stdout.on('data', (d: Buffer) => {
    seen += d.toString();
  });
  child.stdin.on('error', () => undefined);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code));
  });
  return {
    seen: () => seen,
    type: (text: string) => void child.stdin.write(text),
    ended,
    stop: () => void child.kill('SIGKILL'),
  };
}

describe('kubectl get and describe', () => {
  it('show a pod’s way from its creation to its end', async () => {
    await cluster.create('seen', { containers: [steady('main'), steady('side')] });
    const pod = await cluster.ready('seen');
    expect((await columns('seen')).slice(0, 4)).toEqual(['seen', '2/2', 'Running', '0']);
    const text = await cluster.daemon.wait(
      'its events',
      async () => {
        const all = await describePod('seen');
        return all.split('Container started').length > 2 && all;
      },
      LONG,
    );
    expect(text).toMatch(new RegExp(`Node: +${NODE_NAME}/127\\.0\\.0\\.1`));
    expect(text).toMatch(/Status: +Running/);
    expect(text).toMatch(/Ready: +True\n +Restart Count: +0/);
    expect(text).toMatch(/QoS Class: +BestEffort/);
    expect(text).toMatch(new RegExp(`^IP: +${pod.status.podIP}$`, 'm'));
    expect(text).toMatch(/Normal +Scheduled .*Successfully assigned default\/seen to e2e/);
    for (const line of [
      `Pulled .*kubelet.* Container image "${IMAGE}" already present on machine and can be accessed by the pod`,
      'Created .*kubelet.*Container created',
      'Started .*kubelet.*Container started',
    ]) {
      expect(text).toMatch(new RegExp(`Normal +${line}`));
    }
    await cluster.kubectl('delete', 'pod', 'seen');
    await cluster.daemon.wait(
      'the event of its end',
      async () => /Killing +pod\/seen +Stopping container main/.test(await cluster.kubectl('get', 'events')),
      LONG,
    );
  });

  it('name what goes wrong: a crash, an image that is not there, a command that is not, a probe that fails', async () => {
    await cluster.create('crashing', { containers: [sh('main', 'echo about to fall; exit 7')] });
    await cluster.create('imageless', { containers: [sh('main', STAY, { image: 'actorlet.invalid/none:1' })] });
    await cluster.create('never', { containers: [sh('main', STAY, { image: 'actorlet.invalid/none:1', imagePullPolicy: 'Never' })] });
    await cluster.create('commandless', { containers: [{ name: 'main', image: IMAGE, command: ['/no/such/program'] }] });
    await cluster.create('unready', {
      containers: [sh('main', STAY, { readinessProbe: { exec: { command: ['sh', '-c', 'echo not yet; exit 1'] }, periodSeconds: 1 } })],
    });
    const becomes = (name: string, status: RegExp) =>
      cluster.daemon.wait(`${name} is ${status}`, async () => status.test((await columns(name))[2] ?? ''), LONG);
    await becomes('crashing', /^CrashLoopBackOff$/);
    expect(Number((await columns('crashing'))[3])).toBeGreaterThan(0);
    await becomes('imageless', /^(ErrImagePull|ImagePullBackOff)$/);
    await becomes('never', /^ErrImageNeverPull$/);
    await becomes('commandless', /^(RunContainerError|CrashLoopBackOff)$/);
    const has = (name: string, line: RegExp) =>
      cluster.daemon.wait(`${name}: ${line}`, async () => line.test(await describePod(name)), LONG);
    await has('crashing', /Warning +BackOff .*Back-off restarting failed container/);
    await has('crashing', /Last State: +Terminated\n +Reason: +Error\n +Exit Code: +7/);
    await has('imageless', /Warning +Failed .*Failed to pull image "actorlet.invalid\/none:1"/);
    await has('never', /Warning +ErrImageNeverPull .*Container image "actorlet.invalid\/none:1" is not present with pull policy of Never/);
    await has('commandless', /Warning +Failed .*Error: .*no such file or directory/);
    await has('unready', /Warning +Unhealthy .*Readiness probe failed: not yet/);
    expect((await columns('unready')).slice(1, 3)).toEqual(['0/1', 'Running']);
    await cluster.kubectl('delete', 'pod', 'crashing', 'imageless', 'never', 'commandless', 'unready');
  });

  it('describe the node: conditions, addresses, what is allocated, its own events', async () => {
    await cluster.create('counted', { containers: [steady('main', { resources: { requests: { cpu: '150m', memory: '32Mi' } } })] });
    await cluster.ready('counted');
    const text = await cluster.daemon.wait(
      'its events',
      async () => {
        const all = await cluster.kubectl('describe', 'node', NODE_NAME);
        return /Normal +Starting .*Starting kubelet/.test(all) && all;
      },
      LONG,
    );
    expect(text).toMatch(/Ready +True .*KubeletReady +kubelet is posting ready status/);
    expect(text).toMatch(/MemoryPressure +False .*KubeletHasSufficientMemory/);
    expect(text).toMatch(/InternalIP: +127\.0\.0\.1/);
    expect(text).toMatch(/Container Runtime Version: +containerd:\/\/[12]\./);
    expect(text).toMatch(/default +counted +150m \(\d+%\)/);
    await cluster.kubectl('delete', 'pod', 'counted');
  });
});

describe('kubectl logs', () => {
  it('of several containers, chosen, together, since, of the run before, and followed over the end', async () => {
    const script = (word: string) =>
      `echo ${word} $(( $(cat /scratch/n 2>/dev/null || echo 0) )); until [ -e /scratch/go ]; do sleep 0.2; done; rm /scratch/go; echo 1 > /scratch/n; echo bye; exit 1`;
    const volumeMounts = [{ name: 'scratch', mountPath: '/scratch' }];
    await cluster.create('talk', {
      containers: [sh('main', script('main'), { volumeMounts }), sh('side', `echo side; ${STAY}`)],
      volumes: [{ name: 'scratch', emptyDir: {} }],
    });
    await cluster.ready('talk');
    await cluster.daemon.wait('its logs', async () => (await cluster.kubectl('logs', 'talk', '-c', 'main')) === 'main 0\n', LONG);
    await cluster.daemon.wait('the other’s', async () => (await cluster.kubectl('logs', 'talk', '-c', 'side')) === 'side\n', LONG);
    // Both are read at a time: in either order.
    const both = (await cluster.kubectl('logs', 'talk', '--all-containers', '--prefix')).trim().split('\n').sort();
    expect(both).toEqual(['[pod/talk/main] main 0', '[pod/talk/side] side']);
    await expect(cluster.kubectl('logs', 'talk', '-c', 'main', '--previous')).rejects.toThrow(/previous terminated/);
    const followed = startKubectl(cluster.plane, ['logs', '-f', 'talk', '-c', 'main']);
    await cluster.daemon.wait('it follows', () => followed.ran.out === 'main 0\n', LONG);
    await cluster.kubectl('exec', 'talk', '-c', 'main', '--', 'touch', '/scratch/go');
    expect(await followed.result).toMatchObject({ code: 0, out: 'main 0\nbye\n' });
    await cluster.daemon.wait('the second run', async () => (await cluster.kubectl('logs', 'talk', '-c', 'main')) === 'main 1\n', LONG);
    expect(await cluster.kubectl('logs', 'talk', '-c', 'main', '--previous', '--tail=1')).toBe('bye\n');
    expect(await cluster.kubectl('logs', 'talk', '-c', 'main', '--since=1h', '--timestamps')).toMatch(/^\d{4}-\d\d-\d\dT\S+ main 1\n$/);
    expect(await cluster.kubectl('logs', 'talk', '-c', 'main', '--since-time=2099-01-01T00:00:00Z')).toBe('');
    await cluster.kubectl('delete', 'pod', 'talk');
  });
});

describe('kubectl on a terminal', () => {
  it('exec -it: a shell with the size of the terminal, control keys, and its exit code', async () => {
    await cluster.create('shell', { containers: [steady()] });
    await cluster.ready('shell');
    const t = terminal(['exec', '-it', 'shell', '--', 'sh']);
    try {
      await cluster.daemon.wait('a prompt', () => t.seen().includes('# '), LONG);
      // The size comes by a way of its own: it is asked for until it has arrived.
      const sized = () => {
        if (/size 41 101 on \/dev\/pts\/\d+/.test(t.seen())) return true;
        t.type('echo size $(stty size) on $(tty)\n');
        return false;
      };
      await cluster.daemon.wait('its size', sized, { ...LONG, everyMs: 500 });
      // As it is typed it is another word than as it is said.
      t.type('echo be""gun; cat\n');
      await cluster.daemon.wait('cat runs', () => t.seen().includes('begun'), LONG);
      const prompts = () => t.seen().split('# ').length;
      const before = prompts();
      t.type('\u0003');
      await cluster.daemon.wait('a prompt again', () => prompts() > before, LONG);
      t.type('echo co""de $?\n');
      await cluster.daemon.wait('it was interrupted', () => t.seen().includes('code 130'), LONG);
      t.type('exit 5\n');
      expect(await t.ended).toBe(5);
    } finally {
      t.stop();
    }
    await cluster.kubectl('delete', 'pod', 'shell');
  });

  it('run --rm -it: a pod for one command, gone afterwards', async () => {
    const t = terminal([
      'run',
      'once',
      '--rm',
      '-it',
      `--image=${IMAGE}`,
      '--image-pull-policy=IfNotPresent',
      '--restart=Never',
      '--',
      'sh',
      '-c',
      'read line; echo "<$line>"',
    ]);
    try {
      await cluster.ready('once');
      // What is typed before it is attached is seen by nobody: typed until it is heard.
      await cluster.daemon.wait(
        'the answer',
        () => {
          if (!t.seen().includes('<hello>')) t.type('hello\n');
          return t.seen().includes('<hello>');
        },
        { ...LONG, everyMs: 500 },
      );
      await t.ended;
    } finally {
      t.stop();
    }
    await cluster.gone('once');
  });
});

it('port-forward to a Service, and cp of a folder', async () => {
  const script = 'ln -s "$(command -v busybox)" /bin/tar; mkdir /www; echo welcome > /www/index.html; exec httpd -f -p 8080 -h /www';
  await cluster.create('site', { containers: [sh('main', script, { ports: [{ containerPort: 8080, name: 'web' }] })] }, { app: 'site' });
  await cluster.ready('site');
  await cluster.kubectl('expose', 'pod', 'site', '--port=80', '--target-port=web');
  const forward = startKubectl(cluster.plane, ['port-forward', 'service/site', ':80', '--address=127.0.0.1']);
  try {
    const local = await cluster.daemon.wait('its local port', () => /127\.0\.0\.1:(\d+) ->/.exec(forward.ran.out)?.[1] ?? false, LONG);
    const get = async () => (await fetch(`http://127.0.0.1:${local}/`, { signal: AbortSignal.timeout(20_000) })).text();
    await cluster.daemon.wait('the server', async () => (await get()) === 'welcome\n', LONG);
  } finally {
    forward.stop();
    await forward.result;
  }
  const back = join(cluster.plane.dir, 'www');
  await cluster.kubectl('cp', 'site:/www', back);
  expect(execFileSync('cat', [join(back, 'index.html')], { encoding: 'utf8' })).toBe('welcome\n');
  expect(existsSync(back)).toBe(true);
  await cluster.kubectl('delete', 'pod,service', 'site');
});

it('actorctl deletes a pod as the node, with its hook and its grace, and waits for its end', async () => {
  const preStop = { exec: { command: ['sh', '-c', 'echo farewell > /proc/1/fd/1'] } };
  await cluster.create('leaving', { terminationGracePeriodSeconds: 20, containers: [{ ...steady('main'), lifecycle: { preStop } }] });
  await cluster.ready('leaving');
  const log = startKubectl(cluster.plane, ['logs', '-f', 'leaving']);
  expect(await cluster.daemon.ctl('delete', 'pod', 'leaving')).toBe('pod "leaving" deleted from default namespace\n');
  expect(await cluster.pod('leaving')).toBeNull();
  expect((await log.result).out).toContain('farewell');
});

it('the page restarts a pod of the API in place, and deletes it as the node', async () => {
  await cluster.create('acted', { terminationGracePeriodSeconds: 5, containers: [steady('main')] });
  const before = await cluster.ready('acted');
  const page = new URL((await cluster.daemon.ctl('ui')).trim());
  const token = page.hash.replace('#token=', '');
  const act = async (what: string, more: object = {}) => {
    const headers = { origin: page.origin, 'content-type': 'application/json', 'x-actorlet-token': token };
    const body = JSON.stringify({ uid: before.metadata.uid, ...more });
    const answer = await fetch(`${page.origin}/api/pod/${what}`, { method: 'POST', headers, body });
    return { status: answer.status, ...((await answer.json()) as { can: boolean; lines: string[] }) };
  };
  expect(await act('restart')).toEqual({ status: 200, can: true, lines: ['main: ends, and starts again'] });
  const restarts = async () => (await columns('acted'))[3] === '1';
  await cluster.daemon.wait('kubectl to show the restart', restarts, LONG);
  const after = await cluster.ready('acted');
  expect([after.metadata.uid, after.status.podIP]).toEqual([before.metadata.uid, before.status.podIP]);
  const asked = /Killing .*Container main will be restarted: a person asked for it over the inspection page/;
  await cluster.daemon.wait('the event to be in the API', async () => asked.test(await describePod('acted')), LONG);
  expect((await act('delete', { preview: true })).lines.join(' ')).toMatch(
    /API server at https:\S+ deletes the pod.*up to 5 s.*no controller that makes another/,
  );
  expect(await act('delete')).toMatchObject({ status: 200, can: true });
  await cluster.daemon.wait('the pod to be gone', async () => (await cluster.pod('acted')) === null, LONG);
});

it('drain and uncordon: pods leave, others come back', async () => {
  const container = steady();
  await cluster.apply({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'drained' } },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: 'drained' } },
      template: { metadata: { labels: { app: 'drained' } }, spec: { terminationGracePeriodSeconds: 1, containers: [container] } },
    },
  });
  await cluster.kubectl('rollout', 'status', 'deployment/drained', '--timeout=120s');
  await cluster.kubectl('drain', NODE_NAME, '--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=120s');
  expect(await cluster.kubectl('get', 'node', NODE_NAME)).toContain('Ready,SchedulingDisabled');
  expect((await cluster.pods('app=drained')).filter(isReady)).toEqual([]);
  await cluster.kubectl('uncordon', NODE_NAME);
  await cluster.kubectl('rollout', 'status', 'deployment/drained', '--timeout=120s');
  await cluster.kubectl('delete', 'deployment', 'drained');
  await cluster.daemon.wait('no pod is left', async () => (await cluster.pods('app=drained')).length === 0, LONG);
});
