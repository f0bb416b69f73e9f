/** The terminal that actorctl runs on. What is changed of it is undone whatever ends the process, but for `kill -9`. */
import { constants } from 'node:os';
import type { Terminal } from './io.ts';

/** Signals that end the process as they would without us; the terminal is restored first. */
const ENDS = ['SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

export function processTerminal(): Terminal {
  const { stdin, stdout } = process;
  return {
    input: stdin.isTTY === true,
    size() {
      const of = stdout.isTTY === true ? stdout : process.stderr.isTTY === true ? process.stderr : null;
      return of === null ? null : { columns: of.columns, rows: of.rows };
    },
    raw() {
      let held = true;
      const restore = () => {
        if (!held) return;
        held = false;
        stdin.setRawMode(false);
      };
      const ends = ENDS.map((name) => {
        const end = () => {
          restore();
          process.exit(128 + constants.signals[name]);
        };
        process.on(name, end);
        return () => process.off(name, end);
      });
      // A shell that stopped us (kill -STOP) has taken its terminal back in the meantime.
      const again = () => void (held && stdin.setRawMode(false).setRawMode(true));
      process.on('SIGCONT', again);
      process.on('exit', restore);
      stdin.setRawMode(true);
      return {
        [Symbol.dispose]() {
          restore();
          process.off('exit', restore);
          process.off('SIGCONT', again);
          for (const off of ends) off();
        },
      };
    },
    onResize(fn) {
      process.on('SIGWINCH', fn);
      return { [Symbol.dispose]: () => void process.off('SIGWINCH', fn) };
    },
  };
}
