/** Test nodes on the process runtime: real containers, and that nothing of them is left whoever dies first. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { startNode, type TestNode } from '../src/index.ts';

const project = join(import.meta.dirname, '..', '..', '..');
const START = { timeoutMs: 60_000, startTimeoutMs: 90_000 };

async function until(what: string, probe: () => boolean, timeoutMs = 60_000): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!probe()) {
    if (performance.now() > endMs) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await sleep(50);
  }
}
/** Command lines of living processes that mention a folder: containers do not, so they are found by their mark. */
function processesOf(dir: string): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const zombie = readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
      if (!zombie && command.includes(dir)) found.push(`${pid} ${command}`);
    } catch {
      // It has ended meanwhile, or is somebody else's.
    }
  }
  return found;
}
const sleeper = (name: string, marker: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    // The marker is on the command line, where it can be seen from outside.
    containers: [
      {
        name: 'app',
        image: 'actorlet.dev/host:latest',
        command: ['sh', '-c', `: ${marker}; echo "it is $GREETING"; echo again; while :; do sleep 1; done`],
        env: [{ name: 'GREETING', value: 'there' }],
      },
    ],
  },
});

async function running(node: TestNode): Promise<void> {
  const pod = await node.apply(sleeper('worker', join(node.dir, 'worker')));
  await pod.ready();
  expect((await pod.logged(/it is (\w+)/))[1]).toBe('there');
}

it('runs processes, reads what they write, and survives the death of its daemon', { timeout: 240_000 }, async () => {
  const node = await startNode(START);
  try {
    await running(node);
    const worker = node.pod('worker');
    expect(await worker.logs()).toBe('it is there\nagain\n');
    expect(await worker.logs({ tail: 1 })).toBe('again\n');
    await expect(worker.logs({ container: 'nosuch' })).rejects.toThrow('container nosuch is not in pod');
    const before = await node.containers();
    expect(before).toEqual([expect.objectContaining({ pod: 'worker', name: 'app', state: 'running', restartCount: 0 })]);
    await node.kill();
    expect(await node.containers()).toEqual(before);
    await node.restart();
    await worker.ready();
    expect(await node.containers()).toEqual(before);
    expect(processesOf(node.dir).join('\n')).toContain('while :; do');
  } finally {
    await node.dispose();
  }
  expect(existsSync(node.dir)).toBe(false);
  await until('every process of the node to be gone', () => processesOf(node.dir).length === 0);
});

it('leaves nothing when the runner of the tests is killed', { timeout: 240_000 }, async () => {
  const program = `
    import { startNode } from ${JSON.stringify(pathToFileURL(join(project, 'packages/harness/src/index.ts')).href)};
    const node = await startNode(${JSON.stringify(START)});
    const pod = await node.apply(${JSON.stringify(JSON.stringify(sleeper('worker', 'MARK')))}.replace('MARK', node.dir + '/worker'));
    await pod.ready();
    console.log(node.dir);
    setInterval(() => {}, 1000);
  `;
  const runner = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [dir] = (await once(createInterface({ input: runner.stdout }), 'line')) as [string];
  expect(processesOf(dir).join('\n')).toContain('while :; do');
  runner.kill('SIGKILL');
  await until('every process and file of the node to be gone', () => processesOf(dir).length === 0 && !existsSync(dir));
});

it('leaves nothing when its reaper is killed either', { timeout: 240_000 }, async () => {
  const node = await startNode(START);
  await running(node);
  const reaper = processesOf(node.dir).find((line) => line.includes('reaper/main.ts'));
  const waiting = node
    .pod('nobody')
    .ready()
    .catch((e: unknown) => String(e));
  process.kill(Number.parseInt(reaper ?? '', 10), 'SIGKILL');
  expect(await waiting).toContain('the daemon ended by itself');
  await node.dispose();
  expect(existsSync(node.dir)).toBe(false);
  await until('every process of the node to be gone', () => processesOf(node.dir).length === 0);
});

it('reads no file that a container names by a link in the place of its last message', { timeout: 240_000 }, async () => {
  const node = await startNode(START);
  try {
    const secret = join(node.dir, 'secret');
    writeFileSync(secret, 'hunter2-planted');
    const swap = (how: string): object => ({
      ...{ name: 'app', image: 'actorlet.dev/host:latest', terminationMessagePath: join(node.dir, 'last-words') },
      command: ['sh', '-c', `for f in ${node.dir}/root/pods/*/containers/app/*; do rm "$f"; ${how}; done; exit 3`],
    });
    const manifest = (name: string, how: string): object => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
      spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers: [swap(how)] },
    });
    for (const [name, how] of Object.entries({ link: `ln -s ${secret} "$f"`, fifo: 'mkfifo "$f"' })) {
      const pod = await node.apply(manifest(name, how));
      const message = async () => {
        const view = (await node.pods()).find((p) => p.name.startsWith(name));
        return view?.pod.status?.containerStatuses?.[0]?.state.terminated?.message ?? '';
      };
      await expect.poll(message).not.toBe('');
      expect(await message()).not.toContain('hunter2');
      expect(await message()).toMatch(name === 'link' ? /leads out of the folders/ : /is not a regular file/);
      await node.remove(pod);
      await pod.gone();
    }
  } finally {
    await node.dispose();
  }
});
