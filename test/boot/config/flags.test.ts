/** The command line by the kubelet's rules (boot-and-node 2.1, 2.2). */
import { describe, expect, it } from 'vitest';
import { getPath } from '../../../src/boot/config/paths.ts';
import { helpText } from '../../../src/boot/flags/help.ts';
import { parseFlags } from '../../../src/boot/flags/parse.ts';
import { shownFlags } from '../../../src/boot/flags/shown.ts';
import { FLAGS, flagByName } from '../../../src/boot/flags/table.ts';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import { defaultKubeletConfiguration, defaultKubeletFlags } from '../../../src/machines/config/defaults.ts';
import { formatGoDuration, parseGoDuration } from '../../../src/machines/text/go/goDuration.ts';
import { golden } from '../helpers.ts';

const parse = (...argv: string[]) => parseFlags(argv, { cwd: '/here' });
const valueIn = (flag: string, ...argv: string[]) => {
  const parsed = parse(...argv);
  expect(parsed.errors).toEqual([]);
  return parsed.given.get(flag)?.value;
};

describe('what a flag may look like', () => {
  it.each([
    ['--node_ip=1.2.3.4', 'node-ip', ['1.2.3.4']],
    ['--node-ip=1.2.3.4,fd00::1', 'node-ip', ['1.2.3.4', 'fd00::1']],
    ['--fail-swap-on', 'fail-swap-on', true],
    ['--fail-swap-on=F', 'fail-swap-on', false],
    ['--fail-swap-on=True', 'fail-swap-on', true],
    ['--max-pods=0x10', 'max-pods', 16],
    ['--max-pods=010', 'max-pods', 8],
    ['--max-pods=1_000', 'max-pods', 1000],
    ['--oom-score-adj=-998', 'oom-score-adj', -998],
    ['--sync-frequency=1m30s', 'sync-frequency', 90_000],
    ['--address=', 'address', undefined],
    ['--address=::', 'address', '::'],
    ['--cluster-dns=a,"b,c",d', 'cluster-dns', ['a', 'b,c', 'd']],
    ['--cluster-dns="say ""hi"""', 'cluster-dns', ['say "hi"']],
    ['--cluster-dns=', 'cluster-dns', []],
    ['--hostname-override="quoted"', 'hostname-override', '"quoted"'],
    ['--hostname-override==', 'hostname-override', '='],
    ['--feature-gates=A=true,,B=0', 'feature-gates', { A: true, B: false }],
    ['--system-reserved= cpu = 1 , memory=2Gi', 'system-reserved', { cpu: '1', memory: '2Gi' }],
    ['--eviction-hard=memory.available<1Gi,nodefs.available<5%', 'eviction-hard', { 'memory.available': '1Gi', 'nodefs.available': '5%' }],
    ['--manifest-url-header=A:b:c,A:d,X:y', 'manifest-url-header', { A: ['b:c', 'd'], X: ['y'] }],
    ['--cpu-manager-policy-options=a=b,c=d', 'cpu-manager-policy-options', { a: 'b,c=d' }],
    ['--node-labels=a,b=c', 'node-labels', { a: '', b: 'c' }],
    [
      '--register-with-taints=k=v:NoSchedule,k2:NoExecute',
      'register-with-taints',
      [
        { key: 'k', value: 'v', effect: 'NoSchedule' },
        { key: 'k2', value: '', effect: 'NoExecute' },
      ],
    ],
    ['--register-with-taints=', 'register-with-taints', []],
    [
      '--reserved-memory=0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi',
      'reserved-memory',
      [
        { numaNode: 0, limits: { memory: '1Gi', 'hugepages-1Gi': '2Gi' } },
        { numaNode: 1, limits: { memory: '2Gi' } },
      ],
    ],
    [
      '--vmodule=a*=3,b=1',
      'vmodule',
      [
        { filePattern: 'a*', verbosity: 3 },
        { filePattern: 'b', verbosity: 1 },
      ],
    ],
    ['--version=raw', 'version', 'raw'],
    ['--version', 'version', 'true'],
    ['--version=0', 'version', 'false'],
    ['--root-dir=state', 'root-dir', '/here/state'],
    ['--resolv-conf=', 'resolv-conf', ''],
    ['-v4', 'v', 4],
    ['-v=4', 'v', 4],
    ['-h', 'help', true],
    ['-hv4', 'v', 4],
  ])('%s', (arg, flag, value) => {
    expect(valueIn(flag, arg)).toEqual(value);
  });

  it('takes the next word as value, even one that looks like a flag', () => {
    expect(valueIn('hostname-override', '--hostname-override', '--odd')).toBe('--odd');
    expect(valueIn('v', '-v', '3')).toBe(3);
  });

  it('lets the last scalar win and accumulates collections after dropping the default', () => {
    expect(valueIn('max-pods', '--max-pods=1', '--max-pods=2')).toBe(2);
    expect(valueIn('cluster-dns', '--cluster-dns=a,b', '--cluster_dns=c')).toEqual(['a', 'b', 'c']);
    expect(valueIn('eviction-hard', '--eviction-hard=memory.available<1', '--eviction-hard=pid.available<2')).toEqual({
      'memory.available': '1',
      'pid.available': '2',
    });
    expect(valueIn('manifest-url-header', '--manifest-url-header=A:1', '--manifest-url-header=A:2')).toEqual({ A: ['1', '2'] });
  });
});

