/** The kubelet that is observed: what it has not done yet, where it does something else than this tree would, and how often it agreed. */
import type { DisagreementShown, Listed } from '../../feed/frames.ts';
import { AboutPod, Section } from '../bits.tsx';
import { nowMs, type PageState } from '../store.ts';
import { duration } from '../words.ts';

export function Kubelet({ state }: { state: PageState }) {
  const k = state.kubelet;
  const now = nowMs(state);
  if (k === null) {
    const isOne = state.problems !== null && state.problems.kubelet === undefined;
    return <p className="quiet pad">{isOne ? 'This program is the kubelet of its node. It observes no other.' : 'Asking…'}</p>;
  }
  return (
    <section className="wide columns" aria-label="Kubelet">
      <Section title="Disagreements" note={`observed for ${duration(now - k.sinceMs)}`}>
        <Disagreements of={k.standing} empty="None stands: the kubelet does what this tree would." />
      </Section>
      <Section title="Expected" note="what the kubelet is to do next">
        {k.expected.listed.length === 0 && <p className="quiet">Nothing.</p>}
        <ul className="plain">
          {k.expected.listed.map((act) => (
            <li key={`${act.uid} ${act.pod} ${act.what}`}>
              <AboutPod of={act} />{' '}
              <span className="quiet">
                not {act.what} for {duration(now - act.sinceMs)}
              </span>
            </li>
          ))}
        </ul>
        <More than={k.expected} />
      </Section>
      <Section title="Judged acts">
        {k.counts.length === 0 ? (
          <p className="quiet">None yet.</p>
        ) : (
          <table>
            <thead>
              <tr>
                <th>act</th>
                <th>agreed</th>
                <th>known</th>
                <th>disagreed</th>
              </tr>
            </thead>
            <tbody>
              {k.counts.map((c) => (
                <tr key={c.kind}>
                  <td>{c.kind}</td>
                  <td>{c.agreed}</td>
                  <td>{c.known}</td>
                  <td className={c.disagreed > 0 ? 'tone-warn' : ''}>{c.disagreed}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Section>
      <Section title="Known differences" note="on the list of what differs from the kubelet">
        <Disagreements of={k.known} empty="None stands." />
      </Section>
      <Section title="Settled" note="over by now">
        <Disagreements of={k.settled} empty="None." />
      </Section>
    </section>
  );
}

function Disagreements({ of, empty }: { of: Listed<DisagreementShown>; empty: string }) {
  if (of.listed.length === 0) return <p className="quiet">{empty}</p>;
  return (
    <>
      <ul className="plain problems">
        {of.listed.map((d) => (
          <li key={d.id}>
            <i className={`dot ${d.settledMs === null ? 'warn' : 'off'}`} /> <AboutPod of={d} /> {d.text}
            <div className="quiet">
              {d.kind}: {d.why}
            </div>
          </li>
        ))}
      </ul>
      <More than={of} />
    </>
  );
}

function More({ than: { more } }: { than: Listed<unknown> }) {
  return more === 0 ? null : <p className="quiet">and {more} more</p>;
}
