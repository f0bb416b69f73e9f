/**
 * `e2e_node.test` on one agent: the tests bring etcd and an API server of their own, and start the agent themselves, by systemd-run. Stand-ins
 * for that and for systemctl start, end and restart it where there is no init system.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Containerd } from '../../test/e2e/lab/containerd.ts';
import { type Agent, NODE_IP, startRuntime } from './node.ts';
import { asset } from './programs.ts';

const project = join(import.meta.dirname, '../..');

/** In the network of the node; nobody is there. */
const GATEWAY = NODE_IP.replace(/\d+$/, '254');

const SUDO = '#!/bin/sh\nexec "$@"\n';
const SYSTEMD_RUN = `#!/bin/bash
[ "$1" != --version ] || { echo "systemd 250 (250)"; exit; }
log=/dev/null
while :; do
  case $1 in
    -p) case $2 in StandardError=*) log=\${2#*:} ;; esac; shift 2 ;;
    --unit=*) unit=\${1#*=}; unit=\${unit%.service}; shift ;;
    --*) shift ;;
    *) break ;;
  esac
done
printf '%q ' "$@" >$UNITS/$unit.cmd
echo "$log" >$UNITS/$unit.log
exec systemctl start $unit
`;
const SYSTEMCTL = `#!/bin/bash
verb=$1 unit=\${2%.service}
runs() { [ -s $UNITS/$1.pid ] && pid=$(cat $UNITS/$1.pid) && [ -e /proc/$pid ] && ! grep -q '^State:.Z' /proc/$pid/status; }
end() {
  ! runs $1 || kill $pid
  for ((i = 0; i < 300; i++)); do runs $1 || return; sleep 0.1; done
  kill -9 $pid
}
begin() {
  setsid bash -c "exec $(cat $UNITS/$1.cmd)" >>"$(cat $UNITS/$1.log)" 2>&1 </dev/null &
  echo $! >$UNITS/$1.pid
}
case $verb in
  start) runs $unit || begin $unit ;;
  restart) end $unit; begin $unit ;;
  kill | stop) end $unit ;;
  list-units)
    for file in $UNITS/*.cmd; do
      unit=$(basename $file .cmd)
      if runs $unit; then echo "$unit.service loaded active running"
      else [[ $* == *running* ]] || echo "$unit.service loaded active exited"; fi
    done ;;
esac
exit 0
`;

export class NodeTests {
  readonly #lab: Containerd;
  readonly #dir: string;
  readonly missing: readonly string[];

  private constructor(o: { lab: Containerd; dir: string; missing: readonly string[] }) {
    this.#lab = o.lab;
    this.#dir = o.dir;
    this.missing = o.missing;
  }

  static async start(o: { images: readonly string[]; dir: string }): Promise<NodeTests> {
    const dir = join(o.dir, 'node-tests');
    for (const sub of ['shims', 'units', 'report']) mkdirSync(join(dir, sub), { recursive: true });
    for (const [name, text] of Object.entries({ sudo: SUDO, 'systemd-run': SYSTEMD_RUN, systemctl: SYSTEMCTL }))
      writeFileSync(join(dir, 'shims', name), text, { mode: 0o755 });
    // It is what its folder is named after that the tests write beside it.
    copyFileSync(asset('e2e_node.test'), join(dir, 'e2e_node.test'));
    writeFileSync(join(dir, 'system.yaml'), 'os: Linux\n');
    // Their API server chooses its address by the default route.
    return new NodeTests({ dir, ...(await startRuntime({ ...o, route: ['default', 'via', GATEWAY] })) });
  }

  get program(): string {
    return join(this.#dir, 'e2e_node.test');
  }

  /** Of ginkgo's program. */
  get env(): NodeJS.ProcessEnv {
    const path = [join(this.#dir, 'shims'), process.env.PATH].join(delimiter);
    return { ...process.env, PATH: path, UNITS: join(this.#dir, 'units') };
  }

  /** Of the tests, behind `--`. */
  args(agent: Agent): string[] {
    const bin = join(this.#dir, agent);
    rmSync(bin, { recursive: true, force: true });
    mkdirSync(bin);
    if (agent === 'kubelet') symlinkSync(asset('kubelet'), join(bin, 'kubelet'));
    else writeFileSync(join(bin, 'kubelet'), `#!/bin/sh\nexec ${project}/bin/actorlet "$@"\n`, { mode: 0o755 });
    const config = join(this.#dir, 'base.yaml');
    writeFileSync(config, JSON.stringify(this.#configuration()));
    return [
      ...[`--k8s-bin-dir=${bin}`, `--container-runtime-endpoint=${this.#lab.endpoint}`, '--prepull-images=false', '--node-name=node'],
      ...[
        `--report-dir=${join(this.#dir, 'report')}`,
        `--kubelet-config-file=${config}`,
        `--system-spec-file=${join(this.#dir, 'system.yaml')}`,
      ],
      `--kubelet-flags=--node-ip=${NODE_IP} --containerd=${this.#lab.endpoint.replace('unix://', '')}`,
    ];
  }

  log(): string {
    const file = join(this.#dir, 'report/kubelet.log');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  /** What could not be removed. */
  stop(): Promise<string[]> {
    for (const name of readdirSync(join(this.#dir, 'units')).filter((of) => of.endsWith('.cmd')))
      execFileSync(join(this.#dir, 'shims/systemctl'), ['stop', name.replace('.cmd', '')], { env: this.env });
    return this.#lab.stop();
  }

  /** That of the project's own runs of these tests, for a machine of cgroup v1 whose disk others fill. */
  #configuration(): object {
    return {
      ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
      ...{ volumeStatsAggPeriod: '10s', serializeImagePulls: false, fileCheckFrequency: '10s', podCIDR: '10.100.0.0/24' },
      evictionPressureTransitionPeriod: '30s',
      evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '0%', 'nodefs.inodesFree': '0%', 'imagefs.available': '0%' },
      ...{ imageGCHighThresholdPercent: 100, failSwapOn: false, failCgroupV1: false },
    };
  }
}