describe('what is refused', () => {
  it.each([
    [['--max-pod=1'], 'unknown flag --max-pod (did you mean --max-pods?)'],
    [['--maxPods=1'], 'unknown flag --maxPods (did you mean --max-pods?)'],
    [['--no-fail-swap-on'], 'unknown flag --no-fail-swap-on (did you mean --fail-swap-on?)'],
    [['--authentication.anonymous=true'], 'unknown flag --authentication.anonymous'],
    [['-max-pods=1'], 'unknown shorthand flag -m in -max-pods=1 (long flags begin with two dashes)'],
    [['--max-pods'], 'flag --max-pods needs a value'],
    [['--max-pods=ten'], '--max-pods: "ten" is not a whole number'],
    [['--max-pods=99999999999'], '--max-pods: 99999999999 is outside -2147483648..2147483647'],
    [['--fail-swap-on=yes'], '--fail-swap-on: "yes" is not a boolean (true or false)'],
    [
      ['--fail-swap-on', 'false'],
      'unknown command "false": positional arguments are not accepted (a boolean takes its value with "=": --flag=false)',
    ],
    [['run'], 'unknown command "run": positional arguments are not accepted'],
    [['version'], 'unknown command "version": positional arguments are not accepted (did you mean --version?)'],
    [['--', '--max-pods=1'], 'unknown command "--max-pods=1": positional arguments are not accepted'],
    [['---x'], '---x is not the way a flag is written'],
    [['--sync-frequency=10'], '--sync-frequency: "10" is not a duration (such as 300ms, 20s, 1m30s)'],
    [['--address=host'], '--address: "host" is not an IP address'],
    [['--feature-gates=A'], '--feature-gates: "A" lacks its "=" (name=value)'],
    [['--eviction-hard=memory.available=1'], '--eviction-hard: "memory.available=1" lacks its "<" (name<value)'],
    [['--manifest-url-header=secret'], '--manifest-url-header: an item lacks its ":" (Name:value)'],
    [
      ['--register-with-taints=k=v:Never'],
      '--register-with-taints: taint "k=v:Never" needs an effect: key=value:effect with NoSchedule, PreferNoSchedule, NoExecute',
    ],
    [['--cluster-dns=a"b'], '--cluster-dns: stray quote in "a\\"b"'],
  ])('%j', (argv, error) => {
    expect(parseFlags(argv, { cwd: '/' }).errors).toEqual([error]);
  });

  it('names every bad flag at once', () => {
    expect(parse('--bogus', 'value', '--max-pods=x', '--port=y').errors).toHaveLength(3);
  });
});

