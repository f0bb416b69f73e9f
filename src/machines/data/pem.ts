/** PEM text (RFC 7468): blocks are read with whatever stands between them, and written without. Pure. */

const LINE_CHARS = 64;

/** Content of each block, as a string of bytes. Headers of a block are left out, and what is no base64 is no block. */
export function pemBlocks(text: string): string[] {
  const found: string[] = [];
  let label: string | undefined;
  let lines: string[] = [];
  for (const line of text.split(/\r?\n/).map((l) => l.trimEnd())) {
    const [, begins] = /^-----BEGIN ([^-]*)-----$/.exec(line) ?? [];
    if (begins !== undefined) {
      label = begins;
      lines = [];
    } else if (label !== undefined && line === `-----END ${label}-----`) {
      const bytes = bytesOf(lines);
      if (bytes !== null) found.push(bytes);
      label = undefined;
    } else if (!line.includes(':')) lines.push(line);
  }
  return found;
}

function bytesOf(lines: readonly string[]): string | null {
  try {
    return atob(lines.join(''));
  } catch {
    return null;
  }
}

export function pemOf(label: string, bytes: string): string {
  const lines = btoa(bytes).match(new RegExp(`.{1,${LINE_CHARS}}`, 'g')) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
