import { ServiceError } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { EvidenceError, evidenceTimeout } from './errors.ts'

test('an evidence error is a service error with a stable code and a place in the documentation', () => {
  const error = new EvidenceError('evidence_busy', 'the guest driver is busy', { details: 'EBUSY: outblob' })
  expect(error).toBeInstanceOf(ServiceError)
  expect(error).toMatchObject({
    name: 'EvidenceError',
    code: 'evidence_busy',
    message: 'the guest driver is busy',
    details: 'EBUSY: outblob',
    docsPath: '/errors#evidence_busy',
  })
})

test('the error for late evidence has the time limit', () => {
  expect(evidenceTimeout(1000)).toMatchObject({ code: 'evidence_timeout', details: 'after 1000 ms' })
})
