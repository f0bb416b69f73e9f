/** Many pods, and random stories: in the end what runs is what was asked for. */
import { expect, it } from 'vitest';
import { rotating } from '../../rotation.ts';
import { seededRng } from '../../supervision/fakePorts.ts';
import { allActors, notRunning, workerless } from '../kill/killing.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

it('a hundred pods at once all run, keep running through a kill of the daemon, and all go', async () => {
  await using h = await virtualNode();
  const names = Array.from({ length: 100 }, (_, i) => `web-${i}`);
  for (const name of names) h.write(name, pod(name));
  await h.until('all run', () => h.running().length === 100 && names.every((n) => h.phase(n) === 'Running'), 120_000);
  const ids = h
    .running()
    .map((c) => c.id)
    .sort();
  await h.restart();
  await h.until('all are shown running', () => h.pods().length === 100 && h.pods().every((p) => p.status?.phase === 'Running'), 60_000);
  expect(
    h
      .running()
      .map((c) => c.id)
      .sort(),
  ).toEqual(ids);
  for (const name of names) h.remove(name);
  await h.until('nothing is left', () => h.runtime.dump().containers.length + h.runtime.dump().sandboxes.length === 0, 300_000);
  expect(h.violations).toEqual([]);
}, 30_000);

/** What the manifests ask for at present. */
interface Wanted {
  image: number;
  pinned: boolean;
}
const manifestOf = (name: string, w: Wanted) =>
  pod(name, {
    life: 'startDelay=30ms,term=200ms',
    lives: { 'init-0': 'run=100ms' },
    inits: [{}],
    container: { image: `busybox:${w.image}` },
    spec: { terminationGracePeriodSeconds: 5 },
    ...(w.pinned ? { uid: `pinned-${name}` } : {}),
  });

