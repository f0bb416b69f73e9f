/**
 * Who holds which trap of boot, configuration, node and API. Where this node does otherwise on purpose (docs/differences.md),
 * `says` has what it does.
 */
import type { Held, Trap, Traps } from './table.ts';

export const BOOT_TRAPS = 64;

const held = (says: string, ...tests: Held[]): Trap => ({ says, tests });

const auth = 'edge/https/auth.test.ts';
const boot = 'boot/boot.test.ts';
const certificates = 'integration/cluster/certificates.test.ts';
const cluster = 'integration/cluster.test.ts';
const clusterNode = 'integration/cluster/clusterNode.test.ts';
const config = 'boot/config/config.test.ts';
const flags = 'boot/config/flags.test.ts';
const goldenNode = 'machines/golden/node/node.test.ts';
const logs = 'machines/kubeletApi/logs.test.ts';
const logPages = 'edge/https/logs/logs.test.ts';
const nodeObject = 'machines/api/objects.test.ts';
const pages = 'edge/https/pages.test.ts';
const process = 'boot/process/process.test.ts';
const servers = 'edge/servers.test.ts';
const streams = 'edge/https/streams.test.ts';
const validate = 'boot/config/validate.test.ts';
const kubectl = 'cluster/pods/kubectl.test.ts';

