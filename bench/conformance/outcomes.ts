/** Outcomes of specs from the JUnit report of ginkgo, what they come to over several runs, and the table. Pure. */
import { GROUPS, groupOf } from './groups.ts';

export interface Outcome {
  /** `skipped`: by the spec itself, which says what it lacks. */
  result: 'passed' | 'failed' | 'skipped';
  /** First line of why it failed or was skipped; ''. */
  why: string;
  /** The image that was not there, of one that failed; ''. */
  image: string;
  /** How often it ran: one that failed runs once more, alone. */
  tries: number;
}
/** By the whole name of the spec. */
export type SpecOutcomes = Readonly<Record<string, Outcome>>;

const WHY_CHARS_MAX = 300;
export const TRIES_MAX = 2;

/** Names of all specs of a report, those that were not chosen too. */
export function namesOf(junit: string): string[] {
  return [...cases(junit)].map(({ name }) => name);
}

/** Without those that the end of the time cut off. `missing`: images that are not there. */
export function outcomesOf(junit: string, missing: readonly string[]): SpecOutcomes {
  const outcomes: Record<string, Outcome> = {};
  for (const { name, status, body } of cases(junit)) {
    const said = unescaped(/<(?:failure|error|skipped) message="([^"]*)"/.exec(body)?.[1] ?? '');
    const why = said.split('\n', 1)[0]?.slice(0, WHY_CHARS_MAX) ?? '';
    if (status === 'passed') outcomes[name] = { result: 'passed', why: '', image: '', tries: 1 };
    // What was not chosen is skipped without a reason. The rest of an ordered group whose first spec failed did not run.
    else if (status === 'skipped' && why.includes(' - ') && !why.includes('in an ordered container failed'))
      outcomes[name] = { result: 'skipped', why, image: '', tries: 1 };
    else if (status === 'failed' || status === 'panicked')
      outcomes[name] = { result: 'failed', why, image: missing.find((image) => body.includes(image)) ?? '', tries: 1 };
  }
  return outcomes;
}

function* cases(junit: string): Generator<{ name: string; status: string; body: string }> {
  for (const [, head = '', body = ''] of junit.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const name = unescaped(/name="([^"]*)"/.exec(head)?.[1] ?? '');
    if (name.startsWith('[It]')) yield { name, status: /status="([^"]*)"/.exec(head)?.[1] ?? '', body };
  }
}

/** Those that were known, and those of a run since. */
export function merged(known: SpecOutcomes, run: SpecOutcomes): SpecOutcomes {
  const again = Object.entries(run).map(([name, outcome]) => [name, { ...outcome, tries: (known[name]?.tries ?? 0) + 1 }] as const);
  return { ...known, ...Object.fromEntries(again) };
}

/** The specs that an agent has yet to run: first those that it never ran, then those that failed among others, which run alone. */
export function toRun(specs: readonly string[], known: SpecOutcomes): { first: string[]; alone: string[] } {
  return {
    first: specs.filter((name) => known[name] === undefined),
    alone: specs.filter((name) => {
      const { result, tries, image } = known[name] ?? { result: 'passed', tries: 0, image: '' };
      return result === 'failed' && tries < TRIES_MAX && image === '';
    }),
  };
}

/**
 * The regular expression of ginkgo's `--focus` that chooses these. It is matched with the text of a spec, which is its name in the report
 * without the kind of its node, its labels, and the versions that it is for.
 */
export function focusOf(names: readonly string[]): string {
  const texts = names.map((name) =>
    name
      .replace(/^\[It\] /, '')
      .replace(/ \[[\w.-]+: \[[^\]]*\]\]$/, '')
      .replace(/ \[[^\]]*\]$/, ''),
  );
  return `(?:${texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})$`;
}

