/**
 * A shutdown of a real machine with a real systemd-logind: it waits for pods, which end by priority, and they run again afterwards.
 * `npm run nightly` runs it: logind needs a minute to start beside other tests on a small machine.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../daemon.ts';
import { hasMachine, Machine, staticPod } from './machine.ts';

const vm = new Machine(`down-${randomBytes(4).toString('hex')}`);
const MARKS = '/root/actorlet/marks';
const STATE = '/root/actorlet/root/graceful_node_shutdown_state';
const DROP_IN = '/etc/systemd/logind.conf.d/99-kubelet.conf';
const CONFIG = { shutdownGracePeriod: '60s', shutdownGracePeriodCriticalPods: '20s' };
const BOOT_MS = 240_000;
/** A machine that starts beside other work: its first pods took a minute and a half. */
const SLOW_MS = 300_000;

/** Notes when it is told to end and when it has ended, which takes it some seconds. */
const marking = (name: string, spec: object = {}) => {
  const script = `trap 'date +%s >/marks/${name}.term; sleep 4; date +%s >/marks/${name}.end; exit 0' TERM; touch /marks/${name}.up; while :; do sleep 0.2; done`;
  return staticPod(name, {
    spec: {
      terminationGracePeriodSeconds: 15,
      containers: [
        {
          ...{ name: 'main', image: 'localhost/busybox:1', command: ['sh', '-c', script] },
          volumeMounts: [{ name: 'marks', mountPath: '/marks' }],
        },
      ],
      volumes: [{ name: 'marks', hostPath: { path: MARKS, type: 'DirectoryOrCreate' } }],
      ...spec,
    },
  });
};
const mark = async (name: string): Promise<number> => Number(await vm.run(`cat ${MARKS}/${name}`));
const locked = () => vm.holds('systemd-inhibit --list --no-legend | grep -q "kubelet.*shutdown.*delay"');

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await vm.run('true', { timeoutMs: BOOT_MS });
  await vm.start(CONFIG);
}, 600_000);
afterAll(() => vm.dispose());

it('delays the power-off until pods have ended, ordinary ones first, and has them run again after the boot', async () => {
  await vm.wait('the lock', locked, SLOW_MS);
  expect(await vm.run(`cat ${DROP_IN}`)).toBe('# Written by actorlet: a shutdown waits for pods.\n[Login]\nInhibitDelayMaxSec=60');
  await vm.put('ordinary', marking('ordinary'));
  await vm.put('critical', marking('critical', { priority: 2_000_001_000 }));
  for (const name of ['ordinary', 'critical']) {
    await vm.running(name, SLOW_MS);
    await vm.wait(`${name} to listen for TERM`, () => vm.holds(`test -e ${MARKS}/${name}.up`));
  }
  await vm.powerOff();

  await vm.run('true', { keep: true, timeoutMs: BOOT_MS });
  const [ordinary, critical] = [await mark('ordinary.end'), await mark('critical.term')];
  expect(critical).toBeGreaterThanOrEqual(ordinary);
  const state = JSON.parse(await vm.run(`cat ${STATE}`)) as { startTime: string; endTime: string };
  const tookMs = Date.parse(state.endTime) - Date.parse(state.startTime);
  expect(tookMs).toBeGreaterThan(7_000);
  expect(tookMs).toBeLessThanOrEqual(61_000);
  expect(Math.floor(Date.parse(state.endTime) / 1000)).toBeGreaterThanOrEqual(await mark('critical.end'));
  const log = await vm.log();
  expect(log).toContain('THE MACHINE IS GOING DOWN');
  expect(log).not.toContain('pods did not end within their time');

  await vm.start(CONFIG);
  for (const name of ['ordinary', 'critical']) await vm.running(name, SLOW_MS);
  await vm.wait('the lock', locked, SLOW_MS);
  const metrics = await vm.run('curl -sf http://127.0.0.1:10255/metrics | grep ^kubelet_graceful_shutdown');
  expect(metrics).toContain(`kubelet_graceful_shutdown_end_time_seconds ${Math.floor(Date.parse(state.endTime) / 1000)}`);
}, 900_000);

it('takes its lock again after a restart of logind, and drops it when the daemon is killed', async () => {
  await vm.wait('the lock', locked, SLOW_MS);
  await vm.run('systemctl restart systemd-logind', { timeoutMs: 120_000 });
  await vm.wait('the daemon to notice', async () => (await vm.log()).includes('systemd-logind cannot be reached'));
  await vm.wait('the lock', locked, SLOW_MS);
  await vm.end('SIGKILL');
  await vm.wait('the lock to be dropped', async () => !(await locked()));
  await vm.start(CONFIG);
  await vm.wait('the lock', locked, SLOW_MS);
}, 900_000);

it('has a check that finds nothing to mend but the ports of the daemon itself', async () => {
  const out = await vm.run(
    '/share/bin/actorlet --check --config=/root/actorlet/config.yaml --root-dir=/root/actorlet/root --cert-dir=/root/actorlet/pki --hostname-override=vm -o json || true',
    { timeoutMs: 180_000 },
  );
  const { exitCode, findings } = JSON.parse(out) as { exitCode: number; findings: { level: string; where: string; what: string }[] };
  const loud = findings.filter((f) => f.level !== 'note').map((f) => `${f.level} ${f.where}: ${f.what}`);
  expect(loud).toEqual([
    'warning readOnlyPort (--read-only-port): another process listens on port 10255',
    'warning healthzPort (--healthz-port): another process listens on port 10248',
  ]);
  expect(exitCode).toBe(1);
  const said = findings.map((f) => f.what).join('\n');
  expect(said).toContain('the host has cgroup v2');
  expect(said).toMatch(/containerd .*2\.1/);
  expect(said).toContain('the configuration says cgroupfs, the runtime has systemd');
}, 400_000);
