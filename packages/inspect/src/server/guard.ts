/** Which requests the inspection server answers: those of this machine that no foreign web page has made. Pure. */
import type { IncomingHttpHeaders } from 'node:http';

/** Names under which a loopback address is reached; any other name was made to point here (DNS rebinding). */
const LOOPBACK = /^(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d{1,5})?$/;

/** Why a request is refused; null when it is not. */
export function refusalOf(headers: IncomingHttpHeaders, o: { websocket: boolean }): string | null {
  const host = headers.host ?? '';
  if (!LOOPBACK.test(host)) return 'this page is reached through 127.0.0.1 or localhost only';
  const { origin } = headers;
  // Programs send none; a browser always says it for a WebSocket and for a POST.
  if (origin !== undefined && origin !== `http://${host}`) return 'a page of another origin may not ask this one';
  const site = headers['sec-fetch-site'];
  if (!o.websocket && typeof site === 'string' && site === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate') {
    return 'a page of another origin may not ask this one';
  }
  return null;
}

/** Sent with every answer. Everything comes from this origin; no script or style stands in the document. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};
