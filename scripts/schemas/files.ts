/** The JSON Schema files by name, as text. */
import { answersSchema } from './answers.ts';
import { fleetSchema } from './fleet.ts';
import { type JsonSchema, shared } from './jsonSchema.ts';
import { kubeletConfigurationSchema } from './kubeletConfiguration.ts';
import { podManifestSchema } from './pod.ts';
import { scenarioSchema } from './scenario.ts';

export function schemaFiles(): Readonly<Record<string, string>> {
  return {
    'actorctl.json': file(answersSchema()),
    'fleet.json': file(fleetSchema()),
    'kubelet-configuration.json': file(kubeletConfigurationSchema()),
    'pod.json': file(podManifestSchema()),
    'scenario.json': file(scenarioSchema()),
  };
}

function file(schema: JsonSchema): string {
  const head = { $schema: 'http://json-schema.org/draft-07/schema#', $comment: 'Written by npm run schemas.' };
  return `${JSON.stringify({ ...head, ...shared(schema) }, null, 2)}\n`;
}
