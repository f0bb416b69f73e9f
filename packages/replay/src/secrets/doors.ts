/**
 * The doors through which secrets come into a node and leave it, by position: keys of objects, functions of ports, paths of
 * files. What stands there is secret whatever its text, its length or its encoding.
 */

import { FOUND_ANYWHERE_MIN } from '@actorlet/kubelet/machines/data/knownSecrets.ts';
import { isOwnEnd } from '@actorlet/kubelet/machines/pod/ends/ownEnds.ts';
import { isStartBrokenOff } from '@actorlet/kubelet/machines/pod/runtime/runtimeStatus.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { nearestName } from '@actorlet/kubelet/machines/text/nearest.ts';
import { documentOf } from './encodings.ts';
import { type Holds, ProjectedFiles } from './projected.ts';
import { PublicNames } from './publicNames.ts';
import { bodyDoor, headerDoor, queryDoor } from './requests.ts';

/**
 * - `open`: nothing secret by its position. `free`: text of people and programs, likewise.
 * - `secret`: all of it.
 * - `words`: words of a container's command and values of its environment. `$(NAME)` stays, which the tree expands. `line`: several in one text.
 * - `variable`: `NAME=VALUE`, of which the value is secret. `variables`: a file of such lines.
 * - `base64`: the bytes that it holds in base64. `auth`: a name and a password in base64.
 * - `credentials`: JSON with credentials of registries. `credentials64`: the same in base64.
 * - `token`: a token; after a scheme in a header.
 * - `kept`: free text that the node reads again later: it stays what it was written as. `kept64`: the same in base64. `annotated`: a
 *   file of annotations.
 * - `mixed`: a file that is a Secret's or a ConfigMap's: its value tells which.
 * - `stream`: a URL that opens a session of the runtime's streaming server.
 * - `image`: what stands before an `@`. `link`: a URL, whole or without its beginning: its user, and what follows its path.
 * - `option`: options of a mount, of which a user, a password or a key is secret.
 * - `label`: a value of a label or an annotation, or what selects it. `downward`: a file of such values, or one of them.
 * - `piece`: a part of a log, which may begin and end within a line.
 * - `log`: the content of each line of a container's log. `lines`: each line of a last message, which may be the end of a log.
 * - `devices`: variables that device plugins gave, in the node's record.
 * - `bundle`: what is kept of a death, with the end of a log in it: all but its first line, which the tree reads.
 * - `address`: the path of a request to the node.
 * - `folder`: where a mount of a sub-path lies, or a table of mounts: a Secret may have named the folder.
 */
export type Door =
  | ('open' | 'free' | 'secret' | 'words' | 'line' | 'variable' | 'variables' | 'base64' | 'auth')
  | ('credentials' | 'credentials64' | 'token' | 'image' | 'link' | 'option' | 'log' | 'lines' | 'devices')
  | ('label' | 'downward' | 'piece' | 'stream' | 'kept' | 'kept64' | 'mixed' | 'annotated' | 'folder' | 'bundle' | 'address');

/** Where a value stands: the key it has, or that its list has, and by which door it comes. */
export interface Place {
  readonly key: string;
  readonly door: Door;
}

type Rule = (value: unknown, at: Place, owner: object) => Door;

