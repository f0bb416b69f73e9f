/** What an observer judged, as families of `/metrics`. */
import type { Metrics } from '@actorlet/kubelet/ports/ports.ts';
import type { Expectations } from './expectations.ts';

export function countActs(expectations: Expectations, metrics: Metrics): void {
  const acts = metrics.gauge('actorlet_observer_acts', 'Acts of the kubelet that were judged, since the start.', ['kind', 'verdict']);
  const standing = metrics.gauge('actorlet_observer_disagreements', 'Disagreements with the kubelet that stand now.', ['known']);
  const open = metrics.gauge('actorlet_observer_expected_acts', 'Acts that are expected of the kubelet now.');
  metrics.onCollect(() => {
    const { counts, disagreements, expected } = expectations.ledger();
    for (const { kind, agreed, disagreed, known } of counts) {
      acts.set(agreed, { kind, verdict: 'agreed' });
      acts.set(disagreed, { kind, verdict: 'disagreed' });
      acts.set(known, { kind, verdict: 'known' });
    }
    const stand = disagreements.filter((d) => d.settledMs === null);
    standing.set(stand.filter((d) => d.known !== null).length, { known: 'true' });
    standing.set(stand.filter((d) => d.known === null).length, { known: 'false' });
    open.set(expected.length);
  }, 'observer');
}
