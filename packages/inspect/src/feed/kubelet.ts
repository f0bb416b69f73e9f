/** What a kubelet that is observed has not done, and where it does something else, for the page. Pure. */

import type { Disagreement } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { disagreementText, observerView, standing } from '@actorlet/shown/src/observer/ledger.ts';
import type { AboutKubelet, DisagreementShown, KubeletFrame, Listed } from './frames.ts';

const LISTED_MAX = 100;
const TEXT_CHARS_MAX = 600;

/** Null: this node observes no other. */
export function kubeletFrame(m: Moment): KubeletFrame | null {
  const ledger = m.read(observerView);
  if (ledger === undefined) return null;
  const { sinceMs, disagreements, expected, counts } = ledger;
  const shown = (pick: (d: Disagreement) => boolean): Listed<DisagreementShown> => {
    const picked = disagreements.filter(pick).reverse();
    return { listed: picked.slice(0, LISTED_MAX).map((d) => disagreementShown(d, m)), more: Math.max(0, picked.length - LISTED_MAX) };
  };
  return {
    ...{ t: 'kubelet', sinceMs, counts },
    standing: shown((d) => d.settledMs === null && d.known === null),
    known: shown((d) => d.settledMs === null && d.known !== null),
    settled: shown((d) => d.settledMs !== null),
    expected: {
      listed: expected
        .toSorted((a, b) => a.sinceMs - b.sinceMs)
        .slice(0, LISTED_MAX)
        .map(({ pod, uid, what, sinceMs }) => ({ pod, uid: known(m, uid), what: what.slice(0, TEXT_CHARS_MAX), sinceMs })),
      more: Math.max(0, expected.length - LISTED_MAX),
    },
  };
}

/** Null: this node observes no other. */
export function kubeletProblems(m: Moment): AboutKubelet[] | null {
  const ledger = m.read(observerView);
  return ledger === undefined
    ? null
    : standing(ledger)
        .reverse()
        .map((d) => about(d, m));
}

function disagreementShown(d: Disagreement, m: Moment): DisagreementShown {
  const { id, kind, sinceMs, settledMs } = d;
  return { ...about(d, m), ...{ id, kind, sinceMs, settledMs }, why: d.known ?? d.rule };
}
function about(d: Disagreement, m: Moment): AboutKubelet {
  return { uid: known(m, d.uid), pod: d.pod, text: disagreementText(d, m.nowMs).slice(0, TEXT_CHARS_MAX) };
}

/** '' where the pod is gone. */
function known(m: Moment, uid: string): string {
  return m.read(podsView)?.records.has(uid) === true ? uid : '';
}
