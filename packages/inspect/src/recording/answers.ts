/** Answers what `actorctl` asks a daemon, from a recording: the same pages, of one moment of it. */
import { shownPage } from '@actorlet/shown/src/moment/pages.ts';
import type { RecordedMoment } from './recordedMoment.ts';
import type { Recording } from './recording.ts';

export interface RecordedAnswer {
  status: number;
  body: string;
}

export class RecordedAnswers {
  readonly #moment: RecordedMoment;

  constructor(recording: Recording, atMs: number) {
    this.#moment = recording.at(atMs);
  }

  get(path: string, query: Readonly<Record<string, string>>): RecordedAnswer {
    const page = shownPage(path, new URLSearchParams(query), this.#moment);
    if (page !== null) return { status: page.status, body: page.body };
    return {
      status: 404,
      body: `404: a recording cannot answer ${path}: it holds no logs and no objects, and nothing can be done to it\n`,
    };
  }
}
