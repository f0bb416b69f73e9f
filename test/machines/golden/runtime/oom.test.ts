/**
 * What records of the kernel's log come to (resources 6.1): a row is what the kernel writes, in one part unless it says
 * otherwise, and what is read from it: each kill, and for those of the node the event.
 */
import { EMPTY_OOM_LEDGER, isSystemOom, type OomLedger, readOoms, systemOomMessage } from '../../../../src/machines/runtime/oom.ts';
import { goldenTable } from '../table.ts';

const INVOKED = 'java invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=968';
const GROUP = '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod4c1e.slice/cri-containerd-77aa.scope';
const WHERE = 'nodemask=(null),cpuset=cri-containerd-77aa.scope,mems_allowed=0-1,3';
const detail = (constraint: string, limit: string, task = 'java,pid=4711,uid=1000'): string =>
  `oom-kill:constraint=${constraint},${WHERE},${limit},task_memcg=${GROUP},task=${task}`;
const OF_NODE = detail('CONSTRAINT_NONE', 'global_oom');
const OF_GROUP = detail('CONSTRAINT_MEMCG', `oom_memcg=${GROUP}`);
const KILLED =
  'Killed process 4711 (java) total-vm:9012388kB, anon-rss:6291456kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:12600kB oom_score_adj:968';

/** A gap stands for what a processor said meanwhile. */
const kernel = (texts: readonly string[], o: { from?: number; priority?: number } = {}): string[] =>
  texts.map((text, i) => `${o.priority ?? 4},${(o.from ?? 100) + i},${5_000_000 + i},-;${text}`);

const row =
  (...parts: (readonly string[])[]) =>
  () => {
    let ledger: OomLedger = EMPTY_OOM_LEDGER;
    const said: unknown[] = [];
    for (const records of parts) {
      const read = readOoms(ledger, { records, seq: -1 });
      ledger = read.ledger;
      said.push(...read.kills.map((kill) => ({ ...kill, event: isSystemOom(kill) ? systemOomMessage(kill) : null })));
    }
    return { said, told: ledger.told, unfinished: ledger.open };
  };

goldenTable("what the kernel's log says of memory that ran out is read as recorded (trap 75)", 'runtime/oom', {
  'a newer kernel, the whole node': row(kernel([INVOKED, 'CPU: 2 PID: 4711 Comm: java', 'Mem-Info:', OF_NODE, `Out of memory: ${KILLED}`])),
  'a newer kernel, the limit of a container': row(
    kernel([INVOKED, 'memory: usage 65536kB, limit 65536kB, failcnt 31', OF_GROUP, `Memory cgroup out of memory: ${KILLED}`]),
  ),
  'a newer kernel, the limit of a pod, a process of one of its containers': row(
    kernel([INVOKED, detail('CONSTRAINT_MEMCG', 'oom_memcg=/kubepods/burstable/pod4c1e')]),
  ),
  'a newer kernel, the limit of the root group is the node': row(kernel([INVOKED, detail('CONSTRAINT_MEMCG', 'oom_memcg=/')])),
  'a newer kernel, a policy of memory nodes or a set of processors': row(
    kernel([
      INVOKED,
      detail('CONSTRAINT_MEMORY_POLICY', 'global_oom'),
      INVOKED,
      detail('CONSTRAINT_CPUSET', 'global_oom', 'b,pid=8,uid=0'),
    ]),
  ),
  'an older kernel, the whole node': row(
    kernel([
      INVOKED,
      'Out of memory: Kill process 4711 (java) score 930 or sacrifice child',
      'Killed process 4711 (java) total-vm:9012388kB, anon-rss:6291456kB',
    ]),
  ),
  'an older kernel, the limit of a container': row(
    kernel([
      INVOKED,
      `Task in ${GROUP} killed as a result of limit of ${GROUP}`,
      'Memory cgroup out of memory: Kill process 4711 (java) score 930 or sacrifice child',
      'Killed process 4711 (java) total-vm:9012388kB, anon-rss:6291456kB',
    ]),
  ),
  'an older kernel, the limit of a pod': row(
    kernel([
      INVOKED,
      `Task in ${GROUP} killed as a result of limit of /kubepods/burstable/pod4c1e`,
      'Killed process 4711 (java) total-vm:1kB',
    ]),
  ),
  'a line with a user before the name': row(kernel([INVOKED, 'Killed process 4711, UID 1000, (java) total-vm:1kB, anon-rss:1kB'])),
  'a name with commas, brackets and blanks': row(
    kernel([INVOKED, detail('CONSTRAINT_NONE', 'global_oom', 'a (b), c,pid=4711,uid=0')]),
    kernel([INVOKED, 'Out of memory: Killed process 12 (kworker/u8:2 (x)) total-vm:1kB'], { from: 200 }),
  ),
  'a name that looks like the end of another record': row(
    kernel([INVOKED, detail('CONSTRAINT_NONE', 'global_oom', 'x,pid=1,uid=0,pid=4711,uid=0')]),
  ),
  'all processes of a group that goes as a whole': row(
    kernel([
      INVOKED,
      OF_GROUP,
      `Memory cgroup out of memory: ${KILLED}`,
      `Tasks in ${GROUP} are going to be killed due to memory.oom.group set`,
      'Memory cgroup out of memory: Killed process 4712 (java) total-vm:1kB',
    ]),
  ),
  'a group whose details another processor tore apart': row(
    kernel([INVOKED, `oom-kill:constraint=CONSTRAINT_MEMCG,${WHERE}`, 'eth0: link up', `Memory cgroup out of memory: ${KILLED}`]),
  ),
  'a group whose details are missing altogether': row(kernel([INVOKED, `Memory cgroup out of memory: ${KILLED}`])),
  'a kill that nothing announced': row(kernel([`Out of memory: ${KILLED}`, OF_NODE])),
  'a beginning without an end': row(kernel([INVOKED, 'Mem-Info:'])),
  'a beginning that was given up for another': row(
    kernel([INVOKED, `Task in ${GROUP} killed as a result of limit of ${GROUP}`, INVOKED, 'Killed process 7 (init) total-vm:1kB']),
  ),
  'two, one after the other': row(
    kernel([INVOKED, OF_NODE, `Out of memory: ${KILLED}`, INVOKED, detail('CONSTRAINT_NONE', 'global_oom', 'cc1,pid=5,uid=0')]),
  ),
  'one in several parts': row(kernel([INVOKED]), kernel(['Mem-Info:'], { from: 101 }), kernel([OF_NODE], { from: 102 })),
  'records that were read before': row(kernel([INVOKED, OF_NODE]), kernel([INVOKED, OF_NODE])),
  'words of a process, which may write there too': row(kernel([INVOKED, OF_NODE], { priority: 12 })),
  'a process that writes into the middle': row(
    kernel([INVOKED]),
    kernel(['Killed process 1 (init) total-vm:1kB'], { from: 101, priority: 14 }),
    kernel([OF_GROUP], { from: 102 }),
  ),
  'records with more fields, and what is no record': row([
    'not a record',
    `4,100,1,-,caller=T4711;${INVOKED}`,
    ' SUBSYSTEM=cpu',
    `4,101,2,c,caller=T4711;${OF_NODE}`,
  ]),
  'nobody known': row(kernel([INVOKED, detail('CONSTRAINT_NONE', 'global_oom', ',pid=0,uid=0')])),
});
