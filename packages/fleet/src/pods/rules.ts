/** What containers of a fleet do, by rules: which of them match a container, which one is drawn, and the life that it gives. Pure. */

import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { parseGoDuration } from '@actorlet/kubelet/machines/text/go/goDuration.ts';
import {
  HOLLOW_ANNOTATION,
  type HollowLife,
  parseLife,
  parseUsage,
  type ScriptedContainer,
  type Usage,
} from '@actorlet/runtimes/src/hollow/index.ts';
import { globToRegExp } from '@actorlet/shown/src/match.ts';
import { type Delay, drawn } from '../spec/delay.ts';

/** What a requirement of a rule looks at: a label or an annotation by its key, or the kinds of the pod's owners. */
export interface Requirement {
  of: 'label' | 'annotation' | 'ownerKind';
  /** '' for owners. */
  key: string;
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  values: readonly string[];
}
/** A delay, or what annotations of the pod say instead, as Go durations. */
export type RuleDelay = Delay & { fromAnnotation?: string; toAnnotation?: string };

export interface PodRule {
  /** Of the rules that are about the same, one is drawn. `all`: the whole life. */
  about: 'all' | 'start' | 'stop' | 'end';
  /** Patterns. */
  images?: readonly string[];
  namespaces?: readonly string[];
  containers?: readonly string[];
  /** Of nodes. */
  groups?: readonly string[];
  requirements: readonly Requirement[];
  which: 'every' | 'init' | 'main';
  weight: number;
  weightAnnotation?: string;
  hollow?: string;
  usage?: string;
  start?: RuleDelay;
  run?: RuleDelay;
  stop?: RuleDelay;
  exit?: number;
  /** Annotations of the pod that say another exit code, its reason, and the one container that it is about. */
  exitFrom?: { code?: string; reason?: string; container?: string };
}

const ASPECTS = ['all', 'start', 'stop', 'end'] as const;

/** A rule with its patterns, for any number of nodes. */
export interface CompiledRule {
  rule: PodRule;
  images: readonly RegExp[] | null;
  namespaces: readonly RegExp[] | null;
  containers: readonly RegExp[] | null;
}

/** Once for all groups of nodes. */
export function compiledRules(rules: readonly PodRule[]): CompiledRule[] {
  const compiled = (globs: readonly string[] | undefined): readonly RegExp[] | null => globs?.map(globToRegExp) ?? null;
  return rules.map((rule) => ({
    rule,
    images: compiled(rule.images),
    namespaces: compiled(rule.namespaces),
    containers: compiled(rule.containers),
  }));
}

/** Those that are about nodes of one of these groups. */
export function rulesOf(rules: readonly CompiledRule[], groups: readonly string[]): CompiledRule[] {
  return rules.filter(({ rule }) => rule.groups === undefined || rule.groups.some((name) => groups.includes(name)));
}

export class PodRules {
  readonly #rules: readonly CompiledRule[];
  readonly #next: () => number;

  /** @param next Draws from 0 up to 1. */
  constructor(rules: readonly CompiledRule[], next: () => number) {
    this.#rules = rules;
    this.#next = next;
  }