const SECRET_KEYS = ['password', 'passwd', 'identityToken', 'identity_token', 'registryToken', 'registry_token', 'privateKey'].concat([
  ...['identitytoken', 'registrytoken', 'staticPodURLHeader'],
  'client-key-data',
  'access_token',
  'gmsaCredentialSpec',
]);
/** What a driver of volumes is told. The tree hands it on. */
const DRIVER_RECORDS: ReadonlySet<string> = new Set(['volumeAttributes', 'volumeContext', 'attachmentMetadata', 'publishContext']);
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const MOUNT_OPTIONS = 'volume.beta.kubernetes.io/mount-options';
const TOKEN_KEYS = ['token', 'serviceAccountToken', 'cookie', 'proxy-authorization'];
/** What programs say, and what people write. */
const FREE_KEYS = ['message', 'details', 'stdout', 'stderr', 'output', 'body', 'error', 'why'];
/** By commands that the node runs in containers. */
const PRINTED: ReadonlySet<string> = new Set(['stdout', 'stderr']);
const FREE_RECORDS = ['annotations', 'info', 'binaryData'];
const IMAGE_KEYS = ['image', 'imageRef', 'imageID', 'imageId', 'userSpecifiedImage'];
const REASON = /^[A-Z][A-Za-z]{0,60}$/;
/** Of a probe or a hook. */
const HOST_OWNERS: ReadonlySet<string> = new Set(['httpGet', 'tcpSocket']);
const DOCKER_FILE = /^\.dockerc(?:onfigjson|fg)$/;
/** Of labels and annotations that the tree reads: nodes and runtimes write them for programs. */
const NODE_KEY = /^(?:(?:[\w.-]+\.)?(?:kubernetes|k8s)\.io\/|io\.kubernetes\.|actorlet\.dev\/)/;
/** Of those, what people write. */
const PEOPLE_KEY = /^(?:kubectl|app|helm)\.(?:kubernetes|k8s)\.io\/|^kubernetes\.io\/(?:change-cause|description)$/;
const POD_UID = 'io.kubernetes.pod.uid';

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...SECRET_KEYS.map((key): [string, Rule] => [key, () => 'secret']),
  ...TOKEN_KEYS.map((key): [string, Rule] => [key, (value) => (isRecord(value) ? 'open' : 'token')]),
  // Bytes are text, too.
  ...FREE_KEYS.map((key): [string, Rule] => [key, (value) => (isRecord(value) && !(value instanceof Uint8Array) ? 'open' : 'free')]),
  // A word of programs for programs, and what some make of it.
  ['reason', (value) => (typeof value === 'string' && REASON.test(value) ? 'open' : isRecord(value) ? 'open' : 'free')],
  ...FREE_RECORDS.map((key): [string, Rule] => [key, () => 'free']),
  ...IMAGE_KEYS.map((key): [string, Rule] => [key, (value) => (isRecord(value) ? 'open' : 'image')]),
  // `authorization` is a header, and a section of the node's configuration.
  ['authorization', (value) => (isRecord(value) ? 'open' : 'token')],
  ['auth', (value) => (typeof value === 'string' ? 'auth' : 'secret')],
  // Of a service account it is a list of names.
  ['secrets', (value) => (Array.isArray(value) ? 'open' : 'secret')],
  ['data', (value, at, owner) => (at.key === 'devices' ? 'secret' : isSecretObject(owner) ? 'base64' : isRecord(value) ? 'free' : 'open')],
  ['stringData', (_, __, owner) => (isSecretObject(owner) ? 'secret' : 'open')],
  // The last ones are mistakes of people, and a step of an image's history.
  ...['command', 'cmd', 'args', 'arg', 'arguments', 'commands', 'entrypoint', 'created_by'].map((key): [string, Rule] => [
    key,
    // Those of probes, hooks and programs of the node are not expanded.
    (value, at) => (!areWords(value) ? 'open' : CONTAINERS.has(at.key) ? 'words' : 'secret'),
  ]),
  ['path', (_, at) => (at.key === 'httpGet' ? 'link' : 'open')],
  ['host', (_, at) => (HOST_OWNERS.has(at.key) ? 'image' : 'open')],
  ['url', (value, _, owner) => (typeof value === 'string' && Object.keys(owner).length === 1 ? 'stream' : 'open')],
  ['reference', (_, at) => (at.key === 'image' ? 'image' : 'open')],
  ['endpoint', (value) => (typeof value === 'string' ? 'link' : 'open')],
  // Of a ResourceClaim: what its driver is told, and what the driver tells.
  ['parameters', (_, at) => (at.key === 'opaque' ? 'secret' : 'open')],
  ['location', (value) => (typeof value === 'string' ? 'link' : 'open')],
  ['root', (value, _, owner) => (typeof value === 'string' && SUB_PATH.test(String(Reflect.get(owner, 'path'))) ? 'folder' : 'open')],
  ['mountOptions', () => 'option'],
  ['mountFlags', () => 'option'],
  ['options', (value, at) => (at.key === 'flexVolume' ? 'secret' : areWords(value) ? 'option' : 'open')],
]);
/** As the API and CRI call it, and as people do. */
const ENVIRONMENT = /^env(?!from$)[a-z]*$/i;
const NOT_VALUES: ReadonlySet<string> = new Set(['name', 'key', 'valueFrom']);
const HTTP_GET: ReadonlySet<string> = new Set(['path', 'port', 'host', 'scheme', 'httpHeaders']);
const CONTAINERS: ReadonlySet<string> = new Set(['containers', 'initContainers', 'ephemeralContainers']);
/** Where a key may be a slip of the pen: the tree does not know such a field, and says its name alone. */
const WITH_WORDS: ReadonlySet<string> = new Set([...CONTAINERS, 'exec', 'postStart', 'preStop', 'httpHeaders']);
const WORD_KEYS = ['command', 'args', 'env', 'exec', 'value'];
const SLIPS_MAX = 1_000;
const SLIP_CHARS_MAX = 40;

