import { ServiceError } from '@countersign/sdk'
import { describe, expect, test } from 'vitest'
import { explainSigning } from './explainSigning.ts'

describe.each(['network_unreachable', 'request_timeout', 'response_invalid'])('%s', (code) => {
  test.each([
    'POST /sign/message',
    'POST /sign/message: no answer, or blocked by CORS',
    'POST /sign/typed-data answered 502',
  ])('says for “%s” that it may be signed and the opening is lost', (details) => {
    expect(explainSigning(new ServiceError(code, 'x', { details }))?.title).toBe('This may have been signed')
  })

  test.each(['GET /wallet/me', 'GET /wallet/me answered 502', undefined])(
    'says nothing for “%s”, because nothing was sent',
    (details) => {
      expect(explainSigning(new ServiceError(code, 'x', { details }))).toBeUndefined()
    },
  )
})

test('asks for a reload if part of the page is gone', () => {
  const error = new ServiceError('network_unreachable', 'a part of the page is gone', { details: 'reload the page' })
  expect(explainSigning(error)?.advice).toMatch(/Nothing was signed\. Reload the page\.$/)
})

test('uses the general words for other rejections', () => {
  expect(explainSigning(new ServiceError('rate_limited', 'x', { status: 429 }))).toBeUndefined()
})
