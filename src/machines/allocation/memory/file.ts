/** `<root-dir>/memory_manager_state`: the reference's own file, so that either node agent can go on from the other's. Pure. */
import { isRecord } from '../../shape/conform.ts';
import { fieldOf as field, listOf } from '../../shape/lenient.ts';
import { fnv1a32, goMap } from '../../text/checksum.ts';
import { messageOf } from '../../text/errors.ts';
import { OF_WHOLE_PODS, openState, type StateOpened } from '../ledgerRules.ts';
import { firstMemory } from './ledger.ts';
import { type Block, type MemoryLedger, type MemoryPlace, mistakeIn, type NodeMemory, type Table } from './machine.ts';

export const MEMORY_STATE_FILE = 'memory_manager_state';
/** Some hundred bytes for each container with memory of its own. */
export const MEMORY_STATE_BYTES_MAX = 4 * 1024 * 1024;

/** Keys of a map as Go's JSON sorts them: as texts. */
const byText = ([a]: readonly [string | number, unknown], [b]: readonly [string | number, unknown]): number => (`${a}` < `${b}` ? -1 : 1);

/** `ledger` null: policy None, which allocates nothing. */
export function encodeMemoryState(ledger: MemoryLedger | null): string {
  const policyName = ledger === null ? 'None' : 'Static';
  const { machine, entries } = ledger ?? { machine: new Map(), entries: new Map() };
  const state = {
    policyName,
    machineState: Object.fromEntries([...machine].sort(byText).map(([id, node]) => [id, nodeJson(node)])),
    ...(entries.size === 0 ? {} : { entries: entriesJson(entries) }),
  };
  return JSON.stringify({ ...state, checksum: memoryChecksum(policyName, { machine, entries }) });
}

function nodeJson({ assignments, tables, cells }: NodeMemory) {
  return { numberOfAssignments: assignments, memoryMap: Object.fromEntries([...tables].sort(byText)), cells };
}
function entriesJson(entries: MemoryLedger['entries']) {
  const blockJson = ({ nodes, resource, size }: Block) => ({ numaAffinity: nodes, type: resource, size });
  const containerJson = (containers: ReadonlyMap<string, readonly Block[]>) =>
    Object.fromEntries([...containers].sort(byText).map(([name, blocks]) => [name, blocks.map(blockJson)]));
  return Object.fromEntries([...entries].sort(byText).map(([uid, containers]) => [uid, containerJson(containers)]));
}

/** What pods hold as a whole: kubelets with the gate PodLevelResourceManagers write it. */
type Whole = ReadonlyMap<string, readonly Block[]>;
/** Over the text in which the reference's program prints what it keeps. */
function memoryChecksum(policyName: string, { machine, entries }: MemoryLedger, o: { type?: string; whole?: Whole } = {}): number {
  const list = (numbers: readonly number[]): string => `[${numbers.join(' ')}]`;
  const tableText = ({ total, systemReserved, allocatable, reserved, free }: Table): string =>
    `<*>{TotalMemSize:(uint64)${total} SystemReserved:(uint64)${systemReserved} Allocatable:(uint64)${allocatable} Reserved:(uint64)${reserved} Free:(uint64)${free}}`;
  const nodeText = ({ assignments, tables, cells }: NodeMemory): string =>
    `<*>{NumberOfAssignments:(int)${assignments} MemoryMap:(map[v1.ResourceName]*state.MemoryTable)${goMap([...tables].map(([name, table]) => [name, tableText(table)]))} Cells:([]int)${list(cells)}}`;
  const blockText = ({ nodes, resource, size }: Block): string =>
    `{NUMAAffinity:([]int)${list(nodes)} Type:(v1.ResourceName)${resource} Size:(uint64)${size}}`;
  const podText = (containers: ReadonlyMap<string, readonly Block[]>): string =>
    goMap([...containers].map(([name, blocks]) => [name, `[${blocks.map(blockText).join(' ')}]`]));
  const nodes = [...machine].sort(([a], [b]) => a - b).map(([id, node]) => `${id}:${nodeText(node)}`);
  const pods = [...entries].map(([uid, containers]): [string, string] => [uid, podText(containers)]);
  const wholeText = (blocks: readonly Block[]): string => `{MemoryBlocks:([]state.Block)[${blocks.map(blockText).join(' ')}]}`;
  const wholes = [...(o.whole ?? [])].map(([uid, blocks]): [string, string] => [uid, wholeText(blocks)]);
  const more = o.whole === undefined ? '' : ` PodEntries:(state.PodMemoryAssignments)${goMap(wholes)}`;
  return fnv1a32(
    `(*state.${o.type ?? 'MemoryManagerCheckpoint'}){PolicyName:(string)${policyName} MachineState:(state.NUMANodeMap)map[${nodes.join(' ')}] Entries:(state.ContainerMemoryAssignments)${goMap(pods)}${more} Checksum:(checksum.Checksum)0}`,
  );
}