export class Doors {
  readonly #isPrivate: boolean;
  /** Variables of which the pod makes names of folders: names stay. */
  readonly #open = new WeakSet<object>();
  /** Variables of programs of the node, which are not expanded. */
  readonly #fixed = new WeakSet<object>();
  /** Labels of people, and what selects them. Those of nodes are compared with what drivers and the node itself say. */
  readonly #labels = new WeakSet<object>();
  readonly #projected = new ProjectedFiles();
  readonly names = new PublicNames();
  readonly #slips = new Map<string, boolean>();
  /** Items of lists of Secrets: they have no kind, and may have no type. */
  readonly #secrets = new WeakSet<object>();

  constructor({ isPrivate }: { isPrivate: boolean }) {
    this.#isPrivate = isPrivate;
  }

  /** Of what has `key` in `owner`, which stands at `at`. */
  of(key: string, owner: object, at: Place): Door {
    this.names.note(key, owner, at.key);
    switch (at.door) {
      case 'free':
        if (at.key === 'binaryData') return 'kept64';
        if (at.key === 'data') return ofText(Reflect.get(owner, key), RULES.get(key)?.(Reflect.get(owner, key), at, owner));
        break;
      case 'open':
      case 'image':
        break;
      case 'base64':
        return DOCKER_FILE.test(key) ? 'credentials64' : 'base64';
      default:
        return at.door;
    }
    if (ENVIRONMENT.test(at.key) && !NOT_VALUES.has(key)) return key === 'value' ? this.#variable(owner) : 'secret';
    if (at.key === 'httpGet' ? !HTTP_GET.has(key) : WITH_WORDS.has(at.key) && this.#isSlip(key)) return 'secret';
    switch (at.key) {
      case 'httpHeaders':
        // The node reads one of them, and sends the others.
        if (key === 'value') return String(Reflect.get(owner, 'name')).toLowerCase() === 'host' ? 'open' : 'token';
        break;
      case 'headers':
        return headerDoor(key.toLowerCase(), Reflect.get(owner, key));
      case 'terminated':
        // What the node says itself, it compares with what comes back from the API server.
        if (key === 'message') return isOwnEnd(Reflect.get(owner, key)) ? 'free' : 'lines';
        break;
      case 'annotations':
        if (key === MOUNT_OPTIONS) return 'option';
        if (key === LAST_APPLIED && !isDocument(Reflect.get(owner, key))) return 'secret';
        // What the node wrote itself comes back as it is.
        if (!isOfPeople(key)) return 'open';
        return this.#isPrivate ? 'label' : 'kept';
      case 'labels':
      case 'matchLabels':
        if (this.#isPrivate && (this.#labels.has(owner) || POD_UID in owner) && isOfPeople(key)) return 'label';
        break;
    }
    if (DRIVER_RECORDS.has(at.key) && !NODE_KEY.test(key)) return 'secret';
    if (this.#isPrivate) {
      if (key === 'values' && this.#labels.has(owner)) return 'label';
      if (key === 'value' && isServed(owner)) return 'piece';
      this.#noteLabels(owner, key);
    }
    if (owner instanceof URLSearchParams || isQuery(owner)) return queryDoor(key, valuesOf(owner, key));
    if (ENVIRONMENT.test(key)) return this.#environment(owner, key, at);
    if ((key === 'body' || key === 'path') && isRequest(owner)) return key === 'path' ? 'address' : bodyDoor(owner);
    if (key === 'spec') this.#projected.note(owner);
    if (key === 'items' && Reflect.get(owner, 'kind') === 'SecretList') this.#noteSecrets(Reflect.get(owner, key));
    if (key === 'message' && isEnd(owner)) return 'lines';
    if (key === 'data' && this.#secrets.has(owner)) return 'base64';
    if (key === 'stringData' && this.#secrets.has(owner)) return 'secret';
    // Programs in Go begin some keys with a capital.
    const rule = RULES.get(key) ?? (/^[A-Z]/.test(key) ? RULES.get(key.toLowerCase()) : undefined);
    const door = rule?.(Reflect.get(owner, key), at, owner);
    return this.#shut(door ?? (at.door === 'free' ? 'free' : 'open'), key, owner);
  }

  /** Of the answer of a port, by what was asked. */
  ofAnswer(name: string, args: readonly unknown[]): Door {
    const path = typeof args[0] === 'string' ? args[0] : '';
    switch (name) {
      case 'credentialPrograms.run':
        return 'credentials';
      case 'certificates.generateKey':
      case 'certificates.podKey':
        return 'secret';
      case 'fs.readFile':
        if (ANY_VOLUME.test(path)) return this.#ofVolume(path);
        if (DOCKER_PATH.test(path)) return 'credentials';
        if (ISCSI_PATH.test(path)) return 'variables';
        if (DEVICES_PATH.test(path)) return 'devices';
        return path.endsWith('/mountinfo') ? 'folder' : 'open';
      case 'fs.readTail':
        // A termination message: from its own file, or the end of the log.
        return LOG_PATH.test(path) ? 'log' : 'lines';
      case 'fs.readdir':
        // A Secret may have named a folder of a volume.
        return ANY_VOLUME.test(path) ? 'free' : 'open';
      case 'fs.openRead':
        if (DEATHS_PATH.test(path)) return 'bundle';
        if (ANY_VOLUME.test(path)) return 'variables';
        return this.#isPrivate ? 'piece' : 'free';
      default:
        return 'open';
    }
  }

  /** Of an argument, by what is asked; else the keys in it say so. */
  ofArgument(name: string, args: readonly unknown[], at: number): Door {
    // A pattern may be among what journalctl is given.
    if (name === 'journal.read') return 'variable';
    if (name !== 'fs.writeFile' || at !== 1) return 'open';
    const path = typeof args[0] === 'string' ? args[0] : '';
    // It has the end of a container's log in it.
    if (DEATHS_PATH.test(path)) return 'log';
    if (DEVICES_PATH.test(path)) return 'devices';
    if (ANY_VOLUME.test(path)) return this.#ofVolume(path);
    return ISCSI_PATH.test(path) ? 'secret' : 'open';
  }

  #ofVolume(path: string): Door {
    const [, kind = ''] = ANY_VOLUME.exec(path) ?? [];
    const holds = kind === 'projected' || kind === 'downward-api' ? this.#projected.holds(path) : VOLUMES[kind];
    if (holds === 'text' || holds === 'mixed') return this.#isPrivate ? 'secret' : holds === 'text' ? 'kept' : 'mixed';
    if (holds === 'labels' || holds === 'annotations') return this.#isPrivate ? 'downward' : holds === 'labels' ? 'open' : 'annotated';
    return holds === 'secrets' ? 'secret' : 'open';
  }

  #variable(owner: object): Door {
    return this.#open.has(owner) ? 'open' : this.#fixed.has(owner) ? 'secret' : 'words';
  }

  #isSlip(key: string): boolean {
    if (RULES.has(key) || WORD_KEYS.includes(key) || key.length > SLIP_CHARS_MAX) return false;
    const known = this.#slips.get(key);
    if (known !== undefined) return known;
    if (this.#slips.size >= SLIPS_MAX) this.#slips.clear();
    const is = nearestName(key, WORD_KEYS) !== undefined;
    this.#slips.set(key, is);
    return is;
  }

  #noteSecrets(items: unknown): void {
    if (Array.isArray(items)) for (const item of items as unknown[]) if (isRecord(item)) this.#secrets.add(item);
  }

  /** Free text is shut, too, where it is private. */
  #shut(door: Door, key: string, owner: object): Door {
    if (door !== 'free' || !this.#isPrivate) return door;
    if (PRINTED.has(key) || (key === 'body' && Object.hasOwn(owner, 'bodyError'))) return 'lines';
    return key === 'data' ? 'secret' : key === 'binaryData' ? 'base64' : door;
  }

  #noteLabels(owner: object, key: string): void {
    const value: unknown = Reflect.get(owner, key);
    if (!isRecord(value)) return;
    if (key === 'metadata' && isRecord(value.labels) && isOfPeopleObject(owner)) this.#labels.add(value.labels);
    if (key !== 'labelSelector') return;
    const { matchLabels, matchExpressions } = value;
    for (const item of [matchLabels, ...(Array.isArray(matchExpressions) ? (matchExpressions as unknown[]) : [])])
      if (isRecord(item)) this.#labels.add(item);
  }

  /** Of a list of `{name, value}` the items say more. */
  #environment(owner: object, key: string, at: Place): Door {
    const value: unknown = Reflect.get(owner, key);
    if (Array.isArray(value) && !CONTAINERS.has(at.key)) for (const item of value as unknown[]) if (isRecord(item)) this.#fixed.add(item);
    if (!Array.isArray(value)) return isRecord(value) && Object.values(value).every((item) => typeof item === 'string') ? 'secret' : 'open';
    if (value.some((item) => typeof item === 'string')) return 'variable';
    const mounts: unknown = Reflect.get(owner, 'volumeMounts');
    const folders = (Array.isArray(mounts) ? mounts : []).map((mount: unknown) => (isRecord(mount) ? String(mount.subPathExpr ?? '') : ''));
    if (folders.some((folder) => folder !== ''))
      for (const item of value as unknown[])
        if (isRecord(item) && folders.some((folder) => folder.includes(`$(${String(item.name)})`))) this.#open.add(item);
    return 'open';
  }
}

