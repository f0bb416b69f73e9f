/**
 * Waits until every quick-start pod is in the state its manifest promises, asking the read-only port, and says for each
 * what was seen. Exit code 1 when the time is over.
 *
 * Usage: quickstart-check.mjs [URL [SECONDS]]   (default http://127.0.0.1:10255 and 15)
 */
import { pathToFileURL } from 'node:url';

const main = (pod) => pod.status?.containerStatuses?.[0];
const ready = (pod) => pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
const steady = (pod) =>
  pod.status?.phase === 'Running' && ready(pod) && main(pod)?.restartCount === 0 && main(pod)?.state?.running !== undefined;

/** Pod name as in the manifest -> has it reached its state? */
export const EXPECTED = {
  steady,
  graceful: steady,
  init: (pod) =>
    steady(pod) &&
    pod.status.initContainerStatuses?.length === 2 &&
    pod.status.initContainerStatuses.every((c) => c.state?.terminated?.exitCode === 0 && c.state.terminated.reason === 'Completed'),
  crasher: (pod) =>
    pod.status?.phase === 'Running' &&
    main(pod)?.restartCount >= 1 &&
    main(pod)?.state?.waiting?.reason === 'CrashLoopBackOff' &&
    main(pod)?.lastState?.terminated?.exitCode === 3,
};

/** One line about a pod for people. */
export function describe(pod) {
  const status = main(pod);
  const state = Object.entries(status?.state ?? {})[0];
  const last = status?.lastState?.terminated;
  const inits = (pod.status?.initContainerStatuses ?? []).map(
    (c) => `${c.name} ${c.state?.terminated?.exitCode ?? Object.keys(c.state ?? {})[0]}`,
  );
  return [
    pod.status?.phase ?? 'no status',
    ready(pod) ? 'ready' : 'not ready',
    `${status?.restartCount ?? '?'} restarts`,
    state ? `${state[0]}${state[1].reason ? ` (${state[1].reason})` : ''}` : 'no container',
    ...(last ? [`last exit ${last.exitCode}`] : []),
    ...(inits.length > 0 ? [`init: ${inits.join(', ')}`] : []),
  ].join(', ');
}

/** Resolves with what was seen of each pod and how long each took. Never rejects for a daemon that does not answer yet. */
export async function waitForQuickstart(url, { timeoutMs, everyMs = 100 }) {
  const started = performance.now();
  const reachedMs = {};
  let seen = {};
  let problem = 'nothing was asked';
  do {
    try {
      const answer = await fetch(`${url}/pods`, { signal: AbortSignal.timeout(2000) });
      if (!answer.ok) throw new Error(`GET ${url}/pods: ${answer.status}`);
      const { items } = await answer.json();
      seen = {};
      problem = '';
      for (const [name, reached] of Object.entries(EXPECTED)) {
        // A static pod's name carries the node's behind a dash.
        const pod = items?.find((item) => item.metadata.labels?.app === name);
        if (!pod) continue;
        seen[name] = describe(pod);
        if (reached(pod)) reachedMs[name] ??= Math.round(performance.now() - started);
      }
    } catch (error) {
      problem = String(error.cause?.message ?? error.message);
    }
    if (Object.keys(reachedMs).length === Object.keys(EXPECTED).length) break;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  } while (performance.now() - started < timeoutMs);
  return { ok: Object.keys(reachedMs).length === Object.keys(EXPECTED).length, reachedMs, seen, problem };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [url = 'http://127.0.0.1:10255', seconds = '15'] = process.argv.slice(2);
  const { ok, reachedMs, seen, problem } = await waitForQuickstart(url, { timeoutMs: Number(seconds) * 1000 });
  if (problem) console.log(`last answer: ${problem}`);
  for (const name of Object.keys(EXPECTED)) {
    const verdict = reachedMs[name] === undefined ? 'NOT REACHED' : `as expected after ${reachedMs[name]} ms`;
    console.log(`${name}: ${verdict}; last seen: ${seen[name] ?? 'no such pod'}`);
  }
  process.exitCode = ok ? 0 : 1;
}
