/** Where the page is, in the part of the address behind `#`: `#/actors/PATH`, `#/pods/UID`, `#/trace`. */
import { useSyncExternalStore } from 'react';

export const TABS = ['actors', 'pods', 'events', 'trace', 'decisions', 'host', 'kubelet'] as const;
export type Tab = (typeof TABS)[number];
export interface Route {
  tab: Tab;
  /** Path of an actor or UID of a pod; ''. */
  item: string;
}

export function readRoute(hash: string): Route {
  const [, tab = '', ...rest] = hash.replace(/^#/, '').split('/');
  const known = TABS.find((t) => t === tab);
  if (known === undefined) return { tab: 'actors', item: '' };
  return { tab: known, item: rest.map(decode).join('/') };
}
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}

export function hrefOf(tab: Tab, item = ''): string {
  return `#/${tab}${item === '' ? '' : `/${item.split('/').map(encodeURIComponent).join('/')}`}`;
}

export function go(tab: Tab, item = ''): void {
  location.hash = hrefOf(tab, item);
}

const subscribe = (fn: () => void): (() => void) => {
  addEventListener('hashchange', fn);
  return () => removeEventListener('hashchange', fn);
};
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return readRoute(hash);
}

/** The right to act: given by `actorctl ui` behind `#token=`, kept for this tab, taken out of the address at once. */
export function takeToken(): void {
  const m = /^#token=([\w-]{10,100})$/.exec(location.hash);
  if (m === null) return;
  sessionStorage.setItem('actorlet-token', m[1] ?? '');
  history.replaceState(null, '', location.pathname);
}
export function token(): string {
  return sessionStorage.getItem('actorlet-token') ?? '';
}
