/** The page's feed from a replay: any moment of it, back and on, with the actors in full; and the debugger at a moment. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { openInputs } from '@actorlet/ctl/src/commands/replay/file.ts';
import { surroundings } from '@actorlet/ctl/src/commands/replay/surroundings.ts';
import { Past, ReplayFeed, runReplayUi } from '@actorlet/ctl/src/commands/replay/ui.ts';
import { recordSeed } from '@actorlet/ctl/src/commands/sim/record.ts';
import type { ServerFrame } from '@actorlet/inspect/src/feed/frames.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { COMPILED_ONCE } from '../../../test/compiled.ts';
import { inTurn, rotating } from '../../../test/rotation.ts';
import { replayed } from './replayed.ts';
import { recorded } from './simulated/recordedSim.ts';
import { toldTo } from './toldTo.ts';

const shows = inTurn('pages of a replay', 4);
const AROUND = surroundings({ signal: new AbortController().signal });
let dir: string;
let path: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-ui-'));
  await recordSeed(toldTo(), { seed: 8, minutes: 0.2, pods: 3 }, dir);
  path = join(dir, 'seed-8-n1-1.inputs.zst');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

type Of<T extends ServerFrame['t']> = Extract<ServerFrame, { t: T }>;

function viewer(past: Past) {
  const frames: ServerFrame[] = [];
  const joined = new ReplayFeed(past).join({
    send: (text) => frames.push(JSON.parse(text) as ServerFrame),
    close() {},
    backlogBytes: () => 0,
  });
  const last = <T extends ServerFrame['t']>(t: T): Of<T> | undefined => frames.findLast((frame): frame is Of<T> => frame.t === t);
  return {
    last,
    async at(atMs: number, more: object = {}) {
      joined?.message(JSON.stringify({ t: 'watch', atMs, ...more }));
      await past.at(atMs, () => {});
    },
  };
}

shows('shows any moment, back and on, with contexts in full', async () => {
  const past = await Past.of(path, undefined, AROUND);
  expect(past.remark).toBe('');
  const page = viewer(past);
  await past.at(past.toMs, () => {});
  expect(page.last('hello')).toMatchObject({ node: 'n1', recording: { fromMs: past.fromMs, toMs: past.toMs } });
  // When pods come is the seed's affair.
  let middleMs = past.fromMs;
  do {
    middleMs += (past.toMs - past.fromMs) / 10;
    await page.at(middleMs, { actor: 'node/pods/podManager' });
  } while (page.last('snapshot')?.pods.length === 0 && middleMs < past.toMs);
  const { pods = [], actors = [], steps } = page.last('snapshot') ?? {};
  expect(pods.length).toBeGreaterThan(0);
  expect(actors.length).toBeGreaterThan(20);
  expect(page.last('actor')?.live?.context).toMatchObject({ pods: expect.arrayContaining([expect.stringContaining('default/')]) });
  await page.at(past.fromMs);
  expect(page.last('snapshot')).toMatchObject({ pods: [] });
  // Again the same moment, and the step after it.
  await page.at(middleMs);
  expect(page.last('snapshot')).toMatchObject({ pods, actors });
  await page.at(steps?.afterMs ?? 0);
  expect(page.last('snapshot')?.atMs).toBeGreaterThan(middleMs);
});

it('says why its page is not there', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const served = new AbortController();
  const told: string[] = [];
  const io = { ...toldTo(), signal: served.signal };
  io.err = (text) => {
    told.push(text);
    served.abort();
  };
  await runReplayUi(io, { path, until: undefined, port, open: false });
  taken.close();
  expect(told[0]).toContain(`cannot listen on 127.0.0.1:${port}`);
});

shows('begins at a state, and says where no actor comes to it', async () => {
  const [from, to] = await Promise.all([Past.of(path, 'foundation state=running', AROUND), Past.of(path, undefined, AROUND)]);
  expect(from.startMs).toBeLessThan(to.startMs);
  await expect(Past.of(path, 'pods/podManager state=nowhere', AROUND)).rejects.toThrow('no actor comes there');
  const other = join(dir, 'other.inputs.zst');
  const lines = zstdDecompressSync(readFileSync(path)).toString();
  writeFileSync(other, zstdCompressSync(lines.replace(/^(\["step","node\/pods\/podManager","[^"]*",")[^"]*/m, '$1elsewhere')));
  await expect(Past.of(other, 'pods/podManager state=nowhere', AROUND)).rejects.toThrow(/no actor comes there\. It ends at a divergence/);
});

