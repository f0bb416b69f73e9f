/** Invariants about the node's certificates: renewed in time, whole on disk, their keys nobody else's business, asked for sparingly. */

import { SIGNERS } from '@actorlet/kubelet/machines/api/certificates/template.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { REVIEWS } from '@actorlet/world/src/identity/accounts.ts';
import { readPair, SECRET, type SimCertificate, textAt } from '@actorlet/world/src/identity/certificates.ts';
import { keptPairs, type PairUse, pairPath } from '@actorlet/world/src/identity/identity.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { traceText } from '@actorlet/world/src/trace.ts';
import type { Checker, Scene } from '../checker.ts';

/** Waits of the node, written down a second time on purpose: the longest after a failure, and for what a dead stream keeps back. */
const CARRY_MS = 100_000;
/** Its certificates are looked at this often, whatever its clock said. */
const RELOAD_MS = 60_000;
/** Files of a server's certificate are looked at this often. */
const LOOK_MS = 10_000;
/** A tenth of the shortest life is left when the last moment of its renewal has come; so much of that must be left when it is done. */
const RENEWED_BEFORE_MS = 1_500;
const WINDOW_MS = 60_000;
/** Six renewals of the shortest life, and as many failures as its waits allow; each start of its actor may add one. */
const ASKED_MAX = 14;
const RECORDER_LINES = 400;
/** Layers, with which others are restarted, and who has to do with certificates. */
const CONCERNED = /^node(\/[^/]+)?$|^node\/(api|edge)\//;

interface Disturbed {
  /** A boot, or a death of an actor that has to do with it. */
  atMs: number;
  jumpedAtMs: number;
  offsetMs: number;
}

/**
 * What the node shows has not ended, unless something was in the way of its renewal: faults, a death, a signer that did not
 * sign, a clock that was wrong when it was decided how long to wait.
 */
export function certificatesAreRenewed(): Checker {
  const disturbed = new Map<string, Disturbed>();
  const of = (s: Scene): Disturbed => {
    const known = disturbed.get(s.node.name) ?? { atMs: s.monoMs, jumpedAtMs: Number.NEGATIVE_INFINITY, offsetMs: 0 };
    disturbed.set(s.node.name, known);
    return known;
  };
  const judge = (s: Scene, certificate: SimCertificate, o: { what: string; graceMs: number }): string | undefined => {
    const { certificates } = s.node.tuning;
    const nowMs = s.kube?.wallMs() ?? 0;
    const overMs = nowMs - certificate.notAfterMs;
    if (overMs <= o.graceMs || certificates === null || !certificates.rotate) return undefined;
    const d = of(s);
    const mono = (wallMs: number): number => s.monoMs - (nowMs - wallMs);
    // The second half of what it had to live; the signer's doings count from the moment at which it was signed.
    const beganMs = mono(certificate.notAfterMs - certificates.lifeMs);
    const halfMs = mono(certificate.notAfterMs - certificates.lifeMs / 2);
    const quietSinceMs = Math.max(d.atMs, s.environment.fairSinceMs() + CARRY_MS, d.jumpedAtMs + RELOAD_MS + CARRY_MS);
    if (quietSinceMs > halfMs || s.environment.signerTroubledAtMs(s.node.name) > beganMs) return undefined;
    const when = overMs >= 0 ? `ended ${(overMs / 1_000).toFixed(3)} s ago` : `ends in ${(-overMs / 1_000).toFixed(3)} s`;
    return `${s.node.name}: ${o.what} ${when}, and nothing was in the way of another`;
  };
  return {
    name: 'certificates-are-renewed',
    booted(s) {
      of(s).atMs = s.monoMs;
      return undefined;
    },
    supervision(s, e) {
      if (e.kind === 'child.exited' && CONCERNED.test(e.path)) of(s).atMs = s.monoMs;
      return undefined;
    },
    beat(s) {
      const d = of(s);
      if (s.node.wallOffsetMs !== d.offsetMs) d.jumpedAtMs = s.monoMs;
      d.offsetMs = s.node.wallOffsetMs;
      for (const use of keptPairs(s.node.tuning.certificates)) {
        if (pairProblem(s.node, use) !== null) continue;
        const path = pairPath(use);
        const text = textAt(s.node.disk, path) ?? '';
        const late = judge(s, readPair(text, text), { what: `the pair at ${path}`, graceMs: -RENEWED_BEFORE_MS });
        if (late !== undefined) return late;
      }
      return undefined;
    },
    shown: (s, certificate) => judge(s, certificate, { what: 'the certificate that it shows to the API server', graceMs: 0 }),
    answered(s, { answer, tookMs }) {
      if (answer.kind !== 'reply' || s.node.tuning.certificates?.serving !== true) return undefined;
      // It was shown when the caller came, who may have waited for long.
      return judge(s, answer.shown, { what: 'the certificate that it serves with', graceMs: LOOK_MS + tookMs });
    },
  };
}

