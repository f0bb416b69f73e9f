/** Which states of a chart are meant by a state in text, such as `up(net.ok,disk.ok)`. Pure. */
import type { Chart, ChartState } from './definition.ts';

/** A longer text is no state of ours. */
const CHARS_MAX = 2000;

/** Ids of the active states, outermost first; those that the chart does not have are left out. */
export function activeStates(chart: Chart, text: string): string[] {
  const active = [chart.root.id];
  if (text.length > CHARS_MAX) return active;
  let at = 0;
  const names = /[^.,()]+/y;
  /** Reads one region below `state`: `a`, `a.b`, `a(b,c)` or `(b,c)`. */
  const region = (state: ChartState | undefined): void => {
    let here = state;
    for (;;) {
      if (text[at] === '(') {
        do {
          at += 1;
          region(here);
        } while (text[at] === ',');
        if (text[at] === ')') at += 1;
        return;
      }
      names.lastIndex = at;
      const name = names.exec(text)?.[0];
      if (name === undefined) return;
      at += name.length;
      here = here?.states.find((s) => s.key === name);
      if (here !== undefined) active.push(here.id);
      if (text[at] === '.') at += 1;
      else if (text[at] !== '(') return;
    }
  };
  region(chart.root);
  return active;
}
