/** The one reader of YAML and JSON documents: what Kubernetes' Go programs make of the same text. */
import { readDocument as readScenario } from '@actorlet/faults/src/read/document.ts';
import { describe, expect, it } from 'vitest';
import { readDocument, textOf } from '../../../src/machines/document/read.ts';
import { messageOf } from '../../../src/machines/text/errors.ts';

const readOf = (text: string): unknown => {
  const read = readDocument(text);
  return read.ok ? read.value : `${read.line}:${read.column} ${read.message}`;
};
const notesOf = (text: string): unknown => {
  const read = readDocument(text);
  return read.ok ? read.notes.map((n) => `${n.line}: ${n.what}`) : read.message;
};

describe('plain scalars', () => {
  it.each([
    ...[
      ['y', true],
      ['Yes', true],
      ['ON', true],
      ['n', false],
      ['off', false],
      ['NO', false],
      ['yEs', 'yEs'],
    ],
    ...[
      ['0644', 420],
      ['0o644', 420],
      ['0x1F', 31],
      ['0b11', 3],
      ['-0b11', -3],
      ['1_000', 1000],
      ['089', 89],
      ['+5', 5],
    ],
    ...[
      ['1e3', 1000],
      ['1.', 1],
      ['.5', 0.5],
      ['1.50', 1.5],
      ['1e999', '1e999'],
      ['1:30', '1:30'],
      ['2020-01-01', '2020-01-01'],
    ],
    ...[
      ['~', null],
      ['', null],
      ['Null', null],
      ['nULL', 'nULL'],
      ['"y"', 'y'],
      ["'5'", '5'],
      ['!!str 5', '5'],
      ['!!int "5"', 5],
    ],
    ...[
      ['!own 5', '5'],
      ['!!binary aGk=', 'hi'],
      ['18446744073709551616', 18446744073709552000],
      ['0o9', '0o9'],
    ],
  ] as [string, unknown][])('%s', (text, value) => expect(readOf(`a: ${text}`)).toEqual({ a: value }));

  it.each(['.inf', '.nan', '!!int x', '!!bool "maybe"'])('%s is refused', (text) => expect(readOf(`a: ${text}`)).toMatch(/^1:\d+ not a /));
});

describe('documents of one text', () => {
  it.each([
    ['---\na: 1\n---\nb: 2\n', { a: 1 }],
    ['# by hand\n\n---\na: 1\n---\n', { a: 1 }],
    ['%YAML 1.1\n---\na: 1\n', { a: 1 }],
    ['a: 1\n---\n}{\n', { a: 1 }],
    ['---\n---\na: 1', null],
    ['\ufeffa: 1', { a: 1 }],
    ['a: 1\r\nb:\r\n- x\r\n', { a: 1, b: ['x'] }],
    ['# nothing', null],
  ])('%j: the first one', (text, value) => expect(readOf(text)).toEqual(value));

  it('are named when they hold anything', () => {
    expect(notesOf('a: 1\n--- # more\n# end\n---\nb: 2\n')).toEqual([
      '5: another document begins here; only the first one of a file counts',
    ]);
    expect(notesOf('a: 1\n---\n# end\n---\n')).toEqual([]);
  });
});

describe('fields that are there twice', () => {
  it('the last one counts in YAML', () => {
    expect(readOf('a: {x: 1}\nb: 1\na: {z: 2}')).toEqual({ a: { z: 2 }, b: 1 });
    expect(notesOf('a: 1\nb: 1\na: 2')).toEqual(['3: a is there more than once; the last one counts']);
  });
  it('objects are joined in JSON', () => {
    const text = '{"a": {"x": 1, "y": [1]},\n "a": {"y": [2]}}';
    expect(readOf(text)).toEqual({ a: { x: 1, y: [2] } });
    expect(notesOf(text)).toEqual(['2: a is there more than once; the last one counts']);
  });
  it('what is merged takes the place of what stands before it', () => {
    expect(readOf('p: &x {a: 1, b: 1}\nq: {a: 2, <<: *x, b: 2}')).toEqual({ p: { a: 1, b: 1 }, q: { a: 1, b: 2 } });
    expect(readOf('q: {<<: [{a: 1}, {a: 2, b: 2}]}')).toEqual({ q: { a: 1, b: 2 } });
  });
});

describe('JSON', () => {
  it.each([
    '{"a": 1,}',
    '{"a": 1} x',
    '{a: 1}',
    "{'a': 1}",
    '{"a": 01}',
    '{"a": "\t"}',
    '{"a": [1 2]}',
    '{"a"',
    '{"a": "',
    '{',
    '{"a": tru}',
  ])('%s is refused', (text) => expect(readDocument(text).ok).toBe(false));
  it('is what JSON.parse makes of it', () => {
    const text = ' {"a": [1, -2.5e3, true, false, null, "\\u00e4\\"\\\\", {}, []], "__proto__": {"b": ""}}\n';
    expect(readOf(text)).toEqual(JSON.parse(text));
  });
});

it('fields have lines', () => {
  for (const text of ['a:\n  b: 1\n  c:\n  - x\n', '{"a":\n {"b": 1,\n "c": ["x"]}}']) {
    const read = readDocument(text);
    if (!read.ok) throw new Error(read.message);
    const { a } = read.value as { a: object };
    expect(read.lineOf(a, 'c')).toBe(3);
  }
});

it('text is UTF-8, or UTF-16 with a byte order mark', () => {
  expect(textOf(Uint8Array.of(0xff, 0xfe, 0x61, 0))).toBe('a');
  expect(textOf(Uint8Array.of(0x61, 0xc3))).toBeNull();
  expect(textOf(Uint8Array.of(0x7b, 0xc3))).toBe('{\ufffd');
});

it.each([
  ...['a: | hunter2', 'a: >5x hunter2', 'a: *hunter2', '- |hunter2\n  x', '"a" "hunter2"', '!<hunter2', '{"a": hunter2}', '[a]\n}hunter2'],
  ...['- a\n  |\n  hunter2: x\n }', 'a: [b]\n}: "hunter2"', 'a: "hunter2', '{"a":"hunter2" x}'],
])('repeats nothing of a document that cannot be read: %s', (text) => {
  expect(readOf(text)).toMatch(/^\d+:\d+ \S/);
  expect(readOf(text)).not.toContain('hunter2');
  expect(readScenario(text, 'Scenario', () => null)).not.toMatchObject({ errors: [{ message: expect.stringContaining('hunter2') }] });
  try {
    JSON.parse(text);
  } catch (error) {
    expect(messageOf(error)).not.toContain('hunter2');
  }
});