function isOfPeople(key: string): boolean {
  return !NODE_KEY.test(key) || PEOPLE_KEY.test(key);
}

/** Pods, ConfigMaps, Secrets and trust bundles. */
function isOfPeopleObject(owner: object): boolean {
  const spec: unknown = Reflect.get(owner, 'spec');
  if (isRecord(spec)) return Array.isArray(spec.containers) || typeof spec.trustBundle === 'string';
  return isRecord(Reflect.get(owner, 'data')) || isRecord(Reflect.get(owner, 'binaryData'));
}

/** Bytes that the tree streams to a client, in the JSON of a recording: a log, mostly. */
function isServed(owner: object): boolean {
  const value: unknown = Reflect.get(owner, 'value');
  return Object.hasOwn(owner, 'done') && isRecord(value) && (value.$ === 'x' || value.$ === 'b');
}

/** Of a query in the JSON of a recording. */
function isQuery(owner: object): boolean {
  return Reflect.get(owner, '$') === 'q';
}
function valuesOf(owner: object, key: string): readonly unknown[] {
  if (owner instanceof URLSearchParams) return owner.getAll(key);
  const pairs: unknown = Reflect.get(owner, 'v');
  return (Array.isArray(pairs) ? pairs : []).flatMap((pair: unknown) => (Array.isArray(pair) && pair[0] === key ? [pair[1]] : []));
}

