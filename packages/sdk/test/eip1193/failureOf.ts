import { expect } from 'vitest'
import { Eip1193Error } from '../../src/eip1193/errors.ts'

/** The error of a provider's request. */
export async function failureOf(promise: Promise<unknown>): Promise<Eip1193Error> {
  const error = await promise.then(
    (value) => expect.fail(`resolved with ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(Eip1193Error)
  return error as Eip1193Error
}
