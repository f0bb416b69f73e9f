/** Commands in hollow containers, over the socket that a runtime's streaming server would have. */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { COMMAND_HEADERS, RemoteCommand } from '@actorlet/process/src/remoteCommand.ts';
import type { ScriptedContainer } from '@actorlet/runtimes/src/hollow/index.ts';
import { afterAll, describe, expect, it } from 'vitest';
import { createStreams } from '../src/boot/streams.ts';

const streams = await createStreams();
afterAll(() => streams.close());

const container = (script: object): ScriptedContainer => ({
  ...{ pod: { name: 'web', uid: 'u', namespace: 'default', attempt: 0 }, name: 'main', attempt: 0, image: 'i', labels: {} },
  config: {} as ScriptedContainer['config'],
  annotations: { 'actorlet.dev/exec': JSON.stringify(script) },
});

async function run(script: object, cmd: string[], asked: { tty?: boolean; stdin?: boolean } = {}) {
  const ask = { tty: false, stdin: false, stdout: true, stderr: true, ...asked };
  const [, socketPath = '', path = ''] = /^http\+unix:\/\/([^/]+)(\/.*)$/.exec(streams.offer(container(script), { ...ask, cmd })) ?? [];
  const socket = await new Promise<Duplex>((resolve, reject) => {
    const req = request({ socketPath: decodeURIComponent(socketPath), path, method: 'POST', headers: COMMAND_HEADERS });
    req.once('upgrade', (_, upgraded) => resolve(upgraded));
    req.once('response', (res) => reject(new Error(`answered with ${res.statusCode}`)));
    req.once('error', reject);
    req.end();
  });
  const said = { stdout: '', stderr: '' };
  const status = await new Promise<string>((resolve, reject) => {
    new RemoteCommand(socket, ask, {
      output(name, part) {
        said[name] += part.toString('utf8');
        return undefined;
      },
      ended: resolve,
      broken: (why) => reject(new Error(why)),
    });
  });
  return { ...said, status: JSON.parse(status) as unknown };
}

describe('a command in a hollow container', () => {
  it('says what its pod scripts, and how it ended', async () => {
    expect(await run({ date: 'now\n' }, ['date'])).toEqual({ stdout: 'now\n', stderr: '', status: { metadata: {}, status: 'Success' } });
    expect(await run({ a: { stderr: 'no', exit: 3 } }, ['a'], { stdin: true })).toMatchObject({
      stderr: 'no',
      status: { reason: 'NonZeroExitCode', details: { causes: [{ reason: 'ExitCode', message: '3' }] } },
    });
  });

  it('has one output on a terminal, and long output comes whole', async () => {
    expect((await run({ a: { stdout: 'x\n', stderr: 'y\n' } }, ['a'], { tty: true, stdin: true })).stdout).toBe('x\r\ny\r\n');
    expect((await run({ a: 'z'.repeat(300_000) }, ['a'])).stdout).toHaveLength(300_000);
  });
});
