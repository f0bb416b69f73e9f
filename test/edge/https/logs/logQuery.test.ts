/** Queries of the host's logs: only where they are switched on, by arguments alone, from the journal or from files, and never out of the folder. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Journal } from '../../../../src/ports/machine/journal.ts';
import { start } from '../node.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
/** A journal with the unit `kubelet`; null cannot be run. */
function journal(o: { broken?: 'always' | 'units known' } = {}) {
  const ran: (readonly string[])[] = [];
  const port: Journal = {
    async *read(args) {
      ran.push(args);
      const units = args[0] === '--field';
      if (o.broken === 'always' || (o.broken === 'units known' && !units)) throw new Error('journalctl cannot be run');
      yield bytes(units ? 'kubelet.service\nsystemd-journald.service\n' : 'Jan 02 a line\n');
      if (!units) yield bytes('Jan 02 another\n');
    },
  };
  return { ran, port };
}
async function node(o: Parameters<typeof journal>[0] & { off?: boolean } = {}) {
  const { ran, port } = journal(o);
  const s = await start({ systemLogQuery: o.off !== true, journal: port });
  writeFileSync(join(s.lab.dir, 'log/app.log'), 'of the file\n');
  mkdirSync(join(s.lab.dir, 'log/web'));
  writeFileSync(join(s.lab.dir, 'log/web/web.log'), 'of the folder\n');
  writeFileSync(join(s.lab.dir, 'outside'), 'not for you\n');
  symlinkSync(join(s.lab.dir, 'outside'), join(s.lab.dir, 'log/escape'));
  return { ...s, ran };
}
const it = test.extend('s', () => node());

describe('a query of the logs', () => {
  it('is what the journal has of a service, as it comes', async ({ s }) => {
    const answer = await s.ask('/logs/?query=kubelet&tailLines=5&pattern=--all');
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain;charset=UTF-8']);
    expect(answer.body).toBe('Jan 02 a line\nJan 02 another\n');
    const common = ['--utc', '--no-pager', '--output=short-precise'];
    expect(s.ran).toEqual([
      ['--field', '_SYSTEMD_UNIT'],
      [...common, '--pager-end', '--lines=5', '--unit=kubelet', '--grep=--all'],
    ]);
  });
  it('is what a file of that name has where the journal knows no such service', async () => {
    for (const broken of [undefined, 'always' as const]) {
      const s = await node(broken === undefined ? {} : { broken });
      expect((await s.ask('/logs/?query=app')).body).toBe('of the file\n');
      expect((await s.ask('/logs/?query=web')).body).toBe('of the folder\n');
      expect((await s.ask('/logs/?query=none&query=app')).body).toBe('\nlog not found for none\nof the file\n');
      expect((await s.ask('/logs/?query=app&tailLines=1')).body).toContain('options present and query resolved to log files for [app]');
    }
  });
  it('says so where the journal cannot be read', async () => {
    const s = await node({ broken: 'units known' });
    expect(await s.ask('/logs/?query=kubelet')).toMatchObject({ status: 200, body: '\nerror: journal output not available\n' });
  });
  it('is a file where it has a slash, and no way out of the folder', async ({ s }) => {
    expect(await s.ask('/logs/?query=/web/web.log')).toMatchObject({ status: 200, body: 'of the folder\n' });
    for (const [query, status] of [
      ['/none.log', 406],
      ['../outside', 406],
      ['web/../../outside', 406],
      ['/escape', 403],
    ] as const) {
      const answer = await s.ask(`/logs/?query=${encodeURIComponent(query)}`);
      expect([query, answer.status]).toEqual([query, status]);
      expect(answer.body).not.toContain('not for you');
    }
    // As if there were nothing, whether there is or not.
    symlinkSync(s.lab.dir, join(s.lab.dir, 'log/up'));
    for (const file of ['/up/outside', '/up/pods', '/up/none']) {
      const answer = await s.ask(`/logs/?query=${file}`);
      expect([answer.status, answer.body]).toEqual([406, `query: there is no ${file.slice(1)}\n`]);
    }
    const led = await s.ask('/logs/?query=escape');
    expect(led.body).toContain('error getting log for escape');
    expect(led.body).not.toContain('not for you');
    expect(s.ran.every((args) => args[0] === '--field')).toBe(true);
  });
  it('that cannot be read is 400, one that cannot be had 406, and nothing is run for either', async ({ s }) => {
    expect((await s.ask('/logs/?query=kubelet&tailLines=x&boot=y')).body).toBe(
      'tailLines: "x" is no whole number\nboot: "y" is no whole number\n',
    );
    for (const [query, status] of [
      ['query=', 400],
      ['query=kubelet&sinceTime=now', 400],
      ['query=a%3Brm', 406],
      ['query=kubelet&boot=1', 406],
      ['tailLines=3', 406],
    ] as const)
      expect([query, (await s.ask(`/logs/?${query}`)).status]).toEqual([query, status]);
    expect((await s.ask('/logs/app.log?query=kubelet')).status).toBe(406);
    expect((await s.ask('/logs/?query=kubelet', { method: 'POST' })).status).toBe(405);
    expect(s.ran).toEqual([]);
  });
  it('is not looked at where it is switched off, and files are given as ever', async () => {
    const s = await node({ off: true });
    expect((await s.ask('/logs/?query=kubelet')).headers['content-type']).toContain('text/html');
    expect((await s.ask('/logs/app.log?query=kubelet')).body).toBe('of the file\n');
    expect(s.ran).toEqual([]);
    const on = await node();
    expect((await on.ask('/logs/app.log')).body).toBe('of the file\n');
    const noLogs = await start({ systemLogs: false, systemLogQuery: true });
    expect((await noLogs.ask('/logs/?query=kubelet')).status).toBe(405);
  });
});
