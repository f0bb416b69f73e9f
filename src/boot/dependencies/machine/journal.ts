/** The real {@link Journal} port: journalctl, as a process of its own. */
import { PassThrough } from 'node:stream';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import type { Journal } from '../../../ports/machine/journal.ts';

/** @param command The program; a test has its own. */
export function createJournal(command = 'journalctl'): Journal {
  return {
    async *read(args, { timeoutMs, signal }) {
      if (signal.aborted) return;
      const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C.UTF-8' };
      const child = startProcess(command, [...args], { stdio: ['ignore', 'pipe', 'pipe'], env });
      const { promise: over, resolve: end } = Promise.withResolvers<Error | null>();
      child.once('error', (error) => end(new Error(`${command} cannot be run: ${error.message}`)));
      child.once('close', () => end(null));
      const output = new PassThrough();
      child.stdout.pipe(output, { end: false });
      child.stderr.pipe(output, { end: false });
      const stop = (): void => {
        child.kill('SIGKILL');
        child.stdout.unpipe(output);
        child.stderr.unpipe(output);
        output.end();
      };
      const late = setTimeout(stop, timeoutMs);
      signal.addEventListener('abort', stop, { once: true });
      void over.then(() => output.end());
      try {
        for await (const chunk of output) yield chunk as Uint8Array;
        const failure = await over;
        if (failure !== null) throw failure;
      } finally {
        clearTimeout(late);
        signal.removeEventListener('abort', stop);
        stop();
        child.stdout.destroy();
        child.stderr.destroy();
      }
    },
  };
}
