import { MOCK, MOCK_SENTENCE, SILICON_HEADER } from '@countersign/service'
import type { HandlerResponse, Headers } from './context.ts'

/** Marks every response of a service with simulated hardware. */
export function toSiliconHeaders({ isMock }: { isMock: boolean }): Record<string, string> {
  return isMock ? { [SILICON_HEADER]: MOCK } : {}
}

/** Adds a note at the top of HTML pages. */
export function toMarkedPage(answer: HandlerResponse, headers: Headers): HandlerResponse {
  const { body } = answer
  const isPage = typeof body === 'string' && String(headers['content-type']).startsWith('text/html')
  const mark = `<body><p role="note"><strong>${MOCK_SENTENCE}</strong></p>`
  return isPage ? { ...answer, body: body.replace('<body>', mark) } : answer
}
