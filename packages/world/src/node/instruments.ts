/** Log lines and metrics of a simulated daemon: in memory. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Logger, Metrics } from '@actorlet/kubelet/ports/ports.ts';

export function simLogger(write: (level: string, text: string) => void, bindings: object = {}): Logger {
  const at = (level: string) => (fields: object, msg: string) => {
    if (level === 'debug') return;
    const all: Record<string, unknown> = { ...bindings, ...fields };
    const parts = Object.entries(all).map(([k, v]) => `${k}=${messageOf(v)}`);
    write(level, `${msg} ${parts.join(' ')}`);
  };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (more) => simLogger(write, { ...bindings, ...more }),
  };
}

/** Metrics in memory; only collected values are kept, nobody scrapes. */
export function countingMetrics(): Metrics {
  const values = new Map<string, number>();
  const collect = new Map<string, () => void>();
  let unnamed = 0;
  const series = (name: string, labels: Readonly<Record<string, string>> = {}): string => `${name}{${labelled(labels)}}`;
  const add = (key: string, by: number): void => void values.set(key, (values.get(key) ?? 0) + by);
  return {
    counter: (name) => ({
      inc: (labels, by = 1) => add(series(name, labels), by),
      remove: (labels) => void values.delete(series(name, labels)),
    }),
    gauge: (name) => ({
      set: (value, labels) => void values.set(series(name, labels), value),
      remove: (labels) => void values.delete(series(name, labels)),
    }),
    histogram: (name) => ({
      observe: (_, labels) => add(series(name, labels), 1),
      remove: (labels) => void values.delete(series(name, labels)),
    }),
    onCollect(fn, key) {
      collect.set(key ?? `#${unnamed++}`, fn);
    },
    async render() {
      for (const fn of collect.values()) fn();
      return [...values].map(([k, v]) => `${k} ${v}`).join('\n');
    },
  };
}

/** In the order of their names, in which most callers write them. */
function labelled(labels: Readonly<Record<string, string>>): string {
  let [text, last] = ['', ''];
  for (const name in labels) {
    if (name < last) return labelled(Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))));
    last = name;
    text = text === '' ? `${name}="${labels[name]}"` : `${text},${name}="${labels[name]}"`;
  }
  return text;
}
