/** The watch on the kernel's log, in a whole node. */
import { expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { oomView } from '../../../src/machines/runtime/oom.ts';
import { type VirtualNode, virtualNode } from '../virtualNode.ts';

const path = 'node/runtime/oomWatcher';
const INVOKED = 'hog invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0';
const detail = (pid: number, limit = 'global_oom'): string =>
  `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,${limit},task_memcg=/kubepods/pod1,task=hog,pid=${pid},uid=0`;
const say = (h: VirtualNode, pid: number): void =>
  h.kernelLog.say([INVOKED, detail(pid), `Out of memory: Killed process ${pid} (hog) total-vm:1kB`]);
const told = (h: VirtualNode): string[] =>
  (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === 'SystemOOM').map((e) => `${e.type} ${e.count} ${e.message}`);
const event = (pid: number): string => `Warning 1 System OOM encountered, victim process: hog, pid: ${pid}`;
const complaints = (h: VirtualNode): number => h.lines.filter((l) => l.msg.includes("the kernel's log cannot be read")).length;

it('tells once that the node ran out of memory, and nothing of what has a limit of its own', async () => {
  await using h = await virtualNode({ kernelLog: true });
  h.kernelLog.say([INVOKED, detail(1, 'oom_memcg=/kubepods/pod1'), 'Memory cgroup out of memory: Killed process 1 (hog) total-vm:1kB']);
  say(h, 2);
  await h.until('it is told', () => told(h).length > 0);
  await h.advance(60_000);
  expect(told(h)).toEqual([event(2)]);
  const text = await h.metrics.render();
  expect(text).toContain('actorlet_oom_kills_total{scope="node"} 1');
  expect(text).toContain('actorlet_oom_kills_total{scope="group"} 1');
});

it('says nothing of what was before the daemon', async () => {
  await using h = await virtualNode({ kernelLog: true, before: (n) => say(n, 1) });
  await h.advance(5_000);
  say(h, 2);
  await h.until('the second is told', () => told(h).length > 0);
  await h.crash();
  say(h, 3);
  await h.boot();
  await h.advance(5_000);
  expect(told(h)).toEqual([]);
  say(h, 4);
  await h.until('the fourth is told', () => told(h).length > 0);
  expect(told(h)).toEqual([event(4)]);
});

it('goes on where it was, in the middle of a kill too, when it is killed itself', async () => {
  await using h = await virtualNode({ kernelLog: true });
  say(h, 1);
  h.kernelLog.say([INVOKED]);
  await h.until('the beginning was read', () => h.tree.registry.read(oomView)?.value.open != null);
  h.kill(path);
  h.kernelLog.say([detail(2), 'Out of memory: Killed process 2 (hog) total-vm:1kB']);
  say(h, 3);
  await h.until('all are told', () => told(h).length === 3);
  await h.advance(60_000);
  expect(told(h)).toEqual([event(1), event(2), event(3)]);
});

it('waits, longer each time, for a log that cannot be read, saying so once, and loses nothing of what it began with', async () => {
  await using h = await virtualNode({ kernelLog: true });
  await h.until('it reads', () => h.tree.registry.read(oomView) !== undefined);
  h.kernelLog.readable = false;
  await h.until('it noticed', () => h.state(path) === 'unreadable');
  say(h, 1);
  await h.advance(60_000);
  expect(h.state(path)).toBe('unreadable');
  expect(complaints(h)).toBe(1);
  expect(h.actor(path)?.lifecycle).toBe('running');
  h.kernelLog.readable = true;
  await h.until('it is told', () => told(h).length > 0, 300_000);
  expect(told(h)).toEqual([event(1)]);
  h.kernelLog.readable = false;
  await h.until('it noticed again', () => h.state(path) === 'unreadable');
  expect(complaints(h)).toBe(2);
});

it('is left out where there is no kernel to listen to', async () => {
  await using h = await virtualNode();
  expect(h.actor(path)).toBeUndefined();
});
