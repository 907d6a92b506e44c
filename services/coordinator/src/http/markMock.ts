import { MOCK, MOCK_SENTENCE, SILICON_HEADER } from '@countersign/service'

/** On every answer where the silicon is simulated, and nothing elsewhere. */
export function toSiliconHeaders({ isMock }: { isMock: boolean }): Record<string, string> {
  return isMock ? { [SILICON_HEADER]: MOCK } : {}
}

/** A page that says first what it is. */
export async function toMarkedPage(response: Response): Promise<Response> {
  const html = await response.text()
  const marked = html.replace('<body>', `<body><p role="note"><strong>${MOCK_SENTENCE}</strong></p>`)
  const headers = new Headers(response.headers)
  headers.delete('content-length')
  return new Response(marked, { status: response.status, headers })
}