async function story(seed: number, steps: number): Promise<void> {
  const told: string[] = [];
  const rng = seededRng(seed);
  const below = (n: number) => Math.floor(rng.next() * n);
  const wanted = new Map<string, Wanted>();
  const h = await virtualNode({ seed });
  const pick = (): string | undefined => [...wanted.keys()][below(Math.max(1, wanted.size))];
  const doings: Record<string, () => Promise<void> | void> = {
    add() {
      const name = `p${below(10)}`;
      if (wanted.has(name)) return;
      const w = { image: 1, pinned: below(2) === 0 };
      wanted.set(name, w);
      told.push(`add ${name}${w.pinned ? ' pinned' : ''}`);
      h.write(name, manifestOf(name, w));
    },
    edit() {
      const name = pick();
      const w = name === undefined ? undefined : wanted.get(name);
      if (name === undefined || w === undefined) return;
      w.image += 1;
      told.push(`edit ${name} to ${w.image}`);
      h.write(name, manifestOf(name, w));
    },
    remove() {
      const name = pick();
      if (name === undefined) return;
      wanted.delete(name);
      told.push(`remove ${name}`);
      h.remove(name);
    },
    kill() {
      const all = allActors(h.tree.state()).filter((a) => a.path !== 'node' && a.type === 'actor');
      const victim = all[below(all.length)];
      if (victim === undefined) return;
      told.push(`kill ${victim.path}`);
      h.kill(victim.path);
    },
    fail() {
      const running = h.running();
      const victim = running[below(Math.max(1, running.length))];
      if (victim === undefined) return;
      told.push(`container ${victim.name} ${victim.id} of ${victim.podUid} ends`);
      h.runtime.exit(victim.id, { exitCode: 1 });
    },
    async sandbox() {
      const ready = h.runtime.dump().sandboxes.filter((s) => s.ready);
      const victim = ready[below(Math.max(1, ready.length))];
      if (victim === undefined) return;
      told.push(`sandbox ${victim.id} of ${victim.uid} dies`);
      await h.runtime.call('StopPodSandbox', { podSandboxId: victim.id }, { timeoutMs: null, signal: new AbortController().signal });
    },
    async reboot() {
      told.push('the daemon is killed');
      await h.crash();
      await h.advance(below(3) * 1_000);
      await h.boot();
    },
    layer() {
      const layers = ['node/pods', 'node/runtime', 'node/pods/workers', 'node/reclaim', 'node/pods/sources', 'node/foundation'];
      const victim = layers[below(layers.length)] ?? '';
      told.push(`kill ${victim}`);
      h.kill(victim);
    },
    async away() {
      told.push('the runtime goes away for a while');
      h.faults.away = true;
      h.runtime.dropStreams();
      await h.advance(below(20_000));
      h.faults.away = false;
    },
    flaky() {
      const share = rng.next() * 0.2;
      told.push(`of all calls ${share} get lost with, as many without effect, half as many fail`);
      h.faults.fault = (method) => {
        if (/List|Status|Version/.test(method)) return undefined;
        const at = rng.next() / share;
        if (at < 1) return { kind: 'timeout', effect: true, afterMs: 800 };
        if (at < 2) return { kind: 'timeout', effect: false, afterMs: 800 };
        return at < 2.5 ? { kind: 'refuse', code: 2, details: 'refused by chance' } : undefined;
      };
    },
    sound() {
      told.push('the runtime is sound');
      h.faults.fault = () => undefined;
    },
    deaf() {
      h.faults.deaf = !h.faults.deaf;
      told.push(`cancelled calls are ${h.faults.deaf ? 'not ' : ''}noticed`);
    },
    hints() {
      h.faults.hintCopies = below(3);
      told.push(`each hint comes ${h.faults.hintCopies} times`);
    },
    slow() {
      told.push('the runtime is slow');
      h.faults.latencyMs = {
        RunPodSandbox: below(300),
        CreateContainer: below(300),
        StartContainer: below(300),
        StopContainer: below(300),
      };
    },
  };
  const menu = ['add', 'add', 'edit', 'edit', 'remove', 'remove', 'add', ...Object.keys(doings)];
  try {
    for (let i = 0; i < steps; i++) {
      await doings[menu[below(menu.length)] ?? 'add']?.();
      // Kills are spaced so that supervisors do not give up; mostly little else waits.
      await h.advance(told.at(-1)?.startsWith('kill') ? 25_000 : below(4) === 0 ? 10_000 : below(400));
      // Its root gave up after too many kills: an init system starts the daemon again.
      if (h.tree.state().lifecycle === 'failed') await doings.reboot?.();
    }
    Object.assign(h.faults, { latencyMs: {}, fault: () => undefined, deaf: false, hintCopies: 1 });
    await h.until('what runs is what is wanted', () => asWanted(h, wanted), 900_000);
    await h.advance(30_000);
    expect(asWanted(h, wanted)).toBe(true);
    expect(h.violations).toEqual([]);
    expect(notRunning(h)).toEqual([]);
    expect(workerless(h)).toEqual([]);
    expect(h.events.filter((e) => e.kind === 'child.exited' && e.reason.kind === 'error')).toEqual([]);
  } catch (error) {
    const now = [...wanted].map(([n, w]) => `${n}: image ${w.image}, ${h.phase(n)}, worker ${JSON.stringify(h.record(n)?.worker?.state)}`);
    throw new Error(
      `seed ${seed}: ${error instanceof Error ? error.message : error}\nwanted:\n${now.join('\n')}\nstory:\n${told.join('\n')}`,
      {
        cause: error,
      },
    );
  } finally {
    await h[Symbol.asyncDispose]();
  }
}

function asWanted(h: VirtualNode, wanted: ReadonlyMap<string, Wanted>): boolean {
  if (h.pods().length !== wanted.size || h.running().length !== wanted.size) return false;
  return [...wanted].every(([name, w]) => {
    const rec = h.record(name);
    const image = rec?.pod.spec.containers[0]?.image;
    const [own] = h.running(name);
    return image === `busybox:${w.image}` && own?.podUid === rec?.pod.metadata.uid && h.phase(name) === 'Running';
  });
}

it.each(rotating('random lives', [1, 2, 3, 4], 4))(
  'two hundred random doings end in what the manifests ask for (seed %s)',
  (seed) => story(seed, 200),
  60_000,
);