describe('the table of flags', () => {
  it('gives one notice per deprecated flag that was used, and none for the others', () => {
    expect(parse('--max-pods=1', '--max-pods=2', '--root-dir=/r', '--network-plugin=cni').notices).toEqual([
      'Flag --max-pods is deprecated: set it in the configuration file given by --config',
      'Flag --network-plugin is deprecated: it has no effect: removed in 1.24',
    ]);
  });

  it('writes only to configuration fields that exist', () => {
    const config = defaultKubeletConfiguration();
    for (const flag of FLAGS)
      if (flag.cfg !== undefined) expect([flag.name, getPath(config, flag.cfg)]).not.toEqual([flag.name, undefined]);
  });

  it('has no name twice, and ours begin with actorlet-', () => {
    expect(new Set(FLAGS.map((f) => f.name)).size).toBe(FLAGS.length);
    for (const flag of FLAGS) expect(flag.name.startsWith('actorlet-')).toBe(flag.own === true);
    expect(flagByName('root_dir')?.name).toBe('root-dir');
  });

  it('prints the help of the golden file', async () => {
    const text = await helpText();
    expect(text).toBe(golden('help.txt', text));
    expect(Math.max(...text.split('\n').map((l) => l.length))).toBeLessThanOrEqual(140);
  });
});

describe('Go durations', () => {
  it.each([
    ['1h30m', 5_400_000, '1h30m0s'],
    ['300ms', 300, '300ms'],
    ['1.5s', 1_500, '1.5s'],
    ['100us', 0.1, '100\u00b5s'],
    ['-1m', -60_000, '-1m0s'],
    ['0', 0, '0s'],
    ['2h45m0.5s', 9_900_500, '2h45m0.5s'],
    ['1ns', 1e-6, '1ns'],
  ])('%s is read and printed', (text, ms, printed) => {
    expect(parseGoDuration(text)).toBe(ms);
    expect(formatGoDuration(ms)).toBe(printed);
  });
  it.each(['', '5', 's', '1 s', '1d', '--1s', '9999999h', '1m-5s'])('%j is none', (text) => {
    expect(parseGoDuration(text)).toBeUndefined();
  });
});

describe('what every flag comes to', () => {
  const shown = (config: Partial<KubeletConfiguration>) =>
    shownFlags({ flags: { ...defaultKubeletFlags(), rootDir: '/r' }, config: { ...defaultKubeletConfiguration(), ...config } });

  it('is there for each that does something, with what the file says', () => {
    const flags = shown({ maxPods: 7, syncFrequency: 90_000, featureGates: { A: true, B: false }, clusterDNS: ['1.2.3.4', '5.6.7.8'] });
    expect(flags).toMatchObject({
      ...{ 'max-pods': '7', 'sync-frequency': '1m30s', 'feature-gates': 'A=true,B=false', 'cluster-dns': '1.2.3.4,5.6.7.8' },
      ...{ 'root-dir': '/r', kubeconfig: '' },
    });
    const wanted = FLAGS.filter((f) => f.removed === undefined && (f.flag ?? f.cfg) !== undefined).map((f) => f.name);
    expect(Object.keys(flags).sort()).toEqual(wanted.sort());
    expect(JSON.stringify(flags)).not.toMatch(/undefined|\[object/);
  });

  it('shows nothing secret', () => {
    const flags = shown({
      staticPodURL: 'https://me:hunter2@h/pods?token=hunter2',
      staticPodURLHeader: { Authorization: ['Bearer hunter2'] },
    });
    expect(JSON.stringify(flags)).not.toContain('hunter2');
    expect(flags).toMatchObject({
      'manifest-url': 'https://<masked>@h/pods?<masked>',
      'manifest-url-header': '<masked>',
    });
  });
});
