/** Log lines: the kubelet's text form, pino's JSON, and no secret in either. */
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/boot/logging.ts';

function lines(format: 'text' | 'json', verbosity: number) {
  const out: string[] = [];
  return { out, log: createLogger({ format, verbosity, pid: 1234 }, { write: (line) => out.push(line) }) };
}

describe('the log', () => {
  it('writes klog lines with the actor as place', () => {
    const { out, log } = lines('text', 0);
    log.child({ actor: 'node/pods/workers/web', uid: 'u1' }).warn({ reason: 'back off', n: 3 }, 'container waits');
    expect(out).toEqual([
      expect.stringMatching(
        /^W\d{4} \d\d:\d\d:\d\d\.\d{6} {4}1234 node\/pods\/workers\/web\] container waits uid=u1 reason="back off" n=3\n$/,
      ),
    ]);
  });

  it.each(['text', 'json'] as const)('writes control characters of foreign text out, so that nothing forges a line (%s)', (format) => {
    const { out, log } = lines(format, 0);
    const forged = 'no\nE1123 00:00:00.000000 1 node] all is lost\r\u001b[2J\u009b31m\u2028\u202e';
    log.child({ actor: `node/${forged}` }).warn({ output: forged, err: new Error(forged) }, `probe failed: ${forged}`);
    log.warn({ bare: '\u001b[2J' }, 'x');
    expect(out).toHaveLength(2);
    for (const line of out) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      expect(line).toMatch(/^[^\u0000-\u001f\u007f-\u009f\u2028\u202e]+\n$/);
    }
    if (format === 'json') expect(JSON.parse(out[0] ?? '')).toMatchObject({ output: forged, msg: `probe failed: ${forged}` });
  });

  it.each(['text', 'json'] as const)('cuts what others sent without end (%s)', (format) => {
    const { out, log } = lines(format, 0);
    const long = 'x'.repeat(100_000);
    log.warn({ long, err: new Error(long), labels: { a: long, b: [long] }, n: 1 }, `said ${long}`);
    expect(out[0]?.length).toBeLessThan(25_000);
    expect(out[0]).toContain('(100000 characters)');
    expect(out[0]).toContain('(100005 characters)');
    if (format === 'json') expect(JSON.parse(out[0] ?? '')).toMatchObject({ n: 1, level: 'warn' });
  });

  it('writes JSON with level, time and message', () => {
    const { out, log } = lines('json', 0);
    log.error({ err: new Error('broken') }, 'failed');
    expect(JSON.parse(out[0] ?? '')).toEqual({ level: 'error', ts: expect.any(Number), err: 'broken', msg: 'failed' });
  });

  it('writes debug lines from verbosity 4 on', () => {
    const quiet = lines('text', 3);
    quiet.log.debug({}, 'x');
    const loud = lines('text', 4);
    loud.log.debug({}, 'x');
    expect([quiet.out.length, loud.out.length]).toEqual([0, 1]);
  });

  it('takes another verbosity while it is used, in every logger that came of it', () => {
    const { out, log } = lines('text', 2);
    const child = log.child({ actor: 'node' }).child({ uid: 'u1' });
    child.debug({}, 'unheard');
    child.setVerbosity?.(5);
    log.debug({}, 'one');
    child.debug({}, 'two');
    log.setVerbosity?.(0);
    child.debug({}, 'unheard');
    expect(out).toEqual([expect.stringContaining('boot] one'), expect.stringContaining('node] two uid=u1')]);
  });

  it.each(['text', 'json'] as const)('never writes a secret as %s', (format) => {
    const { out, log } = lines(format, 0);
    const fields = {
      env: ['A=hush'],
      container: { envs: [{ key: 'A', value: 'hush' }] },
      containers: [{ env: [{ name: 'A', value: 'hush' }] }],
      request: { image: { auth: { password: 'hush' } }, headers: null },
      token: 'hush',
      staticPodURLHeader: { A: ['hush'] },
      err: new Error('broken'),
    };
    const before = structuredClone(fields);
    log.info(fields, 'pull');
    log.child({ actor: 'node', authorization: 'hush' }).warn(fields, 'pull');
    expect(out.join('')).not.toContain('hush');
    expect(out.map((line) => line.split('<masked>').length - 1)).toEqual([7, 8]);
    expect(out.every((line) => line.includes('broken'))).toBe(true);
    expect(fields, 'what is logged stays as it is').toEqual(before);
    log.warn(
      { err: new Error('GET https://me:hush@h/x?token=hush: 500'), url: 'http://h/x;m=hush#hush' },
      'Readiness probe failed: Get "http://10.0.0.1:80/x?k=hush": EOF; see http://h/y;m=hush and http://h/z#hush.',
    );
    expect(out.at(-1)).toMatch(/10\.0\.0\.1:80\/x\?<masked>.*: EOF; see http:\/\/h\/y;<masked> and http:\/\/h\/z#<masked>/);
    expect(out.at(-1)).not.toContain('hush');
  });
});
