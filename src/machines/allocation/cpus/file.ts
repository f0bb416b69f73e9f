/** `<root-dir>/cpu_manager_state`: the reference's own file, so that either node agent can go on from the other's (resources and volumes 2.1). Pure. */

import { isRecord } from '../../shape/conform.ts';
import { fieldOf as field, textOf } from '../../shape/lenient.ts';
import { fnv1a32, goMap } from '../../text/checksum.ts';
import { messageOf } from '../../text/errors.ts';
import { type CpuSet, formatCpuSet, NO_CPUS, parseCpuSet } from '../cpuSet.ts';
import { OF_WHOLE_PODS, openState, type StateOpened } from '../ledgerRules.ts';
import { type CpuLedger, type CpuPlace, firstLedger, mistakeIn } from './ledger.ts';

export const CPU_STATE_FILE = 'cpu_manager_state';
/** Some hundred bytes for each container with CPUs of its own. */
export const CPU_STATE_BYTES_MAX = 4 * 1024 * 1024;

type Entries = Readonly<Record<string, Readonly<Record<string, string>>>>;
interface Texts {
  policyName: string;
  defaultCpuSet: string;
  entries: Entries;
}

/** Over the text in which the reference's program prints what it keeps. */
export function cpuStateChecksum({ policyName, defaultCpuSet, entries }: Texts, as = { type: 'CPUManagerCheckpoint', more: '' }): number {
  const pods = goMap(Object.entries(entries).map(([uid, containers]) => [uid, goMap(Object.entries(containers))]));
  return fnv1a32(
    `(*state.${as.type}){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} Entries:(map[string]map[string]string)${pods}${as.more} Checksum:(checksum.Checksum)0}`,
  );
}
/** Of kubelets with the gate PodLevelResourceManagers, and of those that had it. */
function laterChecksums(texts: Texts, podEntries: Record<string, unknown>): number[] {
  const sets = Object.entries(podEntries).map(([uid, entry]): [string, string] => {
    const cpus = parseCpuSet(textOf(field(entry, 'cpuSet'))) ?? NO_CPUS;
    return [uid, `{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[${cpus.map((cpu) => `${cpu}:{}`).join(' ')}]}}`];
  });
  const more = ` PodEntries:(state.PodCPUAssignments)${goMap(sets)}`;
  return [
    cpuStateChecksum(texts, { type: 'CPUManagerCheckpoint', more }),
    cpuStateChecksum(texts, { type: 'CPUManagerCheckpointV2', more: '' }),
  ];
}
/** Checksum of the file that kubelets before 1.16 wrote: containers by their ids. */
export function olderCpuStateChecksum({
  policyName,
  defaultCpuSet,
  entries,
}: Omit<Texts, 'entries'> & { entries: Readonly<Record<string, string>> }): number {
  const containers = goMap(Object.entries(entries));
  return fnv1a32(
    `(*state.CPUManagerCheckpoint){PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} Entries:(map[string]string)${containers} Checksum:(checksum.Checksum)0}`,
  );
}

/** `ledger` null: policy none, which allocates nothing. */
export function encodeCpuState(ledger: CpuLedger | null): string {
  const entries: Entries = Object.fromEntries(
    sorted(ledger?.entries ?? []).map(([uid, containers]) => [
      uid,
      Object.fromEntries(sorted(containers).map(([name, cpus]) => [name, formatCpuSet(cpus)])),
    ]),
  );
  const texts = { policyName: ledger === null ? 'none' : 'static', defaultCpuSet: formatCpuSet(ledger?.shared ?? NO_CPUS), entries };
  const { policyName, defaultCpuSet } = texts;
  return JSON.stringify({
    policyName,
    defaultCpuSet,
    ...(Object.keys(entries).length === 0 ? {} : { entries }),
    checksum: cpuStateChecksum(texts),
  });
}

function sorted<V>(entries: Iterable<readonly [string, V]>): (readonly [string, V])[] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

export type CpuStateRead = { ok: true; policyName: string; ledger: CpuLedger } | { ok: false; why: string };

/** Keys count in any case. */
export function decodeCpuState(text: string): CpuStateRead {
  const bad = (why: string): CpuStateRead => ({ ok: false, why });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    return bad(`not JSON (${messageOf(error)})`);
  }
  if (!isRecord(file)) return bad('not a JSON object');
  const policyName = field(file, 'policyName') ?? '';
  const defaultCpuSet = field(file, 'defaultCpuSet') ?? '';
  const [entries, podEntries] = [field(file, 'entries') ?? {}, field(file, 'podEntries') ?? {}];
  const checksum = field(file, 'checksum') ?? 0;
  if (typeof policyName !== 'string' || typeof defaultCpuSet !== 'string' || typeof checksum !== 'number')
    return bad('a field is of another type');
  if (!isRecord(entries) || !isRecord(podEntries)) return bad('a field is of another type');
  // 0: written before there were checksums.
  const sums = [0];
  if (isNested(entries)) {
    const texts = { policyName, defaultCpuSet, entries };
    sums.push(cpuStateChecksum(texts), ...laterChecksums(texts, podEntries));
  }
  if (isFlat(entries)) sums.push(olderCpuStateChecksum({ policyName, defaultCpuSet, entries }));
  if (!sums.includes(checksum)) return bad('checkpoint is corrupted: the checksum does not match');
  if (Object.keys(podEntries).length > 0) return bad(OF_WHOLE_PODS);
  if (!isNested(entries)) return bad('it holds containers by their ids, as kubelets before 1.16 wrote it');
  const left = parseCpuSet(defaultCpuSet);
  if (left === null) return bad(`the default CPU set ${JSON.stringify(defaultCpuSet)} is no list of CPUs`);
  const ledger = new Map<string, ReadonlyMap<string, CpuSet>>();
  for (const [uid, containers] of Object.entries(entries)) {
    const read = new Map<string, CpuSet>();
    for (const [name, cpus] of Object.entries(containers)) {
      const set = parseCpuSet(cpus);
      if (set === null) return bad(`${JSON.stringify(cpus)} of container ${name} of pod ${uid} is no list of CPUs`);
      read.set(name, set);
    }
    if (read.size > 0) ledger.set(uid, read);
  }
  return { ok: true, policyName, ledger: { shared: left, entries: ledger } };
}

function isFlat(entries: Record<string, unknown>): entries is Record<string, string> {
  return Object.values(entries).every((value) => typeof value === 'string');
}
function isNested(entries: Record<string, unknown>): entries is Record<string, Record<string, string>> {
  return Object.values(entries).every((value) => isRecord(value) && isFlat(value));
}

/** See {@link openState}. */
export function openCpuState(text: string | null, of: { place: CpuPlace | null; file: string }): StateOpened<CpuLedger> {
  return openState(text, of, {
    ...{ manager: 'CPU manager', policies: ['none', 'static'], says: '', first: firstLedger, decode: decodeCpuState, mistakeIn },
    // Allocated nothing, and nothing known.
    isUnbegun: ({ shared, entries }) => shared.length === 0 && entries.size === 0,
  });
}
