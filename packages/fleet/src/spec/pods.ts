/** Rules of a fleet file about what containers do. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { parseLife, parseUsage } from '@actorlet/runtimes/src/hollow/index.ts';
import type { PodRule, Requirement } from '../pods/rules.ts';
import { delayIn } from './delay.ts';
import { fieldsIn, textsOf } from './fields.ts';
import { EXIT, RULE_DELAYS, RULE_LIFE, RULE_SELECT } from './table.ts';

export function decodeRule(rule: MapReader, groups: readonly string[]): PodRule {
  const select = fieldsIn(rule, RULE_SELECT);
  const { weight, hollow, usage } = fieldsIn(rule, RULE_LIFE);
  const labels = Object.entries(textsOf(rule.map('labels')));
  const exit = rule.read('exit', EXIT);
  const delays = (Object.keys(RULE_DELAYS) as (keyof typeof RULE_DELAYS)[]).flatMap((name) => {
    const delay = delayIn(rule, name);
    return delay === undefined ? [] : [[name, delay] as const];
  });
  rule.finish();
  for (const group of select.groups ?? []) {
    if (!groups.includes(group)) rule.wrong('groups', `there is no group ${JSON.stringify(group)}; known: ${groups.join(', ')}`);
  }
  // Each life of a list is for one attempt.
  checked(rule, 'hollow', () => hollow?.split(';').forEach((_, attempt) => void parseLife(hollow, attempt)));
  checked(rule, 'usage', () => usage !== undefined && void parseUsage(usage));
  if (hollow === undefined && usage === undefined && exit === undefined && delays.length === 0) {
    rule.wrong('', `says nothing; it needs hollow, usage, exit, ${Object.keys(RULE_DELAYS).join(', ')}`);
  }
  return {
    about: 'all',
    which: 'every',
    ...select,
    requirements: labels.map(([key, value]): Requirement => ({ of: 'label', key, operator: 'In', values: [value] })),
    weight,
    ...(hollow === undefined ? {} : { hollow }),
    ...(usage === undefined ? {} : { usage }),
    ...(exit === undefined ? {} : { exit }),
    ...(Object.fromEntries(delays) as Pick<PodRule, keyof typeof RULE_DELAYS>),
  };
}

function checked(rule: MapReader, field: string, read: () => unknown): void {
  try {
    read();
  } catch (error) {
    rule.wrong(field, messageOf(error).replace(/^annotation \S+: /, ''));
  }
}
