import { describe, expect, it } from 'vitest';
import { SpecError } from '../../src/actors/supervision/errors.ts';
import { createTree } from '../../src/actors/supervision/tree.ts';
import type { AnySpec, DynamicSpec, SupervisorSpec } from '../../src/actors/supervision/types.ts';
import { specProblems } from '../../src/actors/supervision/validate.ts';
import { fakePorts } from './fakePorts.ts';
import { actor, idle, layer, type Say } from './helpers.ts';

/** An actor specification with one field replaced by something the types forbid. */
const wrong = (field: string, value: unknown): AnySpec => ({ ...actor('x', idle), [field]: value }) as AnySpec;
const { type: _type, start: _start, ...rules } = actor('d', idle);
const dynamic: DynamicSpec<Say> = {
  ...rules,
  mailbox: {},
  type: 'dynamic',
  route: () => 'k',
  starts: () => true,
  child: (key) => actor(key, idle),
};

describe('a specification', () => {
  it('that is right has no problems', () => {
    expect(specProblems(layer('node', [actor('a', idle), dynamic, layer('l', [])]))).toEqual([]);
  });

  it.each([
    ['id', 'a/b', /^node\/a\/b: id: must be a non-empty string without/],
    ['id', '', /id: must be/],
    ['type', 'worker', /type: must be one of actor, supervisor, dynamic/],
    ['restart', 'always', /restart: must be one of permanent, transient, temporary/],
    ['shutdownMs', -1, /shutdownMs: must be "brutal" or milliseconds/],
    ['shutdownMs', 'soon', /shutdownMs/],
    ['intensity', { max: -1, periodMs: 1 }, /intensity: max/],
    ['intensity', { max: 1, periodMs: 0 }, /intensity: periodMs/],
    ['backoff', { minMs: -1, maxMs: 1, factor: 1, jitter: 0 }, /backoff: minMs/],
    ['backoff', { minMs: 2, maxMs: 1, factor: 1, jitter: 0 }, /backoff: maxMs/],
    ['backoff', { minMs: 1, maxMs: 1, factor: 0.5, jitter: 0 }, /backoff: factor/],
    ['backoff', { minMs: 1, maxMs: 1, factor: 1, jitter: -1 }, /backoff: jitter/],
    ['start', null, /start: must be a function/],
    ['ready', { when: 1, timeoutMs: 1 }, /ready: when/],
    ['ready', { when: () => true, timeoutMs: 0 }, /ready: timeoutMs/],
    ['poisonMax', 0, /poisonMax: must be an integer >= 1/],
    ['mailbox', { capacity: 0 }, /mailbox: capacity/],
    ['mailbox', { sliceMax: 0 }, /mailbox: sliceMax/],
    ['mailbox', { sliceMs: -1 }, /mailbox: sliceMs/],
    ['mailbox', { overflow: 'explode' }, /mailbox: overflow/],
    ['mailbox', { overflow: 'mark-resync' }, /mailbox: overflow mark-resync needs resync/],
  ])('with a wrong %s (%j) is refused by name', (field, value, problem) => {
    const problems = specProblems(layer('node', [wrong(field, value)]));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
  });

  it.each([
    ['strategy', 'all', /strategy: must be one of/],
    ['escalate', { parkMs: 0 }, /escalate: must be/],
    ['children', null, /children: must be a list/],
  ])('of a layer with a wrong %s is refused by name', (field, value, problem) => {
    const l = { ...layer('l', []), [field]: value } as SupervisorSpec;
    expect(specProblems(layer('node', [l]))[0]).toMatch(problem);
  });

  it.each(['route', 'starts', 'child', 'mailbox'])('of a dynamic supervisor without %s is refused by name', (field) => {
    const d = { ...dynamic, [field]: undefined } as unknown as AnySpec;
    expect(specProblems(layer('node', [d]))[0]).toMatch(new RegExp(`^node/d: ${field}: `));
  });

  it('with one id twice among siblings is refused before xstate sees it, together with every other problem', () => {
    const bad = layer('node', [actor('a', idle), actor('a', idle), wrong('restart', 'x')]);
    const make = () => createTree(bad, fakePorts());
    expect(make).toThrow(SpecError);
    expect(make).toThrow(/node: children: the id "a" is used twice; node\/x: restart/);
  });

  it('whose root could not fail upwards is refused', () => {
    expect(specProblems(layer('node', [], { escalate: { parkMs: 1000 } }))[0]).toMatch(/the root has nothing above it/);
  });
});
