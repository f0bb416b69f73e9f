/** `--watch`: a command's answer again and again, on a terminal in the same place and no higher than it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { Asked, Command } from '../../asked.ts';
import type { CtlIo } from '../../io.ts';

const EVERY_MS = 1_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';
const CTRL_C = '\u0003';
/** Below the picture: how to end, and the line that the cursor stands in. */
const OWN_ROWS = 2;

/** Until Ctrl-C, or q on a terminal. The code is that of the last look; a daemon that goes away meanwhile is waited for. */
export function watching(command: Command): Command {
  return async (asked) => {
    const { io } = asked;
    const end = new AbortController();
    const signal = AbortSignal.any([io.signal, end.signal]);
    using _keys = keysOf(io, () => end.abort());
    let code: number = await look(command, asked);
    while (!signal.aborted) {
      await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      code = await look(command, asked).catch((error: unknown) => away(io, error));
    }
    return code;
  };
}

async function look(command: Command, asked: Asked): Promise<number> {
  const { io } = asked;
  if (io.columns === 0) return command(asked);
  const said: string[] = [];
  const out = (text: string): void => void said.push(text);
  const code = await command({ ...asked, io: { ...io, out, err: out } });
  draw(io, said.join(''));
  return code;
}

/** As many of its first lines as the terminal has rows for. */
function draw(io: CtlIo, picture: string): void {
  const rows = io.terminal?.size()?.rows ?? 0;
  const lines = picture.trimEnd().split('\n');
  const room = rows > OWN_ROWS ? rows - OWN_ROWS : lines.length;
  const more = lines.length - room;
  const foot = [more > 0 ? `… ${more} more lines` : '', io.terminal?.input === true ? 'q ends' : ''].filter((t) => t !== '').join('; ');
  io.out(`${CLEAR_SCREEN}${lines.slice(0, room).join('\n')}\n${foot === '' ? '' : `${foot}\n`}`);
}

/** What is watched on a terminal may restart. */
function away(io: CtlIo, error: unknown): number {
  if (io.columns === 0 || !(error instanceof CtlError) || error.exitCode === EXIT.interrupted) throw error;
  draw(io, `${error.message}\nAsked again each second.`);
  return error.exitCode;
}

/** Nothing where no keys come. */
function keysOf(io: CtlIo, end: () => void): Disposable {
  if (io.terminal?.input !== true || io.columns === 0) return { [Symbol.dispose]: () => undefined };
  const raw = io.terminal.raw();
  const onKey = (bytes: Buffer | string): void => {
    const keys = bytes.toString();
    if (keys.includes('q') || keys.includes(CTRL_C)) end();
  };
  io.stdin.on('data', onKey);
  return {
    [Symbol.dispose]() {
      io.stdin.off('data', onKey);
      io.stdin.pause();
      raw[Symbol.dispose]();
    },
  };
}
