/** The overview page as one file, live or as the report of a run. Pure. */
import type { Figures } from './figures.ts';
import { SCRIPT } from './script.ts';
import { STYLE } from './style.ts';

/** Nothing is asked of another server, and nothing but the page's own script runs. */
export const POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:";

/** @param report What a run ended with. Absent: the page asks for it, again and again. */
export function pageHtml(report?: Figures & { title: string }): string {
  const title = report === undefined ? 'actorlet fleet' : `actorlet fleet: ${report.title}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
<style>${STYLE}</style></head><body>
<h1>${escaped(title)} <span id="sum"></span> <span id="lost" role="status"></span></h1>
<div class="bar"><span id="legend" class="bar" aria-label="states of nodes; press one to see only those"></span>
<input id="text" type="search" placeholder="name" aria-label="part of the name">
<select id="group" aria-label="group"></select><select id="zone" aria-label="zone"></select><select id="version" aria-label="version"></select>
<input id="label" list="labels" placeholder="label or label=value" aria-label="label"><datalist id="labels"></datalist>
<span id="shown" class="quiet" role="status"></span></div>
<canvas id="grid" tabindex="0" role="img" aria-label="nodes"></canvas><p id="walk" class="quiet" role="status"></p>
<section id="node" hidden><h2 id="name"></h2><p id="about" class="quiet"></p><p id="links" class="bar"></p>${report === undefined ? '<pre id="text-of-node"></pre>' : ''}</section>
<section id="run" hidden><h2>The run <span id="took" class="quiet"></span></h2>
<p class="bar quiet"><span class="key" style="--of: var(--ready)">nodes Ready</span><span class="key" style="--of: var(--pods)">pods Ready</span><span class="key" style="--of: var(--chosen)">step</span></p>
<svg id="timeline" role="img" aria-label="nodes and pods that are Ready over time, with the steps; then a bar for each expectation"></svg>
<h2 id="expectTitle">Expected</h2><ol id="expect"></ol><h2 id="stepsTitle">Steps</h2><ol id="steps"></ol></section>
<div id="facts"><div><h2>Pods</h2><table id="pods"></table></div>
<div id="waiting"><h2>Not Ready, since</h2><table id="reasons"></table></div>
<div><h2>API calls<span id="rate"></span></h2><table id="calls"></table></div>
<div><h2>Slowest to Ready</h2><table id="slow"></table></div>
${report === undefined ? '' : '<div><h2>Seconds</h2><table id="seconds"></table></div>'}</div>
${report === undefined ? '' : `<script type="application/json" id="report">${JSON.stringify(report).replaceAll('<', '\\u003c')}</script>`}
<script>${SCRIPT}</script></body></html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