export const bootAndNode: Traps = {
  1: held('open defaults without a file do not exist here: closed with and without one', [
    config,
    'are closed, with a file and without one (trap 1, where the reference is open without)',
  ]),
  2: held('the time between reports follows an explicit time between updates in the file, not in the flag', [
    config,
    'copy an explicit nodeStatusUpdateFrequency of the file, not of the flag (trap 2)',
  ]),
  3: held('gates are merged, all other collections replaced', [
    config,
    'lets flags win, replaces whole collections, and merges featureGates only (trap 3)',
  ]),
  4: held('one threshold in the file drops the other defaults', [
    config,
    'of evictionHard vanish when the file names any threshold, unless merging is asked for (trap 4)',
  ]),
  5: held('a boolean does not take the next word', [
    flags,
    'unknown command "false": positional arguments are not accepted (a boolean takes its value with "=": --flag=false)',
  ]),
  6: held('an underscore is a dash', [flags, '--node_ip=1.2.3.4']),
  7: held('an explicit zero is unset, save in pointer fields', [
    config,
    'take an explicit zero for unset except in pointer fields (trap 7)',
  ]),
  8: held('relative paths stand against the file, or the working directory', [
    config,
    'stand against the file in the file and against the working directory in a flag (trap 8)',
  ]),
  9: held(
    'an unknown field warns, an unknown gate ends the start',
    [config, 'warns of unknown and duplicate fields with file, line and nearest name (traps 9, 10)'],
    [validate, 'refuse the opposite of a lock, leave an unknown name alone, and warn of GA and deprecated ones (trap 11)'],
  ),
  10: held(
    'what is merely loose is taken, another kind is not',
    [config, 'warns of unknown and duplicate fields with file, line and nearest name (traps 9, 10)'],
    [config, 'kind must be KubeletConfiguration, not "Foo"'],
  ),
  11: held('a locked gate may be set to what it is', [
    validate,
    'refuse the opposite of a lock, leave an unknown name alone, and warn of GA and deprecated ones (trap 11)',
  ]),
  12: held('AllAlpha gives way to a gate that is named beside it', [
    validate,
    'let an explicit sibling win over AllAlpha, whatever the order (trap 12)',
  ]),
  13: held(
    'a list of CPUs is what is reserved of them',
    ['machines/api/nodeCapacity.test.ts', 'take the number of listed CPUs over every other word on them (trap 13)'],
    [goldenNode, 'room: a list of CPUs (trap 13)'],
  ),
  14: held('a lock that is held is waited for', [
    process,
    'is waited for while another process holds it, without blocking this one (trap 14)',
  ]),
  15: held(
    'a process that opens the lock file ends the daemon with exit code 0',
    [process, 'calls back once when anybody opens the file (trap 15)'],
    [boot, 'ends with 0 on lock contention where asked to'],
  ),
  16: held('an ordinary user is told, and goes on', [boot, 'is not kept from starting by an ordinary user, who is told (trap 16)']),
  17: held('READY=1 does not wait for the node to be Ready', [
    boot,
    'tells systemd READY=1 once the node was started, then WATCHDOG=1 at half the period (trap 17)',
  ]),
  18: held('health is good before the first look, and without a runtime', [
    servers,
    'is healthy without a runtime and before any pod was seen',
  ]),
  19: held('the health port has ping alone', [servers, 'has ping and nothing else']),
  20: held('the root of health hides reasons', [
    servers,
    'fails syncloop once work has waited 5 minutes for the pod manager: withheld at the root, told by the check itself',
  ]),
  21: held('a bad token is not anonymous', [auth, 'beat anonymous when they are bad (trap 21)']),
  22: held('a certificate that has ended is not anonymous', [auth, 'are judged even where anonymous requests are let in (trap 22)']),
  23: held('who asks is looked at before what is below a page, and not for what is none', [
    auth,
    'each page is 401, before its method or the rest of its path is looked at (trap 23)',
  ]),
  24: held(
    'some methods have no verb',
    [auth, 'are asked for with an empty verb for other methods (trap 24)'],
    ['machines/golden/edge/access.test.ts', 'OPTIONS'],
  ),
  25: held('names of pages end at a border', ['machines/golden/edge/access.test.ts', '/statsx']),
  26: held('a right that could not be looked up is 500, one that is not there 403', [
    auth,
    'that could not be looked up are 500, never a grant, and are looked up again (trap 26)',
  ]),
  27: held('a no is kept for 30 s, a yes for 5 min', [auth, 'are remembered: a no for 30 s, a yes for 5 min (trap 27)']),
  28: held('no pods are null', [pages, 'of pods have what sources want, and null for none (trap 28)']),
  29: held('a terminal has no errors of its own', [
    streams,
    'take the terminal from the query for exec and from the definition for attach (traps 29, 30, 33)',
  ]),
  30: held('flags of streams are 1', [streams, 'a flag that is not 1 (trap 30)']),
  31: held('exec without an upgrade is 500', [streams, 'no upgrade (trap 31)']),
  32: held(
    'another UID means something else for each stream',
    [streams, 'another UID, for exec, is not looked at (trap 32)'],
    [streams, 'another UID, for attach (trap 32)'],
    [streams, 'another UID, for a port (trap 32)'],
  ),
  33: held('attach takes the terminal of the definition', [
    streams,
    'take the terminal from the query for exec and from the definition for attach (traps 29, 30, 33)',
  ]),
  34: held(
    'a limit counts time stamps and cuts lines',
    [logs, 'limitBytes=5&timestamps=true'],
    [logPages, 'give a file with the options of the query'],
  ),
  35: held('a tail counts parts of lines', [logPages, 'give a file with the options of the query']),
  36: held(
    'two times since are 422, a time that is no number 400',
    [logs, 'sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z'],
    [logs, 'sinceSeconds='],
    [logs, 'tailLines=x'],
  ),
  37: held('logs of one that waits are 400 with the reason', [logPages, 'that cannot be say why, and never as an empty answer (trap 37)']),
  38: held('a WebSocket begins with an empty frame', [
    kubectl,
    'run a command: an empty frame first, then output, then the status with its exit code (traps 38, 40)',
  ]),
  39: held('ports stand before their streams, in little-endian', [
    kubectl,
    'forward a port, named on both channels in little-endian (trap 39)',
  ]),
  40: held('an exit code is a cause in words', [
    kubectl,
    'run a command: an empty frame first, then output, then the status with its exit code (traps 38, 40)',
  ]),
  41: held('forwarded ports are not counted as long', [pages, 'of the process have the requests themselves, and probes have their page']),
  42: held(
    'events call the node by its name, the lease by its UID',
    [cluster, 'about the node are in namespace default and name it by its name'],
    [cluster, 'is made with the node as its owner, and renewed every ten seconds without being read'],
  ),
  43: held('no lease before there is a node', [
    clusterNode,
    'are no lease while there is no node, and the server is not asked in a spin (trap 43)',
  ]),
  44: held('a lease that somebody else wrote is read again', [cluster, 'written by somebody else is read again and held']),
  45: held('one failure closes no connection', [
    clusterNode,
    'close no connection for one %s that failed, and close them from the second on (trap 45)',
  ]),
  46: held(
    'an unchanged status is written every five minutes',
    [cluster, 'is written every five minutes when nothing changes, and at once when the runtime is lost'],
    [goldenNode, 'status: only time has passed (trap 46)'],
  ),
  47: held(
    'addresses are replaced as a whole',
    [nodeObject, 'replaces addresses as a whole and keeps what others put into it (trap 47)'],
    [goldenNode, 'status: another address (trap 47)'],
  ),
  48: held(
    'default labels alone are put right',
    [nodeObject, 'puts right the default labels of a node that was there, and no others'],
    [goldenNode, 'put right: not a label of --node-labels (trap 48)'],
    [cluster, 'that exists already keeps what others wrote, and gets its own labels back'],
  ),
  49: held('a part of the status that cannot be had holds up no other', [
    clusterNode,
    'that cannot be had hold up no other: they stay what they were (trap 49)',
  ]),
  50: held(
    'the first word on a pressure is told, that on Ready is not',
    [clusterNode, 'are its start and the first word on each pressure, and none on Ready (trap 50)'],
    [goldenNode, 'status: written for the first time (trap 50)'],
  ),
  51: held('resources of a plugin that is gone stay at 0', [
    'integration/resources/devices.test.ts',
    'resources trap 27, boot trap 51: a dead plugin leaves its capacity for 5 minutes and nothing to give, then 0',
  ]),
  52: held(
    'huge pages are no memory for pods',
    ['machines/api/nodeCapacity.test.ts', 'take huge pages out of the memory that pods may use (trap 52)'],
    [goldenNode, 'room: huge pages (trap 52)'],
  ),
  53: held('volumes in use are left alone before what is there was found', [
    'integration/volumes/csi.test.ts',
    'waits until the use was posted and the volume attached, and hands on what the attacher left (trap 44)',
  ]),
  54: held(
    'a runtime that does not answer is down after 30 s',
    [goldenNode, 'not Ready: the runtime has been silent for 30 s (trap 54)'],
    [goldenNode, 'not Ready: the runtime has been silent for longer (trap 54)'],
    [cluster, 'is written every five minutes when nothing changes, and at once when the runtime is lost'],
  ),
  55: held('without a network what needs none runs', [
    clusterNode,
    'makes the node NotReady and holds back what needs it, and nothing else (trap 55)',
  ]),
  56: held(
    'when to renew is drawn',
    ['machines/certificates/certificates.test.ts', 'is drawn between 70 and 90 % of the life'],
    [certificates, 'is renewed between 70 and 90 % of its life with a new key, and the old one stays until then'],
  ),
  57: held('a serving certificate waits for addresses that the API shows', [
    certificates,
    'is asked for when the API server shows addresses, and not before',
  ]),
  58: held('a first request outlives a crash', [
    'integration/cluster/bootstrap.test.ts',
    'waits for the same request after a crash, with the key it had',
  ]),
  59: held(
    'a certificate that has ended ends no process, whatever the server does: it is said, and another asked for',
    [certificates, 'is left alone without rotateCertificates until it has ended'],
    [certificates, 'that has ended when it arrives is no certificate, and is not asked for again at once'],
  ),
  60: held('drop-ins by name and in order', [
    config,
    'merges drop-ins: only .conf, lexical order, lists replaced, maps by key, no defaulting (trap 60)',
  ]),
  61: held(
    'help comes after flags and before files',
    [boot, 'prints help or the version and ends with 0 before any file is read (trap 61)'],
    [boot, 'finds a bad flag before help, and help before version'],
  ),
  62: held('a threshold of 100 switches the collection off', ['machines/golden/reclaim/imageGc.test.ts', 'room: 100 % is never']),
  63: held('run-once without a pod fails', [boot, 'fails when there is no pod within a second (trap 63)']),
  64: {
    says: 'another configuration ends the process with 0',
    missing: 'configuration by an object of the API, which kubelets have lost since 1.24',
  },
};
