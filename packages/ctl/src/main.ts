/** Entry of actorctl: gives the commands the real process. */
import { existsSync } from 'node:fs';
import { onTerminal } from '@actorlet/kubelet/machines/text/oneLine.ts';
import { runCtl } from './cli.ts';
import { processTerminal } from './terminal.ts';

const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort());
// `actorctl events | head` closes the pipe: that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 5));

/** A promise where the reader of an output is slower than its writer. */
function written(to: NodeJS.WriteStream, bytes: Uint8Array): Promise<void> | undefined {
  if (to.write(bytes)) return undefined;
  return new Promise((resolve) => void to.once('drain', resolve));
}

process.exitCode = await runCtl({
  argv: process.argv.slice(2),
  env: process.env,
  out: (text) => void process.stdout.write(process.stdout.isTTY ? onTerminal(text) : text),
  err: (text) => void process.stderr.write(onTerminal(text)),
  stdin: process.stdin,
  outBytes: (bytes) => written(process.stdout, bytes),
  errBytes: (bytes) => written(process.stderr, bytes),
  terminal: processTerminal(),
  exists: existsSync,
  columns: process.stdout.isTTY ? process.stdout.columns : 0,
  nowMs: () => Date.now(),
  signal: interrupted.signal,
});
