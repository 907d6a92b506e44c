import { CoordinatorError } from '../errors.ts'

export function proofNotFound() {
  return new CoordinatorError('proof_not_found', 'there is no such proof')
}
