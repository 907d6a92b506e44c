import { MOCK, MOCK_SENTENCE, SILICON_HEADER } from '@countersign/service'
import type { Answer, Headers } from './context.ts'

/** On every answer where the silicon is simulated, and nothing elsewhere. */
export function toSiliconHeaders({ isMock }: { isMock: boolean }): Record<string, string> {
  return isMock ? { [SILICON_HEADER]: MOCK } : {}
}

/** A page that says first what it is; other answers as they are. */
export function toMarkedPage(answer: Answer, headers: Headers): Answer {
  const { body } = answer
  const isPage = typeof body === 'string' && String(headers['content-type']).startsWith('text/html')
  const mark = `<body><p role="note"><strong>${MOCK_SENTENCE}</strong></p>`
  return isPage ? { ...answer, body: body.replace('<body>', mark) } : answer
}
