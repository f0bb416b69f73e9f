/** A bundle as one page that needs no server, no script and nothing from outside: to attach to a ticket. Pure. */

import type { DeathBundle } from './bundle.ts';
import { escapedHtml } from './escapedHtml.ts';
import { timelineSvg } from './svg.ts';
import { headLines, sectionsOf } from './text.ts';

const STYLE = `
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--dim:#59636e;--line:#d1d9e0;--box:#f6f8fa;--bad:#c4314b;--run:#8cc69b;--step:#9db8e8;--call:#d8c38a}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--dim:#9198a1;--line:#3d444d;--box:#151b23;--bad:#f0526b;--run:#2f6b40;--step:#34558f;--call:#6e5c25}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1000px;margin:2em auto;padding:0 1em}
h1{font-size:1.35em;line-height:1.35;border-left:6px solid var(--bad);padding-left:.6em}
h2{font-size:1.05em;margin:1.6em 0 .4em}
p.head{color:var(--dim);margin:.1em 0}
ul.next{padding-left:1.2em}
pre{font:12.5px/1.5 ui-monospace,monospace;background:var(--box);border:1px solid var(--line);border-radius:6px;padding:.7em;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;margin:0}
svg{width:100%;height:auto;border:1px solid var(--line);border-radius:6px;background:var(--box);font:12px ui-monospace,monospace}
svg text{fill:var(--ink)}svg .name{text-anchor:end;fill:var(--dim)}
.step{fill:var(--step)}.run{fill:var(--run)}.call{fill:var(--call)}.event{fill:var(--step)}
.bad{fill:var(--bad)}.memory{fill:none;stroke:var(--bad);stroke-width:2}.death{stroke:var(--bad);stroke-width:2;stroke-dasharray:4 3}.deathname{fill:var(--bad)}
`;

export function deathHtml(bundle: DeathBundle): string {
  const [title = '', ...more] = headLines(bundle).map((line) => line.trim());
  const sections = sectionsOf(bundle)
    .map(({ title: name, lines }) => {
      const body =
        lines === bundle.next
          ? `<ul class="next">${lines.map((line) => `<li>${escapedHtml(line)}</li>`).join('')}</ul>`
          : `<pre>${lines.map(escapedHtml).join('\n')}</pre>`;
      const picture = lines === bundle.next ? `<h2>The time before</h2>${timelineSvg(bundle)}` : '';
      return `<section><h2>${escapedHtml(name)}</h2>${body}</section>${picture}`;
    })
    .join('\n');
  return `<!doctype html>
<html lang="en" dir="ltr"><head><meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${escapedHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style></head>
<body><h1>${escapedHtml(title)}</h1>
${more.map((line) => `<p class="head">${escapedHtml(line)}</p>`).join('\n')}
${sections}
<p class="head">actorctl death ${escapedHtml(bundle.head.id)}</p>
</body></html>
`;
}
