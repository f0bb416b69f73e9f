/** URLs as people may see them. Pure. */

/** Stands for a secret value. */
export const MASKED = '<masked>';

/** Without what may be secret in a URL: user, password, and what follows its path. Other text comes out as it is. */
export function shownUrl(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  const url = URL.parse(text);
  // What is no URL could have its password anywhere.
  if (url === null) return `${text.slice(0, text.indexOf('://'))}://${MASKED}`;
  const user = url.username === '' && url.password === '' ? '' : `${MASKED}@`;
  const [path = '', sign = ''] = `${url.pathname}${url.search}${url.hash}`.split(/([;?#])/, 2);
  return user + sign === '' ? text : `${url.protocol}//${user}${url.host}${path}${sign === '' ? '' : sign + MASKED}`;
}

const URLS = /(?<![a-z0-9+.-])([a-z0-9+.-]+:\/\/)(?:[^\s/?#"'<>\\]*@)?([^\s?#;"'<>\\]*)(?:([?#;])[^\s"'<>\\]+)?/gi;
/** A text with URLs in it, each without its user and what follows its path. */
export function withShownUrls(text: string): string {
  if (!text.includes('://')) return text;
  return text.replace(URLS, (url, scheme: string, rest: string, sign: string | undefined) => {
    const user = url.slice(scheme.length).startsWith(rest) ? '' : `${MASKED}@`;
    return `${scheme}${user}${rest}${sign === undefined ? '' : `${sign}${MASKED}`}`;
  });
}

/** An endpoint, with or without a scheme: some write a user before its host. */
export function shownEndpoint(text: string): string {
  return shownUrl(text).replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, `$1${MASKED}@`);
}

/** Of a header that a program repeats. A word of letters of one case is none: "Basic authentication failed". */
export const AUTHORIZATION = /\b([Bb]earer|BEARER|[Bb]asic|BASIC)( +)(?=\S*(?:\d|[a-z][A-Z]))([\w.~+/=-]{8,})/g;