/** A link to the newest pair leads to a whole one, or is not there: after every death, and at every other moment. */
export function pairsAreWhole(): Checker {
  const seen = new Set<string>();
  const look = (s: Scene): string | undefined => {
    for (const use of keptPairs(s.node.tuning.certificates)) {
      const problem = pairProblem(s.node, use);
      const key = `${s.node.name} ${use}`;
      if (problem === null) seen.add(key);
      // What was torn before the first daemon began is the node's to replace, and not its doing.
      else if (seen.has(key)) return `${s.node.name}: ${problem}`;
    }
    return undefined;
  };
  return { name: 'pairs-are-whole', booted: look, beat: look };
}

/** Null: there is a whole pair. */
function pairProblem(node: SimNode, use: PairUse): string | null {
  const path = pairPath(use);
  const text = textAt(node.disk, path);
  if (text === null) return `there is nothing at ${path}`;
  try {
    readPair(text, text);
    return null;
  } catch (error) {
    return `${path} holds no pair: ${messageOf(error)}`;
  }
}

/** Keys and tokens are in no log, record, state, message or request, but in the question whose a token is. */
export function secretsAreKept(): Checker {
  const leak = (s: Scene, where: string, text: string): string | undefined =>
    text.includes(SECRET) ? `${s.node.name}: a secret shows in ${where}: ${text.slice(0, 300)}` : undefined;
  const concerns = ({ node: { tuning } }: Scene): boolean =>
    tuning.certificates !== null || tuning.edge !== null || tuning.beside.programs !== null;
  const recorded = (s: Scene): string | undefined =>
    concerns(s)
      ? leak(s, 'the flight recorder', s.node.tail(RECORDER_LINES).recorder.find((line) => line.includes(SECRET)) ?? '')
      : undefined;
  let beats = 0;
  return {
    name: 'secrets-are-kept',
    logged: (s, text) => (concerns(s) ? leak(s, 'the log', text) : undefined),
    supervision: (s, e) => (concerns(s) ? leak(s, `what ${e.kind} says`, traceText(e).what) : undefined),
    request: (s, { path, body }) =>
      concerns(s) && path !== REVIEWS.token && body !== undefined ? leak(s, `a request to ${path}`, JSON.stringify(body)) : undefined,
    answered: (s, { answer, path }) => (answer.kind === 'reply' ? leak(s, `the answer to ${path}`, answer.body) : undefined),
    beat(s, state) {
      beats += 1;
      if (!concerns(s) || beats % 5 !== 0) return undefined;
      return leak(s, 'the state of the tree', JSON.stringify(state)) ?? recorded(s);
    },
  };
}

/** A signer, or a person, is not buried in requests: so many in a minute, and one more for each start of who asks. */
export function requestsAreFew(): Checker {
  const asked = new Map<string, number[]>();
  const starts = new Map<string, number[]>();
  const recent = (s: Scene, of: Map<string, number[]>, key: string, more: boolean): number => {
    const list = (of.get(key) ?? []).filter((atMs) => atMs > s.monoMs - WINDOW_MS);
    if (more) list.push(s.monoMs);
    of.set(key, list);
    return list.length;
  };
  const ACTORS: Readonly<Record<string, string>> = {
    'node/api/clientCertificate': SIGNERS.client.signerName,
    'node/api/servingCertificate': SIGNERS.serving.signerName,
  };
  return {
    name: 'requests-are-few',
    supervision(s, e) {
      const signerName = e.kind === 'child.started' ? ACTORS[e.path] : undefined;
      if (signerName !== undefined) recent(s, starts, `${s.node.name} ${signerName}`, true);
      return undefined;
    },
    request(s, { verb, path, body }) {
      if (verb !== 'POST' || !path.endsWith('/certificatesigningrequests')) return undefined;
      const { signerName = '' } = (body as { spec?: { signerName?: string } }).spec ?? {};
      const key = `${s.node.name} ${signerName}`;
      const count = recent(s, asked, key, true);
      const max = ASKED_MAX + recent(s, starts, key, false);
      return count > max ? `${s.node.name}: ${count} requests to ${signerName} within a minute, ${max} may be` : undefined;
    },
  };
}

/** What certificates lack some time after everything healed. */
export function certificatesUnsettled(node: SimNode, o: { wallMs: number }): string[] {
  return keptPairs(node.tuning.certificates).flatMap((use) => {
    const problem = pairProblem(node, use);
    if (problem !== null) return [problem];
    const text = textAt(node.disk, pairPath(use)) ?? '';
    const overMs = o.wallMs - readPair(text, text).notAfterMs;
    return overMs >= 0 ? [`the pair at ${pairPath(use)} ended ${(overMs / 1_000).toFixed(1)} s ago`] : [];
  });
}
