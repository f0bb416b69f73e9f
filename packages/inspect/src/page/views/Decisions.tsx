/** What the node decided, and from what. */
import { EntryRow, Section } from '../bits.tsx';
import { hrefOf } from '../route.ts';
import { nowMs, type PageState } from '../store.ts';
import { bytes, duration, imageUse, shortId } from '../words.ts';

export function Decisions({ state }: { state: PageState }) {
  const d = state.decisions;
  const now = nowMs(state);
  if (d === null) return <p className="quiet pad">Asking…</p>;
  return (
    <section className="wide columns" aria-label="Decisions">
      <Section title="Admission" note="pods that this node does not run">
        <Judged rows={d.refused} empty="No pod was refused." />
      </Section>
      <Section title="Eviction">
        {d.pressures.length === 0 ? (
          <p className="quiet">No threshold is set, or nothing was measured yet.</p>
        ) : (
          <ul className="plain">
            {d.pressures.map((p) => (
              <li key={p.name}>
                <i className={`dot ${p.present ? 'bad' : 'ok'}`} />
                {p.name} <span className="quiet">{p.present ? 'present' : 'none'}</span>
              </li>
            ))}
          </ul>
        )}
        {d.thresholds.map((t) => (
          <p key={t.key}>
            <code>{t.key}</code> met for {duration(now - t.sinceMs)} {t.met ? '(over its grace)' : '(within its grace)'}
          </p>
        ))}
        <Judged rows={d.evicted} empty="No pod was evicted." />
      </Section>
      <Section title="CPUs">
        {d.cpus === null ? (
          <p className="quiet">CPUs are not allocated one by one (policy none).</p>
        ) : (
          <>
            <p>
              Shared: <code>{d.cpus.shared || 'none'}</code>
            </p>
            <ul className="plain">
              {d.cpus.alone.map((a) => (
                <li key={`${a.pod} ${a.container}`}>
                  <code>{a.cpus}</code> {a.pod} <span className="quiet">{a.container}</span>
                </li>
              ))}
            </ul>
          </>
        )}
      </Section>
      {d.numa === undefined ? null : (
        <Section title="NUMA nodes" note="what each provider could give, and what was chosen">
          <ul className="plain">
            {d.numa.map((n) => (
              <li key={`${n.pod} ${n.container}`}>
                <code>{n.chosen}</code> {n.outcome} {n.pod} <span className="quiet">{n.container}</span>
                {n.hints.map((hint) => (
                  <div key={hint} className="quiet">
                    {hint}
                  </div>
                ))}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {d.claims === undefined || d.claims.length === 0 ? null : (
        <Section title="Resource claims" note="what drivers prepared, and who is asked just now">
          <ul className="plain">
            {d.claims.map((c) => (
              <li key={c.claim}>
                <code>{c.claim}</code> {c.words} <span className="quiet">{c.pods.join(', ')}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Devices">
        {d.devices.length === 0 ? (
          <p className="quiet">No device plugin has registered.</p>
        ) : (
          <ul className="plain">
            {d.devices.map((v) => (
              <li key={v.resource}>
                <code>{v.resource}</code> {v.allocatable} of {v.capacity} usable
              </li>
            ))}
          </ul>
        )}
      </Section>
      <Section title="Images" note="the collector takes the first first, and none that is used">
        {d.images.length === 0 ? (
          <p className="quiet">The collector has not looked yet.</p>
        ) : (
          <ol className="plain">
            {d.images.map((i) => (
              <li key={i.id}>
                <code title={i.id}>{i.names[0] ?? shortId(i.id)}</code> {bytes(i.sizeBytes)} <span className="quiet">{imageUse(i)}</span>
              </li>
            ))}
          </ol>
        )}
      </Section>
      <Section title="Recorded" note="admission and reclaim">
        <ol className="plain entries">
          {d.notes.toReversed().map((e) => (
            <EntryRow key={e.n} e={e} withPath />
          ))}
        </ol>
      </Section>
    </section>
  );
}

function Judged({ rows, empty }: { rows: readonly { uid: string; name: string; reason: string; message: string }[]; empty: string }) {
  if (rows.length === 0) return <p className="quiet">{empty}</p>;
  return (
    <ul className="plain">
      {rows.map((r) => (
        <li key={r.uid}>
          <a href={hrefOf('pods', r.uid)}>{r.name}</a> <strong>{r.reason}</strong> <span className="quiet">{r.message}</span>
        </li>
      ))}
    </ul>
  );
}
