/** Texts of which a part is secret by its place: URLs with a user or a query, images, options of mounts. */
import { userOfImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';

export interface LinksOptions {
  standIn(text: string): string;
  /** Of a text with nothing secret in it by its place. */
  open(text: string): string;
  learn(text: string, made: string): string;
}

/** Each run of letters is begun once: a text may be long, and its author may want it to take long. */
const URLS = /(?<![a-z0-9+.-])[a-z0-9+.-]+:\/\/[^\s"'<>\\]+/gi;
const OPTION = /((?:^|,)\s*[\w.-]+=)([^,]+)/g;
/** In the name of an option of a mount that says who asks. */
const SECRET_NAME = /pass|secret|token|cred|key|user/i;

/** What follows a path: a query, a fragment, parameters. */
const AFTER_PATH = /[?#;]/;
const SECRET_PART = /[?#;].|@/s;
const STREAM = /^([^?#;]*\/)([\w-]{8,})([?#;].*)?$/s;

export function hasSecretOption(text: string): boolean {
  return [...text.matchAll(OPTION)].some(([, name = '']) => SECRET_NAME.test(name));
}
export function hasSecretUrl(text: string): boolean {
  return text.includes('://') && (text.match(URLS) ?? []).some((url) => SECRET_PART.test(url));
}
/** Of a link: whether it may be shown as it is. */
export function isOpenLink(text: string): boolean {
  return !SECRET_PART.test(text);
}

export class Links {
  readonly #o: LinksOptions;

  constructor(o: LinksOptions) {
    this.#o = o;
  }

  image(text: string): string {
    const user = userOfImage(text);
    if (user === null) return this.#o.open(text);
    return text.slice(0, user.from) + this.#userInfo(text.slice(user.from, user.to)) + text.slice(user.to);
  }

  /** A session of the runtime's streaming server: its last part is the key to it. */
  stream(text: string): string {
    const [, url = text, token = '', rest = ''] = STREAM.exec(text) ?? [];
    return this.urls(url) + this.#o.standIn(token) + this.#path(rest);
  }

  #path(text: string): string {
    const at = text.search(AFTER_PATH);
    if (at < 0) return this.#o.open(text);
    return text.slice(0, at + 1) + this.#query(text.slice(at + 1));
  }

  /** It may begin with its path, or with its host, before which a user may stand. */
  link(text: string): string {
    if (text.startsWith('//')) return this.#url(`:${text}`).slice(1);
    const to = /[/?#;]/.exec(text)?.index ?? text.length;
    if (text.startsWith('://', to - 1)) return this.#o.open(text);
    const at = text.lastIndexOf('@', to - 1);
    return at < 1 ? this.#path(text) : `${this.#userInfo(text.slice(0, at))}${this.#path(text.slice(at))}`;
  }

  /** Also several, as one text. */
  options(text: string): string {
    const made = text.replace(OPTION, (whole, name: string, value: string) =>
      SECRET_NAME.test(name) ? name + this.#o.standIn(value) : whole,
    );
    return made === text ? this.#o.open(text) : this.#o.learn(text, made);
  }

  urls(text: string): string {
    return text.replace(URLS, (url) => this.#url(url));
  }

  #url(url: string): string {
    const from = url.indexOf('://') + 3;
    const rest = url.slice(from);
    const hostEnd = /[/?#]/.exec(rest)?.index ?? rest.length;
    // A password may have any of these in it.
    const at = rest.lastIndexOf('@', /^[^/?#]*@/.test(rest) ? hostEnd : 0);
    const user = at < 0 ? '' : `${this.#userInfo(rest.slice(0, at))}@`;
    return url.slice(0, from) + user + this.#path(rest.slice(at + 1));
  }

  #userInfo(text: string): string {
    const at = text.indexOf(':');
    return at < 0 ? this.#o.standIn(text) : `${this.#o.standIn(text.slice(0, at))}:${this.#o.standIn(text.slice(at + 1))}`;
  }

  #query(text: string): string {
    return text.replace(/([^&=#]*)(=?)([^&#]*)/g, (_, name: string, is: string, value: string) =>
      is === '' ? this.#queryValue(name) : name + is + this.#queryValue(value),
    );
  }

  /** It may be written another way in what programs say of it. */
  #queryValue(text: string): string {
    if (text === '') return '';
    const made = this.#o.standIn(text);
    try {
      const decoded = decodeURIComponent(text);
      if (decoded !== text) this.#o.standIn(decoded);
    } catch {
      // A `%` of its own.
    }
    return made;
  }
}
