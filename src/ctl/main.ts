/** Entry of actorctl: gives the commands the real process. */
import { existsSync } from 'node:fs';
import { runCtl } from './cli.ts';

const interrupted = new AbortController();
process.once('SIGINT', () => interrupted.abort());
// `actorctl events | head` closes the pipe: that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 5));

process.exitCode = await runCtl({
  argv: process.argv.slice(2),
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  stdin: process.stdin,
  outBytes: (bytes) => void process.stdout.write(bytes),
  errBytes: (bytes) => void process.stderr.write(bytes),
  exists: existsSync,
  columns: process.stdout.isTTY ? process.stdout.columns : 0,
  nowMs: () => Date.now(),
  signal: interrupted.signal,
});
