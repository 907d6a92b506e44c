import { describe, expect, test } from 'vitest'
import { CoordinatorError } from '../errors.ts'
import { toDatabaseError } from './databaseError.ts'

const withCode = (code: string) => Object.assign(new Error('failed'), { code })

describe('toDatabaseError', () => {
  test.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOTFOUND',
    'ETIMEDOUT',
    'EPIPE',
    '08000',
    '08006',
    '08P01',
    '25006',
    '28P01',
    '3D000',
    '53300',
    '53100',
    '57P01',
    '57P02',
    '57P03',
    '57014',
    '58030',
  ])('%s is a failure of the database', (code) => {
    expect(toDatabaseError(withCode(code))).toMatchObject({ code: 'database_unavailable' })
  })

  test.each([
    'Connection terminated unexpectedly',
    'timeout exceeded when trying to connect',
    'Query read timeout',
    'Cannot use a pool after calling end on the pool',
    'driver has already been destroyed',
  ])('%s is a failure of the database', (message) => {
    expect(toDatabaseError(new Error(message))).toMatchObject({ code: 'database_unavailable' })
  })

  test('treats a refusal by every address of a host as unavailable', () => {
    expect(toDatabaseError(new AggregateError([withCode('ECONNREFUSED')]))).toMatchObject({
      code: 'database_unavailable',
    })
  })

  test.each(['23505', '23503', '23001', '42P01', '40P01', '22P02', '57P0', '080061'])('passes on %s', (code) => {
    const error = withCode(code)
    expect(toDatabaseError(error)).toBe(error)
  })

  test('passes on our own errors and values that are not errors', () => {
    const error = new CoordinatorError('key_binding_mismatch', 'Connection terminated')
    expect(toDatabaseError(error)).toBe(error)
    expect(toDatabaseError('Connection terminated')).toBe('Connection terminated')
  })

  test('does not pass on the driver’s message', () => {
    const error = toDatabaseError(
      Object.assign(new Error('password authentication failed for user "x"'), { code: '28P01' }),
    )
    expect(error).toMatchObject({ message: 'the database is unavailable', details: undefined })
  })
})
