/** What was found of the kubelet, in lines for people and as JSON: one table of facts makes both. No secret. */

import { shownGiven } from '@actorlet/kubelet/boot/flags/shown.ts';
import { oneLine } from '@actorlet/kubelet/machines/text/oneLine.ts';
import { shownUrl } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import type { FoundKubelet } from './found.ts';
import { PROGRAM_OF } from './inside.ts';

interface Fact {
  name: string;
  value: string;
  /** '' = there is nothing to say of it. */
  from: string;
}

const SHOWN_MAX = 20;
const VALUE_CHARS_MAX = 300;

function factsOf(found: FoundKubelet): Fact[] {
  const { process, loaded, running, nodeName, access, given } = found;
  const { flags, config } = loaded;
  const byFlag = (name: string): string => (given.has(name) ? `--${name}` : 'default');
  const field = (path: string): string => {
    for (const { spec } of given.values()) if (spec.cfg === path) return `--${spec.name}`;
    return loaded.origins.get(path) ?? (running?.config == null ? 'default' : 'the running configuration');
  };
  const started = new Date(process.startedMs).toISOString();
  const dropIns = loaded.files.map((path) => found.view.named(path)).slice(flags.config === '' ? 0 : 1);
  return [
    { name: 'kubelet', value: `process ${process.pid}, ${process.program}, ${PROGRAM_OF[process.kind]}, since ${started}`, from: '' },
    {
      name: 'version',
      value: running?.version ?? 'not known',
      from: running === null ? 'there is no API server to ask' : running.noVersion || 'the status of the node',
    },
    { name: 'node', value: nodeName.value, from: nodeName.from },
    { name: 'flags', value: `${given.size}`, from: found.flagsFrom },
    { name: 'configuration', value: flags.config || 'none', from: byFlag('config') },
    { name: 'dropIns', value: dropIns.join(', ') || 'none', from: flags.configDir === '' ? 'no --config-dir' : flags.configDir },
    {
      name: 'runningConfiguration',
      value: running?.config == null ? 'not known' : `${found.differences.length} fields differ from files and flags`,
      from: running?.configFrom ?? 'there is no API server to ask',
    },
    {
      name: 'kubeconfig',
      value: flags.kubeconfig === '' || given.get('kubeconfig') === undefined ? 'none' : String(given.get('kubeconfig')?.value),
      from: byFlag('kubeconfig'),
    },
    {
      name: 'apiServer',
      value: access.client === null ? 'none' : shownUrl(access.client.server.href),
      from: `credentials: ${access.what}`,
    },
    { name: 'rootDirectory', value: flags.rootDir, from: byFlag('root-dir') },
    { name: 'certificates', value: flags.certDir, from: byFlag('cert-dir') },
    { name: 'podLogs', value: config.podLogsDir, from: field('podLogsDir') },
    { name: 'staticPods', value: config.staticPodPath || 'none', from: field('staticPodPath') },
    { name: 'runtime', value: config.containerRuntimeEndpoint, from: field('containerRuntimeEndpoint') },
    { name: 'cgroupDriver', value: config.cgroupDriver, from: field('cgroupDriver') },
  ];
}

/** Of values that files, programs and servers choose. */
function line(text: string): string {
  const one = oneLine(text);
  return one.length > VALUE_CHARS_MAX ? `${one.slice(0, VALUE_CHARS_MAX)}…` : one;
}

export function linesOf(found: FoundKubelet): string[] {
  const facts = factsOf(found);
  const width = Math.max(...facts.map(({ name }) => name.length));
  const { differences } = found;
  return [
    ...facts.map(({ name, value, from }) => `${name.padEnd(width)}  ${line(value)}${from === '' ? '' : ` (${line(from)})`}`),
    ...differences
      .slice(0, SHOWN_MAX)
      .map((d) => `differs: ${d.field} is ${line(d.running)} in the kubelet, ${line(d.files)} by its files and flags: ${line(d.why)}`),
    ...(differences.length > SHOWN_MAX ? [`differs: ${differences.length - SHOWN_MAX} more fields; -o json lists them`] : []),
    ...found.remarks.map((remark) => `note: ${line(remark)}`),
  ];
}

export function jsonOf(found: FoundKubelet): string {
  const { process, loaded, access, running } = found;
  const flags = shownGiven(found.given);
  const document = {
    facts: Object.fromEntries(factsOf(found).map(({ name, value, from }) => [name, { value, from }])),
    process: { pid: process.pid, program: process.program, kind: process.kind, startedAt: new Date(process.startedMs).toISOString() },
    version: running?.version ?? null,
    nodeName: found.nodeName.value,
    flags,
    files: loaded.files.map((path) => found.view.named(path)),
    hostRoot: found.view.root,
    credentials: access.kind,
    differences: found.differences,
    remarks: found.remarks,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