/** A daemon that was started without a page, and whose clock moves with each look at it. */
async function moving(minutes: number, pods: number, flags: Parameters<typeof recorded>[3] = {}): Promise<string> {
  let looks = 0;
  const slower = (ports: Ports): Ports => {
    // Each look at the clock takes a third of a millisecond.
    const [monoMs, wallMs] = [ports.clock.monoMs, ports.clock.wallMs].map((now) => () => now.call(ports.clock) + looks++ / 3);
    return { ...ports, clock: { ...ports.clock, monoMs, wallMs } as typeof ports.clock };
  };
  const { daemons } = await recorded({ seed: 8, minutes, pods }, undefined, slower, flags);
  const file = join(dir, `moving-${pods}-${Object.keys(flags).join()}.inputs.zst`);
  writeFileSync(file, zstdCompressSync(`${daemons[0]?.lines.join('\n')}\n`));
  return file;
}

const KEEPS: [string, Parameters<typeof moving>[2]][] = [
  ['keeps nothing of pods', {}],
  ['keeps deaths, and with them what it did for pods', { deathsMax: 50 }],
];
it.each(rotating('what a recorded node keeps', KEEPS, KEEPS.length))(
  'does not change a node that %s: the whole recording is there, however much is looked at',
  async (_, flags) => {
    const file = await moving(0.3, 3, flags);
    const { header, next, more } = await openInputs(file);
    const plain = await replayed(header, next, more);
    expect(plain.divergence).toBeNull();
    const past = await Past.of(file, undefined, AROUND);
    expect({ remark: past.remark, ms: past.toMs - past.fromMs }).toEqual({ remark: '', ms: plain.ms });
    const page = viewer(past);
    await past.at(past.toMs, () => {});
    const { actors = [], pods = [] } = page.last('snapshot') ?? {};
    expect(pods.length).toBeGreaterThan(1);
    await page.at(past.fromMs);
    const everything = { actor: 'node/pods/podManager', pod: pods[0]?.uid ?? '', events: true, decisions: true };
    const eachMs = (past.toMs - past.fromMs) / 100;
    for (let ms = past.fromMs; ms < past.toMs; ms += eachMs) await page.at(ms, everything);
    await page.at(past.toMs, everything);
    expect(page.last('snapshot')).toMatchObject({ actors, pods });
    expect(page.last('pod')?.pod?.history.calls.length).toBeGreaterThan(0);
  },
);

shows('steps from one input to the next, also where the clock moved while the node took one', async () => {
  const past = await Past.of(await moving(0.1, 2), undefined, AROUND);
  expect(past.remark).toBe('');
  let seen = -1;
  for (let ms: number | null = past.fromMs; ms !== null; ms = past.steps(ms).afterMs) {
    let recorded = 0;
    await past.at(ms, () => {
      recorded = past.node?.recorder.recorded ?? 0;
    });
    expect(recorded).toBeGreaterThan(seen);
    seen = recorded;
  }
});

shows("opens Node's debugger at the state, and breaks there", async () => {
  const argv = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, '../../ctl/src/main.ts'), 'replay', path];
  const child = spawn(process.execPath, [...argv, '--until', 'foundation state=running', '--inspect-brk', '0'], {
    env: { ...process.env, ...COMPILED_ONCE },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    let text = '';
    while (!text.includes('ws://')) text += String((await once(child.stderr, 'data'))[0]);
    const socket = new WebSocket(/ws:\S+/.exec(text)?.[0] ?? '');
    await once(socket, 'open');
    for (const [i, method] of ['Runtime.enable', 'Debugger.enable', 'Runtime.runIfWaitingForDebugger'].entries())
      socket.send(JSON.stringify({ id: i, method }));
    const paused = await new Promise<string>((resolve) => {
      socket.onmessage = ({ data }) => String(data).includes('"Debugger.paused"') && resolve(String(data));
    });
    expect(paused).toContain('debuggerAt');
    socket.close();
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});