type MemoryStateRead = { ok: true; policyName: string; ledger: MemoryLedger } | { ok: false; why: string };

/** Keys count in any case. */
export function decodeMemoryState(text: string): MemoryStateRead {
  const bad = (why: string): MemoryStateRead => ({ ok: false, why });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    return bad(`not JSON (${messageOf(error)})`);
  }
  if (!isRecord(file)) return bad('not a JSON object');
  const policyName = field(file, 'policyName') ?? '';
  const checksum = field(file, 'checksum') ?? 0;
  const ledger = readLedger(field(file, 'machineState') ?? {}, field(file, 'entries') ?? {});
  const whole = readWhole(field(file, 'podEntries') ?? {});
  if (typeof policyName !== 'string' || typeof checksum !== 'number' || ledger === null || whole === null)
    return bad('a field is of another type');
  // 0: written before there were checksums. The others are of kubelets with the gate PodLevelResourceManagers, also rolled back.
  const sums = [{}, { type: 'MemoryManagerCheckpointV1' }, { whole }].map((o) => memoryChecksum(policyName, ledger, o));
  if (checksum !== 0 && !sums.includes(checksum)) return bad('checkpoint is corrupted: the checksum does not match');
  return whole.size > 0 ? bad(OF_WHOLE_PODS) : { ok: true, policyName, ledger };
}

/** The ledger that a file holds. Null: something in the file is of another type. */
function readLedger(machineState: unknown, entries: unknown): MemoryLedger | null {
  if (!isRecord(machineState) || !isRecord(entries)) return null;
  const machine: Map<number, NodeMemory> = new Map();
  for (const [id, value] of Object.entries(machineState)) {
    const node = readNode(value);
    if (!/^\d{1,9}$/.test(id) || node === null) return null;
    machine.set(Number(id), node);
  }
  const pods = new Map<string, ReadonlyMap<string, readonly Block[]>>();
  for (const [uid, containers] of Object.entries(entries)) {
    if (!isRecord(containers)) return null;
    const read = new Map<string, readonly Block[]>();
    for (const [name, list] of Object.entries(containers)) {
      const blocks = (Array.isArray(list) ? list : []).map(readBlock);
      if (blocks.includes(null)) return null;
      read.set(
        name,
        blocks.filter((b) => b !== null),
      );
    }
    pods.set(uid, read);
  }
  return { machine, entries: pods };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.every(isCount);

function readNode(value: unknown): NodeMemory | null {
  const assignments = field(value, 'numberOfAssignments') ?? 0;
  const cells = field(value, 'cells') ?? [];
  const memoryMap = field(value, 'memoryMap') ?? {};
  if (!isCount(assignments) || !isCounts(cells) || !isRecord(memoryMap)) return null;
  const tables = new Map<string, Table>();
  for (const [resource, of] of Object.entries(memoryMap)) {
    const amount = (name: keyof Table): unknown => field(of, name) ?? 0;
    const [total, systemReserved] = [amount('total'), amount('systemReserved')];
    const [allocatable, reserved, free] = [amount('allocatable'), amount('reserved'), amount('free')];
    if (!isCount(total) || !isCount(systemReserved) || !isCount(allocatable) || !isCount(reserved) || !isCount(free)) return null;
    tables.set(resource, { total, systemReserved, allocatable, reserved, free });
  }
  return { assignments, cells, tables };
}

/** Null: something of it is of another type. */
function readWhole(podEntries: unknown): Whole | null {
  if (!isRecord(podEntries)) return null;
  const read = Object.entries(podEntries).map(([uid, entry]) => [uid, listOf(field(entry, 'memoryBlocks')).map(readBlock)] as const);
  return read.some(([, blocks]) => blocks.includes(null))
    ? null
    : new Map(read.map(([uid, blocks]) => [uid, blocks.filter((b) => b !== null)]));
}

function readBlock(value: unknown): Block | null {
  const [nodes, resource, size] = [field(value, 'numaAffinity') ?? [], field(value, 'type') ?? '', field(value, 'size') ?? 0];
  return isCounts(nodes) && typeof resource === 'string' && isCount(size) ? { nodes, resource, size } : null;
}

/** See {@link openState}. */
export function openMemoryState(text: string | null, of: { place: MemoryPlace | null; file: string }): StateOpened<MemoryLedger> {
  return openState(text, of, {
    ...{ manager: 'memory manager', policies: ['None', 'Static'], says: '[memorymanager] ' },
    ...{ first: firstMemory, decode: decodeMemoryState, mistakeIn },
    isUnbegun: ({ machine, entries }) =>
      machine.size === 0 && (entries.size === 0 || { why: 'machine state can not be empty when it has memory assignments' }),
  });
}
