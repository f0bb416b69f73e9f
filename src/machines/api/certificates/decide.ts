/** What the statechart of a certificate knows, how long it waits, and what it decides. Pure. */

import type { CertificateTemplate } from './messages.ts';
import type { Verdict } from './signing.ts';
import { type CertificateFacts, type CertificateUse, lacks } from './template.ts';

/** After a failure: the first, doubling up to the last, lengthened by up to a tenth. */
export const RETRY_MS = 2_000;
export const RETRY_MAX_MS = 32_000;
/** After somebody said no: who refuses seldom changes their mind within seconds, and each request is work for them. */
export const REFUSED_RETRY_MS = 60_000;
export const REFUSED_RETRY_MAX_MS = 1_800_000;
/** Between looks at a request whose watch ended or could not be opened. */
export const LOOK_AGAIN_MS = 2_000;
/** A request is looked at this often although its watch is open: a stream can be dead without an end, and bookmarks come every minute only. */
export const WATCH_TRUST_MS = 90_000;
/**
 * What is on disk, and the wall clock, are looked at this often: somebody else may have put a certificate there, and a clock
 * that was set right may show that this one has ended. Until then the API server refuses all that this node says.
 */
export const RELOAD_MS = 60_000;
/**
 * A certificate that was just signed is kept at least this long, or for half of what it has left: a signer that dates back
 * can give one whose time to be renewed is over already.
 */
export const KEEP_MIN_MS = 60_000;

export type SubmitOutcome = { ok: true; name: string; uid: string } | { ok: false; problem: string };
export type LookOutcome = { ok: true; verdict: Verdict; resourceVersion: string } | { ok: false; problem: string };

export interface CertificateInput {
  use: CertificateUse;
  /** False: the credentials of the kubeconfig are used as they are, and left alone. */
  managed: boolean;
  /** Renew before the end. False: only what is missing or has ended is asked for. */
  rotate: boolean;
  /** The present one only came along with the kubeconfig: replace it soon. */
  renewNow: boolean;
  template: CertificateTemplate | null;
  /** How long a request may wait; of the first one, and of a renewal. */
  firstWaitMs: number;
  waitMs: number;
}
export interface CertificateContext extends CertificateInput {
  /** What is on disk and fit to be used, though perhaps ended. */
  facts: CertificateFacts | null;
  deadlineMs: number;
  /** What was last asked for. */
  requested: CertificateTemplate | null;
  request: { name: string; uid: string } | null;
  resourceVersion: string;
  failures: number;
  refused: boolean;
  problem: string;
}

export const ended = (c: Pick<CertificateContext, 'facts'>, wallMs: number): boolean => c.facts === null || c.facts.notAfterMs <= wallMs;
export const words = (c: CertificateContext): string => (c.use === 'client' ? 'client certificate' : 'serving certificate');
export const when = (ms: number): string => new Date(ms).toISOString();
export const present = (c: CertificateContext, wallMs: number): string => {
  if (c.facts === null) return `there is no ${words(c)}`;
  return `the ${words(c)} ${ended(c, wallMs) ? 'ended' : 'holds until'} ${when(c.facts.notAfterMs)}`;
};
export const waitOf = (c: CertificateContext, wallMs: number): number => (ended(c, wallMs) ? c.firstWaitMs : c.waitMs);

/** A certificate is asked for now: nothing fit to be used, told to, it says too little, or it is time. */
export function isDue(c: Pick<CertificateContext, 'facts' | 'rotate' | 'renewNow' | 'template' | 'deadlineMs'>, wallMs: number): boolean {
  if (c.template === null) return false;
  if (c.facts === null || ended(c, wallMs)) return true;
  if (!c.rotate) return false;
  return c.renewNow || lacks(c.facts, c.template).length > 0 || c.deadlineMs <= wallMs;
}

/** What is wrong with a certificate that was just signed; '' = nothing. */
export function faultOf(facts: CertificateFacts, template: CertificateTemplate | null, wallMs: number): string {
  if (facts.notAfterMs <= wallMs)
    return `the certificate that was signed ended ${when(facts.notAfterMs)} already: the clock of this node may be wrong, or the signer gives too short a life`;
  const missing = template === null ? [] : lacks(facts, template);
  return missing.length === 0 ? '' : `the signer left out: ${missing.join(', ')}`;
}

export function refusal(verdict: Verdict | null): { problem: string; refused: boolean } {
  if (verdict?.kind === 'refused') return { problem: verdict.why, refused: true };
  return { problem: verdict?.kind === 'gone' ? verdict.why : '', refused: false };
}

/** The event that led to storing is the end of a look or of a watch. */
export function issuedPem(event: unknown): string {
  const { output } = event as { output?: LookOutcome | Verdict | null };
  const verdict = output && 'verdict' in output ? output.verdict : output;
  return verdict && 'kind' in verdict && verdict.kind === 'issued' ? verdict.pem : '';
}
