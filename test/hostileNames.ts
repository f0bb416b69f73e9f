/** Names that lead out of a folder, name it, or fit nowhere. */
export const HOSTILE_NAMES: readonly string[] = [
  '',
  '.',
  '..',
  '../x',
  '../../../x',
  '../../../../../../../../tmp/actorlet-x',
  '/etc/x',
  'a/b',
  'a/',
  'a/../../../x',
  'a\0b',
  'a\nb',
  '\u007f',
  'x'.repeat(256),
  'x'.repeat(300),
  'ä'.repeat(128),
];
