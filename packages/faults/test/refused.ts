/** Scenario texts that the decoder and the JSON Schema for editors are both held to. */
import { FAULT_KIND_NAMES } from '../src/kinds.ts';

export const HEAD = 'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata:\n  name: test\nspec:\n';

/** Fields without which a kind is refused. */
export const NEEDED: Readonly<Partial<Record<string, string>>> = {
  'clock.jump': ', by: -1h',
  'pressure.memory': ', available: 100Mi',
  'pressure.disk': ', available: "0"',
  mailbox: ', select: {events: pod.dirty}',
};

/** What is wrong with an entry of `spec.faults`: its name, the text below `faults:`, and `line field: message` for each mistake. */
export const REFUSED: readonly (readonly [what: string, text: string, errors: readonly string[]])[] = [
  ['no kind', '  - name: a\n', [`1 [0].kind: is missing; it must be one of ${FAULT_KIND_NAMES.join(', ')}`]],
  ['an unknown kind', '  - kind: actor.kil\n', ['1 [0].kind: unknown value "actor.kil" (did you mean actor.kill?)']],
  ['no action', '  - kind: hints\n', ['1 [0].action: is missing; it must be one of drop, duplicate, reorder, delay']],
  [
    'an unknown action',
    '  - kind: hints\n    action: dorp\n    delay: 1s\n',
    ['2 [0].action: must be one of drop, duplicate, reorder, delay; is "dorp" (did you mean drop?)'],
  ],
  ['an unknown field', '  - kind: disk.full\n    fro: 3s\n', ['2 [0].fro: unknown field (did you mean for?)']],
  ['a field of another kind', '  - kind: disk.full\n    by: 3s\n', ['2 [0].by: is no field of disk.full']],
  ['a field of another action', '  - kind: hints\n    action: drop\n    delay: 3s\n', ['3 [0].delay: has no effect with action drop']],
  ['a selector in the wrong place', '  - kind: disk.full\n    paths: /x\n', ['2 [0].paths: belongs below select: select.paths']],
  ['a window of an instant', '  - kind: hints.cut\n    for: 3s\n', ['2 [0].for: has no effect: hints.cut happens in one instant']],
  [
    'a selector it has not',
    '  - kind: disk.full\n    select:\n      pods: [a]\n      path: [b]\n',
    [
      '3 [0].select.pods: is nothing that disk.full selects by; it has paths',
      '4 [0].select.path: unknown field (did you mean paths?); disk.full has paths',
    ],
  ],
  ['an empty list', '  - kind: disk.full\n    select: { paths: [] }\n', ['2 [0].select.paths: must not be an empty list']],
  [
    'an unknown method',
    '  - kind: cri\n    action: delay\n    select:\n      methods:\n      - Status\n      - StartContianer\n',
    ['6 [0].select.methods[1]: unknown value "StartContianer" (did you mean StartContainer?)'],
  ],
  [
    'a number for a duration',
    '  - kind: disk.full\n    for: 3\n',
    ['2 [0].for: must be a duration such as 500ms, 10s or 1m30s, is 3; a number needs its unit: 3s or 3ms'],
  ],
  [
    'a text for a duration',
    '  - kind: disk.full\n    for: soon\n',
    ['2 [0].for: must be a duration such as 500ms, 10s or 1m30s, is "soon"'],
  ],
  ['nothing for a duration', '  - kind: disk.full\n    for:\n', ['2 [0].for: must be a duration such as 500ms, 10s or 1m30s, is empty']],
  ['time that runs backwards', '  - kind: disk.full\n    at: -3s\n', ['2 [0].at: must be from 0ms to 8760h, is -3s']],
  ['a probability above one', '  - kind: disk.full\n    probability: 1.5\n', ['2 [0].probability: must be a number from 0 to 1, is 1.5']],
  ['half a count', '  - kind: disk.full\n    times: 1.5\n', ['2 [0].times: must be a whole number from 1 to 10000, is 1.5']],
  ['a count without a period', '  - kind: hints.cut\n    count: 3\n', ['2 [0].count: has no effect without every']],
  ['a period without a length', '  - kind: disk.full\n    every: 3s\n', ['2 [0].every: needs for: how long each of its windows lasts']],
  [
    'windows that overlap',
    '  - kind: disk.full\n    every: 3s\n    for: 4s\n',
    ['2 [0].every: must not be shorter than for: windows of one fault do not overlap'],
  ],
  ['no bytes', '  - kind: pressure.disk\n', ['1 [0].available: is missing']],
  ['strange bytes', '  - kind: pressure.disk\n    available: much\n', ['2 [0].available: must be a quantity such as 100Mi, is "much"']],
  [
    'every mailbox',
    '  - kind: mailbox\n    action: drop\n    select: {lanes: data}\n',
    ['3 [0].select: a mailbox fault must name actors or events; every message of a node is no target'],
  ],
  [
    'a name twice',
    '  - {name: a, kind: hints.cut}\n  - {name: a, kind: hints.cut}\n',
    ['2 [1].name: a is already the name of the fault on line 7'],
  ],
  [
    'an unknown name to wait for',
    '  - {name: outage, kind: hints.cut}\n  - {kind: hints.cut, after: outgae}\n',
    ['2 [1].after: there is no fault named outgae (did you mean outage?)'],
  ],
  [
    'faults that wait for each other',
    '  - {name: a, kind: hints.cut, after: b}\n  - {name: b, kind: hints.cut, after: a}\n',
    ['1 [0].after: a would wait for itself', '2 [1].after: b would wait for itself'],
  ],
  ['an entry that is no mapping', '  - cri\n', ['1 [0]: must be a mapping, is "cri"']],
  ['an alias', '  - &x {kind: hints.cut}\n  - *x\n', ['2 [1]: must be a mapping, is an alias']],
];

/** Those of them that only the decoder can tell: they are about two values, or about names of other faults. */
export const BEYOND_SHAPE: readonly string[] = [
  'windows that overlap',
  'a name twice',
  'an unknown name to wait for',
  'faults that wait for each other',
  // The validator sees what the alias stands for.
  'an alias',
];