function unescaped(text: string): string {
  const signs: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&', apos: "'" };
  return text.replace(/&(?:#x?([0-9a-fA-F]+)|(\w+));/g, (whole, code: string | undefined, word: string | undefined) =>
    code === undefined ? (signs[word ?? ''] ?? whole) : String.fromCodePoint(Number.parseInt(code, whole.startsWith('&#x') ? 16 : 10)),
  );
}

/** All outcomes, short: what a later run goes on from. */
interface Listed {
  /** By all agents, at the first try. */
  passed: string[];
  /** By all agents, by the reason. */
  skipped: Record<string, string[]>;
  /** By agent. */
  others: Record<string, Record<string, Outcome>>;
}

const PASSED: Outcome = { result: 'passed', why: '', image: '', tries: 1 };

export function listed(outcomes: Readonly<Record<string, SpecOutcomes>>): Listed {
  const list: Listed = { passed: [], skipped: {}, others: {} };
  const agents = Object.keys(outcomes);
  for (const name of [...new Set(Object.values(outcomes).flatMap((of) => Object.keys(of)))].sort()) {
    const own = agents.flatMap((agent) => (outcomes[agent]?.[name] === undefined ? [] : [[agent, outcomes[agent][name]] as const]));
    const isOfAll = (result: string): boolean =>
      own.length === agents.length && own.every(([, of]) => of.result === result && of.tries === 1);
    const why = own[0]?.[1].why ?? '';
    if (isOfAll('passed')) list.passed.push(name);
    else if (isOfAll('skipped')) list.skipped[why] = [...(list.skipped[why] ?? []), name];
    else list.others[name] = Object.fromEntries(own);
  }
  return list;
}

export function unlisted(list: Listed, agents: readonly string[]): Record<string, SpecOutcomes> {
  const skipped = Object.entries(list.skipped).flatMap(([why, names]) =>
    names.map((name) => [name, { ...PASSED, result: 'skipped', why } as Outcome] as const),
  );
  const ofAll = [...list.passed.map((name) => [name, PASSED] as const), ...skipped];
  return Object.fromEntries(
    agents.map((agent) => {
      const own = Object.entries(list.others).flatMap(([name, of]) => (of[agent] === undefined ? [] : [[name, of[agent]] as const]));
      return [agent, Object.fromEntries([...ofAll, ...own])];
    }),
  );
}

interface Row {
  group: string;
  /** Those of the group that all agents ran. */
  specs: number;
  /** Passed, by agent. */
  passed: Record<string, number>;
  /** Of these at the second try, alone. */
  secondTry: Record<string, number>;
  failedByAll: number;
  /** Skipped by the spec itself, or failed by all where an image is not there. In no other number. */
  notRunnable: number;
  /** Not run yet, by one of the agents. */
  left: number;
}

/** `specs`: all that there are, of the groups that are wanted. */
export function tableOf(specs: readonly string[], outcomes: Readonly<Record<string, SpecOutcomes>>) {
  const agents = Object.keys(outcomes);
  const of = (agent: string, name: string): Outcome | undefined => outcomes[agent]?.[name];
  const all = (name: string, test: (outcome: Outcome) => boolean): boolean =>
    agents.every((agent) => {
      const outcome = of(agent, name);
      return outcome !== undefined && test(outcome);
    });
  const isNotRunnable = (name: string): boolean => all(name, ({ result, image }) => result === 'skipped' || image !== '');
  const ran = specs.filter((name) => all(name, () => true));
  const judged = ran.filter((name) => !isNotRunnable(name));
  const rows: Row[] = GROUPS.map(({ name: group }) => group)
    .filter((group) => specs.some((name) => groupOf(name) === group))
    .map((group) => {
      const own = judged.filter((name) => groupOf(name) === group);
      const count = (test: (outcome: Outcome | undefined) => boolean): Record<string, number> =>
        Object.fromEntries(agents.map((agent) => [agent, own.filter((name) => test(of(agent, name))).length]));
      const inGroup = (list: readonly string[]): number => list.filter((name) => groupOf(name) === group).length;
      return {
        ...{ group, specs: own.length },
        passed: count((outcome) => outcome?.result === 'passed'),
        secondTry: count((outcome) => outcome?.result === 'passed' && outcome.tries > 1),
        failedByAll: own.filter((name) => all(name, ({ result }) => result === 'failed')).length,
        notRunnable: inGroup(ran.filter(isNotRunnable)),
        left: inGroup(specs) - inGroup(ran),
      };
    });
  const failed = judged.flatMap((name) => {
    const why = Object.fromEntries(
      agents.flatMap((agent) => (of(agent, name)?.result === 'failed' ? [[agent, of(agent, name)?.why ?? '']] : [])),
    );
    return Object.keys(why).length === 0 ? [] : [{ name, why }];
  });
  return { rows, failed, notRunnable: reasonsOf(ran.filter(isNotRunnable).map((name) => of(agents[0] ?? '', name))) };
}

/** How many specs are not runnable for what reason, the most frequent first. */
function reasonsOf(outcomes: readonly (Outcome | undefined)[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const outcome of outcomes) {
    const reason = outcome?.image ? `no image ${outcome.image}` : (outcome?.why ?? '').replace(/^.* - /, '');
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}

/** As a table of a document. */
export function markdownOf(rows: readonly Row[], agents: readonly string[]): string {
  const cell = (row: Row, agent: string): string => {
    const again = row.secondTry[agent] ?? 0;
    return again === 0 ? `${row.passed[agent]}` : `${row.passed[agent]} (${again} at the second try)`;
  };
  const lines = rows.map(
    (row) =>
      `| ${row.group} | ${row.specs} | ${agents.map((agent) => cell(row, agent)).join(' | ')} | ${row.failedByAll} | ${row.notRunnable} | ${row.left} |`,
  );
  const head = ['group', 'specs', ...agents.map((agent) => `passed: ${agent}`), 'failed by both', 'not runnable', 'not run'];
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...lines].join('\n');
}
