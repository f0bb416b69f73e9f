/** The host's own figures. They are read only while this is open. */
import type { ReactNode } from 'react';
import type { HostFigures, HostFrame } from '../../feed/frames.ts';
import { Section } from '../bits.tsx';
import type { PageState } from '../store.ts';
import { bytes } from '../words.ts';

export function Host({ state }: { state: PageState }) {
  const { host, hostPast } = state;
  if (state.hello?.recording !== undefined) return <p className="quiet pad">A recording has no figures of the host.</p>;
  if (host === null) return <p className="quiet pad">A process of its own begins to read the figures…</p>;
  if (host.figures === null) return <p className="error pad">There are no figures: {host.error}</p>;
  const f = host.figures;
  const used = f.memory.totalBytes - f.memory.availableBytes;
  return (
    <section className="wide columns" aria-label="Host">
      <Section title="Processor" note={`load ${f.cpu.load1.toFixed(2)}`}>
        <Meter value={f.cpu.percent} max={100} text={`${f.cpu.percent.toFixed(0)} %`} />
        <Spark past={hostPast} of={(x) => x.cpu.percent} max={100} />
        {f.cpu.cores.map((c, i) => (
          <Meter key={i} value={c} max={100} text={`core ${i}: ${c.toFixed(0)} %`} />
        ))}
      </Section>
      <Section title="Memory">
        <Meter value={used} max={f.memory.totalBytes} text={`${bytes(used)} of ${bytes(f.memory.totalBytes)}`} />
        <Spark past={hostPast} of={(x) => x.memory.totalBytes - x.memory.availableBytes} max={f.memory.totalBytes} />
        {f.memory.swapUsedBytes > 0 && <p className="quiet">swap: {bytes(f.memory.swapUsedBytes)}</p>}
      </Section>
      <Section title="actorlet itself">
        {f.daemon === null ? (
          <p className="quiet">Its process was not found.</p>
        ) : (
          <p>
            {bytes(f.daemon.rssBytes)} resident, {f.daemon.cpuPercent.toFixed(1)} % of the processor
          </p>
        )}
      </Section>
      <Section title="Disks">
        {f.disks.map((d) => (
          <Meter key={d.mount} value={d.usedBytes} max={d.sizeBytes} text={`${d.mount}: ${bytes(d.usedBytes)} of ${bytes(d.sizeBytes)}`} />
        ))}
        {f.io !== null && (
          <p className="quiet">
            reads {bytes(f.io.readBytesPerS)}/s, writes {bytes(f.io.writeBytesPerS)}/s
          </p>
        )}
      </Section>
      <Section title="Network">
        <ul className="plain">
          {f.network.map((n) => (
            <li key={n.name}>
              <code>{n.name}</code> in {bytes(n.rxBytesPerS)}/s, out {bytes(n.txBytesPerS)}/s
            </li>
          ))}
        </ul>
      </Section>
    </section>
  );
}

function Meter({ value, max, text }: { value: number; max: number; text: string }): ReactNode {
  return (
    <label className="meter">
      <span>{text}</span>
      <meter min={0} max={max} high={max * 0.85} value={value} />
    </label>
  );
}

function Spark({ past, of, max }: { past: readonly HostFrame[]; of(f: HostFigures): number; max: number }) {
  const values = past.flatMap((f) => (f.figures === null ? [] : [of(f.figures)]));
  if (values.length < 2) return null;
  const points = values.map((v, i) => `${(i / (values.length - 1)) * 100},${30 - (v / max) * 28}`).join(' ');
  return (
    <svg className="spark" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label="the last two minutes">
      <polyline points={points} />
    </svg>
  );
}
