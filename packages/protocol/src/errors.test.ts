import { expect, test } from 'vitest'
import { ServiceError } from './errors.ts'

test('has code, details, docs and cause next to the constant message', () => {
  const cause = new Error('inner')
  const error = new ServiceError('some_code', 'some_message', { details: 'which one', cause })
  expect(error).toBeInstanceOf(Error)
  expect(error.message).toBe('some_message')
  expect(error).toMatchObject({ code: 'some_code', details: 'which one', docsPath: '/errors#some_code', cause })
  expect(error.docsUrl).toBe('https://github.com/countersign/countersign/blob/main/docs/errors.md#some_code')
  expect(new ServiceError('some_code', 'some_message')).not.toHaveProperty('cause')
})

test('carries the HTTP status, and the signatures made before the failure', () => {
  const signed = { txHash: '0xabc', attestationSlug: 'slug' } as const
  const error = new ServiceError('some_code', 'some_message', { status: 503, retryable: true, signed })
  expect(error).toMatchObject({ status: 503, retryable: true, signed })
  expect(new ServiceError('some_code', 'some_message')).toMatchObject({
    status: undefined,
    retryable: undefined,
    signed: undefined,
  })
})
