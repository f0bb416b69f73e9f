/** Outcomes of specs from the JUnit report of ginkgo, by group, and where agents differ. Pure. */

export interface Outcome {
  result: 'passed' | 'failed';
  /** First line of why it failed; ''. */
  why: string;
  /** The image that was not there, of one that failed; ''. */
  image: string;
}
/** By the whole name of the spec. */
export type SpecOutcomes = ReadonlyMap<string, Outcome>;

const WHY_CHARS_MAX = 300;

/** Specs that were skipped are left out. `missing`: images that are not there. */
export function specsOf(junit: string, missing: readonly string[]): SpecOutcomes {
  const outcomes = new Map<string, Outcome>();
  for (const [, head = '', body = ''] of junit.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const name = unescaped(/name="([^"]*)"/.exec(head)?.[1] ?? '');
    const status = /status="([^"]*)"/.exec(head)?.[1] ?? '';
    if (!name.startsWith('[It]') || status === 'skipped' || status === 'pending') continue;
    const why = unescaped(/<(?:failure|error) message="([^"]*)"/.exec(body)?.[1] ?? '');
    const passed = status === 'passed';
    const image = passed ? '' : (missing.find((name) => body.includes(name)) ?? '');
    outcomes.set(name, { result: passed ? 'passed' : 'failed', why: why.split('\n', 1)[0]?.slice(0, WHY_CHARS_MAX) ?? '', image });
  }
  return outcomes;
}

function unescaped(text: string): string {
  const signs: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&', apos: "'" };
  return text.replace(/&(?:#x?([0-9a-fA-F]+)|(\w+));/g, (whole, code: string | undefined, word: string | undefined) =>
    code === undefined ? (signs[word ?? ''] ?? whole) : String.fromCodePoint(Number.parseInt(code, whole.startsWith('&#x') ? 16 : 10)),
  );
}

/** `[sig-node]`, `[sig-storage]` ... */
function groupOf(name: string): string {
  return /\[sig-[a-z-]+\]/.exec(name)?.[0] ?? '[other]';
}

interface Row {
  group: string;
  /** Passed, by agent. */
  passed: Record<string, number>;
  failedByAll: number;
  specs: number;
}

/** A spec that all agents fail where an image is not there is `notRunnable`, and in no other number. */
export function tableOf(outcomes: Readonly<Record<string, SpecOutcomes>>) {
  const agents = Object.keys(outcomes);
  const names = [...new Set(agents.flatMap((agent) => [...(outcomes[agent]?.keys() ?? [])]))].sort();
  const of = (agent: string, name: string): Outcome | undefined => outcomes[agent]?.get(name);
  const isRunnable = (name: string): boolean => agents.some((agent) => (of(agent, name)?.image ?? '') === '');
  const notRunnable = names.filter((name) => !isRunnable(name)).map((name) => ({ name, image: of(agents[0] ?? '', name)?.image ?? '' }));
  const judged = names.filter(isRunnable);
  const rows: Row[] = [...new Set(judged.map(groupOf))].map((group) => {
    const specs = judged.filter((name) => groupOf(name) === group);
    const passed = Object.fromEntries(agents.map((agent) => [agent, specs.filter((name) => of(agent, name)?.result === 'passed').length]));
    const failedByAll = specs.filter((name) => agents.every((agent) => of(agent, name)?.result === 'failed')).length;
    return { group, passed, failedByAll, specs: specs.length };
  });
  const failed = judged.flatMap((name) => {
    const why = Object.fromEntries(
      agents.flatMap((agent) => (of(agent, name)?.result === 'failed' ? [[agent, of(agent, name)?.why]] : [])),
    );
    return Object.keys(why).length === 0 ? [] : [{ name, why }];
  });
  const lines = rows.map((r) => `| ${r.group} | ${r.specs} | ${agents.map((a) => r.passed[a]).join(' | ')} | ${r.failedByAll} |`);
  const head = [`| group | specs | ${agents.join(' | ')} | failed by all |`, `|---|---|${agents.map(() => '---|').join('')}---|`];
  return { text: [...head, ...lines].join('\n'), figures: { rows, failed, notRunnable } };
}