/** Of a client of the node. */
function isRequest(owner: object): owner is { path: string; body: Uint8Array } {
  return isRecord(owner) && ['method', 'path', 'query', 'headers'].every((key) => key in owner) && owner.body instanceof Uint8Array;
}
function isDocument(text: unknown): boolean {
  return typeof text === 'string' && documentOf(text) !== undefined;
}

/**
 * A container in the words of CRI, whose message becomes a termination message: the two get one stand-in. The tree reads the
 * message of a start that was broken off, and shows it nowhere.
 */
function isEnd(owner: object): boolean {
  if (!isRecord(owner) || !('exitCode' in owner && 'imageRef' in owner)) return false;
  const [state, reason, startedAt, message] = ['state', 'reason', 'startedAt', 'message'].map((key) => String(owner[key] ?? ''));
  return !isStartBrokenOff({ state, reason, startedAt, message } as Parameters<typeof isStartBrokenOff>[0]);
}

function isSecretObject(owner: object): boolean {
  // Items of a list have no kind; a ConfigMap has no type.
  return isRecord(owner) && (owner.kind === 'Secret' || (owner.kind === undefined && typeof owner.type === 'string'));
}

function areWords(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every((item) => typeof item === 'string'));
}

/** In a ConfigMap some write a key: it is found again where the node reads the volume. */
function ofText(value: unknown, door: Door | undefined): Door {
  const isKey = door === 'secret' || door === 'token' || door === 'auth';
  return isKey && typeof value === 'string' && value.length >= FOUND_ANYWHERE_MIN ? 'secret' : 'kept';
}

const SUB_PATH = /\/volume-subpaths\//;
const ANY_VOLUME = /\/volumes\/kubernetes\.io~([a-z-]+)\//;
const VOLUMES: Readonly<Record<string, Holds>> = { secret: 'secrets', configmap: 'text', 'downward-api': 'labels' };
const DOCKER_PATH = /\/(?:config\.json|\.dockercfg|\.dockerconfigjson)$/;
const LOG_PATH = /\.log(?:\.|$)|\/log\/(?:pods|containers)\//;
const ISCSI_PATH = /\/(?:var\/lib|etc)\/iscsi\//;
const DEATHS_PATH = /\/actorlet\/deaths\/[^/]*$/;
/** Also before it is renamed. */
const DEVICES_PATH = /\/\.?kubelet_internal_checkpoint(?:\.\d+)?$/;
