/** The actor of a program: when its process starts again, and what becomes of one that ends again and again. In virtual time. */
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { describe, expect, it } from 'vitest';
import { fakePorts } from '../../../../test/supervision/fakePorts.ts';
import { isPortTaken, lastWords } from '../../src/plane/lastWords.ts';
import { type EndSignal, type ProgramAnswer, type ProgramEvent, programsAddr } from '../../src/plane/messages.ts';
import type { ProgramNote } from '../../src/plane/programMachine.ts';
import { type Program, programsTree } from '../../src/plane/programs.ts';

/** A process that can be told to end. */
class Process implements Program {
  readonly name = 'etcd';
  on = false;
  broken = '';
  running = 0;
  readonly startedMs: number[] = [];
  readonly endedBy: EndSignal[] = [];
  #fail = (_: Error): void => {};
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }
  async start(): Promise<void> {
    this.startedMs.push(this.#nowMs());
    if (this.broken !== '') throw new Error(this.broken);
    this.running += 1;
  }
  fails(): Promise<never> {
    return new Promise((_, reject) => {
      this.#fail = reject;
    });
  }
  async end(by: EndSignal): Promise<void> {
    this.endedBy.push(by);
    this.running = 0;
  }
  note({ on = this.on }: ProgramNote): void {
    this.on = on;
  }
  fail(why: string): void {
    this.running = 0;
    this.#fail(new Error(why));
  }
}

function lab() {
  const ports = fakePorts();
  const etcd = new Process(ports.clock.monoMs);
  const tree = programsTree({ id: 'plane', programs: [etcd] }, ports);
  void tree.start();
  const done = async (event: (replyTo: ReplyTo<ProgramAnswer>) => ProgramEvent): Promise<ProgramAnswer> => {
    const answer = tree.registry.ask<ProgramEvent, ProgramAnswer>(programsAddr('plane'), event, { timeoutMs: 1e9 });
    await ports.settle();
    const it = await answer;
    return it.kind === 'reply' ? it.value : `${it.kind}: ${it.reason}`;
  };
  const on = () => done((replyTo) => ({ type: 'program.on', program: 'etcd', replyTo }));
  const off = (by: EndSignal) => done((replyTo) => ({ type: 'program.off', program: 'etcd', by, replyTo }));
  return { ...ports, etcd, tree, on, off, state: () => tree.stateAt('plane/programs/etcd') };
}

describe('a program', () => {
  it('runs when it is told to, and ends by the signal that is asked for', async () => {
    const h = lab();
    expect([await h.on(), h.etcd.running, h.state()?.reason]).toEqual([null, 1, 'Running']);
    expect([await h.off('SIGKILL'), h.etcd.running, h.etcd.endedBy, h.etcd.on]).toEqual([null, 0, ['SIGKILL'], false]);
    expect([await h.on(), h.etcd.running]).toEqual([null, 1]);
    void h.tree.stop();
    await h.advance(1_000);
    expect(h.etcd.running).toBe(0);
  });

  it('starts again when its process ends, each time a little later', async () => {
    const h = lab();
    await h.on();
    for (const why of ['killed', 'killed again', 'and again']) {
      h.etcd.fail(why);
      await h.settle();
      expect(h.state()?.lastError).toContain(why);
      await h.advance(5_000);
    }
    const [first = 0, ...later] = h.etcd.startedMs;
    expect(later).toHaveLength(3);
    expect(first).toBe(h.etcd.startedMs[0]);
    expect(h.etcd.running).toBe(1);
  });

  it('is tried for ever, with 10 s between at most, and runs when it can', async () => {
    const h = lab();
    await h.on();
    h.etcd.broken = 'no space left on device';
    h.etcd.fail('no space left on device');
    await h.advance(3_600_000);
    const between = h.etcd.startedMs.map((ms, i, all) => ms - (all[i - 1] ?? 0)).slice(8);
    expect(between.length).toBeGreaterThan(300);
    expect(Math.max(...between)).toBeLessThan(11_000);
    h.etcd.broken = '';
    await h.advance(12_000);
    expect([h.etcd.running, h.state()?.reason]).toEqual([1, 'Running']);
  });

  it('that cannot be started answers with the reason', async () => {
    const h = lab();
    h.etcd.broken = 'etcd ended with exit code 1: address already in use';
    expect(await h.on()).toBe('etcd ended with exit code 1: address already in use');
  });
});

describe('the last words of a log', () => {
  it.each([
    ['', ''],
    ['\n\n', ''],
    ['one\ntwo\n', 'two'],
    [
      'E1129 07:14:56.100000   77 run.go:72] "command failed" err="unknown flag"\nUsage: kube-apiserver\n  --a\n',
      '"command failed" err="unknown flag"',
    ],
    ['F1129 07:14:56.100000   77 hooks.go:210] PostStartHook failed\ngoroutine 1 [running]:\nmain.main()\n', 'PostStartHook failed'],
    ['Error: unknown flag: --x\n\nUsage:\n', 'Error: unknown flag: --x'],
    [
      '{"level":"fatal","ts":"x","msg":"discovery failed","error":"listen tcp: address already in use"}\n',
      'discovery failed: listen tcp: address already in use',
    ],
    ['{"level":"fatal"\n', '{"level":"fatal"'],
    ['/bin/sh: 1: exec: /x/etcd: Permission denied\n', '/bin/sh: 1: exec: /x/etcd: Permission denied'],
    ['x'.repeat(1_000), `${'x'.repeat(400)}...`],
  ])('of %j are %j', (log, words) => {
    expect(lastWords(log)).toBe(words);
  });

  it('tell that a port is taken', () => {
    expect([isPortTaken('listen tcp 127.0.0.1:1: bind: address already in use'), isPortTaken('no space left')]).toEqual([true, false]);
  });
});