  /** A draw for each start of a container. Annotations of the pod count more than rules: what they say is not said here. */
  lifeOf(c: ScriptedContainer, pod: Pod | undefined): Partial<HollowLife> | undefined {
    // Nothing else would let its pod begin.
    const itself = endsByItself(c, pod) ? { runMs: 0 } : undefined;
    const said = [HOLLOW_ANNOTATION, `${HOLLOW_ANNOTATION}.${c.name}`].flatMap((key) => c.annotations[key] ?? []);
    if (said.length > 0) return said.some((text) => 'runMs' in parseLife(text, c.attempt)) ? undefined : itself;
    const matching = this.#rules.filter((r) => matches(r, c, pod)).map(({ rule }) => rule);
    if (matching.length === 0) return itself;
    const chosen = ASPECTS.flatMap(
      (about) =>
        this.#drawn(
          matching.filter((rule) => rule.about === about),
          c,
        ) ?? [],
    );
    return Object.assign({}, itself, ...chosen.map((rule) => this.#life(rule, c))) as Partial<HollowLife>;
  }

  /** Of the first rule that matches and says it. */
  usageOf(c: ScriptedContainer, pod: Pod | undefined): Usage | undefined {
    const said = this.#rules.find((r) => r.rule.usage !== undefined && matches(r, c, pod))?.rule.usage;
    return said === undefined ? undefined : parseUsage(said);
  }

  /** In proportion to the weights; evenly where they are all 0. */
  #drawn(rules: readonly PodRule[], c: ScriptedContainer): PodRule | undefined {
    if (rules.length <= 1) return rules[0];
    const weights = rules.map((rule) => weightOf(rule, c));
    const total = weights.reduce((sum, w) => sum + w, 0);
    if (total === 0) return rules[Math.floor(this.#next() * rules.length)];
    let left = this.#next() * total;
    return rules.find((_, i) => {
      left -= weights[i] ?? 0;
      return left < 0;
    });
  }

  #life(rule: PodRule, c: ScriptedContainer): Partial<HollowLife> {
    const ms = (delay: RuleDelay): number => drawn(annotated(delay, c), this.#next);
    return {
      ...(rule.hollow === undefined ? {} : parseLife(rule.hollow, c.attempt)),
      ...(rule.start === undefined ? {} : { startDelayMs: ms(rule.start) }),
      ...(rule.run === undefined ? {} : { runMs: ms(rule.run) }),
      ...(rule.stop === undefined ? {} : { termDelayMs: ms(rule.stop) }),
      ...exitOf(rule, c),
    };
  }
}

/** An init container, unless it is a sidecar. */
function endsByItself(c: ScriptedContainer, pod: Pod | undefined): boolean {
  return pod?.spec.initContainers?.some((own) => own.name === c.name && own.restartPolicy !== 'Always') === true;
}

function exitOf({ exit, exitFrom }: PodRule, { annotations }: ScriptedContainer): Partial<HollowLife> {
  if (exit === undefined) return {};
  const said = (key: string | undefined): string => (key === undefined ? undefined : annotations[key]) ?? '';
  const [code, exitReason] = [said(exitFrom?.code), said(exitFrom?.reason)];
  const exitCode = /^\d{1,3}$/.test(code) && Number(code) <= 255 ? Number(code) : exit;
  return { exitCode, ...(exitReason === '' ? {} : { exitReason }) };
}

function weightOf({ weight, weightAnnotation }: PodRule, c: ScriptedContainer): number {
  const said = Number(weightAnnotation === undefined ? undefined : c.annotations[weightAnnotation]);
  return Number.isFinite(said) && said >= 0 ? said : weight;
}

function annotated(delay: RuleDelay, c: ScriptedContainer): Delay {
  if (!('fromMs' in delay)) return delay;
  const said = (key: string | undefined): number | undefined => parseGoDuration((key === undefined ? undefined : c.annotations[key]) ?? '');
  const fromMs = said(delay.fromAnnotation) ?? delay.fromMs;
  // As KWOK: the second length counts alone where it is the shorter one.
  const toMs = said(delay.toAnnotation) ?? (delay.toMs === delay.fromMs ? fromMs : delay.toMs);
  return toMs < fromMs ? { fromMs: toMs, toMs } : { fromMs, toMs };
}

function matches({ rule, images, namespaces, containers }: CompiledRule, c: ScriptedContainer, pod: Pod | undefined): boolean {
  const any = (patterns: readonly RegExp[] | null, text: string): boolean => patterns === null || patterns.some((p) => p.test(text));
  const only = rule.exitFrom?.container === undefined ? undefined : c.annotations[rule.exitFrom.container];
  if (only !== undefined && only !== '' && only !== c.name) return false;
  if (!any(images, c.image) || !any(namespaces, c.pod.namespace) || !any(containers, c.name)) return false;
  if (rule.which !== 'every') {
    const isInit = pod?.spec.initContainers?.some((own) => own.name === c.name) === true;
    if (isInit !== (rule.which === 'init')) return false;
  }
  return rule.requirements.every((r) => meets(r, c, pod));
}

function meets({ of, key, operator, values }: Requirement, c: ScriptedContainer, pod: Pod | undefined): boolean {
  const found =
    of === 'ownerKind'
      ? (pod?.metadata.ownerReferences ?? []).map((owner) => owner.kind)
      : [of === 'label' ? c.labels[key] : c.annotations[key]].filter((value) => value !== undefined);
  if (operator === 'Exists') return found.length > 0;
  if (operator === 'DoesNotExist') return found.length === 0;
  return found.some((value) => values.includes(value)) === (operator === 'In');
}
